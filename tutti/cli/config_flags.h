#pragma once
// The flags that every verb with a configuration shares: FILE, --set, the short flags, -v and -q.

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "tutti/cli/config.h"

namespace tutti {

/// Declares the flags on a verb, then, once the command line is parsed, reads the configuration
/// they describe. Must outlive the verb's parsing.
class ConfigFlags {
 public:
  /// file_required: the verb makes no sense without a configuration file.
  void add_to(CLI::App& verb, bool file_required);

  /// Precedence default < file < environment < flag. Throws ConfigError.
  ResolvedConfig read() const;

  const std::string& file() const { return file_; }

  /// The settings given as flags, for passing them on to runs that this one starts.
  std::vector<Setting> settings() const;

 private:
  std::string file_;
  std::vector<std::string> sets_;
  std::map<std::string, std::string> values_;  ///< short flag -> text
  bool profile_ = false, check_ = false, quiet_ = false;
  int verbose_ = 0;
};

/// --ranks (also TUTTI_RANKS) for verbs that train; hand the value to launch_ranks() of launch.h.
/// 0: not given.
void add_ranks_flag(CLI::App& verb, int& ranks);

}  // namespace tutti
