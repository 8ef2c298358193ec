#pragma once
// The list of --sync: schemes beside each other, each with its own keys.

#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

struct SchemeOfStudy {
  std::string scheme;             ///< as sync.scheme has it, "local:8"
  std::vector<std::string> sets;  ///< KEY=VALUE, sync.scheme's own first
  std::string folder;             ///< folder of its study: "local-8", with keys
                                  ///< "local-8_outer=nesterov"
};

/// Returns the parts between the commas of a list, without empty ones.
std::vector<std::string> split_list(std::string_view text);

/// Parses "step,ps:async optimizer.momentum=0 sync.stale_rate=1": words after a scheme are settings
/// for its runs alone. Throws ConfigError for a word that is no setting, for keys that a study sets
/// itself, and for two studies that would have one folder. `set_by_study`: whether a study sets a
/// key.
std::vector<SchemeOfStudy> parse_schemes(std::string_view list,
                                         bool (*set_by_study)(std::string_view key));

}  // namespace tutti::cli
