#pragma once
// The flags that every verb with a configuration shares: FILE, --set, short flags, -v and -q.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/config/config.h"
#include "tutti/cli/flags/flags.h"

namespace tutti::cli {

/// Describes the flags, then, once the command line is parsed, reads the configuration that they
/// select. Must not move while the flags live, which are bound to it.
class ConfigFlags {
 public:
  /// Returns the argument FILE of `verb`; `required`: the verb makes no sense without a file.
  Flag file_argument(const std::string& verb, bool required);

  /// Returns --set, -v, -q, --log-level and, of the short flags (config_aliases()), those that mean
  /// something to the verb: "epochs", "lr". With "device" comes --gpu, which people type for it.
  std::vector<Flag> flags(const std::vector<std::string_view>& short_flags);

  /// Returns the same with all short flags, for train and for verbs that show or plan a run, so
  /// that they accept the flags of its command.
  std::vector<Flag> flags_of_training();

  /// Reads with precedence default < file < environment < flag. Throws ConfigError.
  ResolvedConfig look() const;
  /// Does the same and loads model.library, for verbs that use a model.
  ResolvedConfig read() const;

  /// Does the same for verbs of a run: a run's config.toml stands for the folder that it lies in,
  /// unless another folder is named.
  ResolvedConfig read_run() const;

  const std::string& file() const { return file_; }

  /// Returns the settings given as flags, for passing them on to runs that this one starts.
  std::vector<Setting> settings() const;

 private:
  std::string file_;
  std::vector<std::string> sets_, slow_;
  std::map<std::string, std::string> values_;  ///< short flag -> text
  bool profile_ = false, check_ = false, quiet_ = false, gpu_ = false;
  int verbose_ = 0;
};

/// The flags --device and --gpu, for verbs that take no other flags of a configuration. Must not
/// move while the flags live, which are bound to it.
class DeviceFlags {
 public:
  std::vector<Flag> flags();
  /// Returns the setting that is given; without flags, none.
  std::vector<Setting> settings() const;

 private:
  std::string device_;
  bool gpu_ = false;
};

/// Returns --ranks (also TUTTI_RANKS) for verbs that start ranks; pass the value to
/// launch_ranks() of launch.h. 0: not given.
Flag ranks_flag(int& ranks);

/// Returns --json for verbs that print facts.
Flag json_flag(bool& json);

}  // namespace tutti::cli
