#pragma once
// The flags that every verb with a configuration shares: FILE, --set, short flags, -v and -q.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/config/config.h"
#include "tutti/cli/flags/flags.h"

namespace tutti {

/// Describes the flags, then, once the command line is parsed, reads the configuration they ask
/// for. Must stay where it is as long as the flags live, which are bound to it.
class ConfigFlags {
 public:
  /// The argument FILE of `verb`, which makes no sense without one where `required` says so.
  Flag file_argument(const std::string& verb, bool required);

  /// --set, -v, -q, --log-level, and of the short flags (config_aliases()) those that mean
  /// something to the verb: "epochs", "lr".
  std::vector<Flag> flags(const std::vector<std::string_view>& short_flags);

  /// The same with all short flags: what train takes, and what shows or plans a run, so that the
  /// flags of its command fit.
  std::vector<Flag> flags_of_training();

  /// Precedence default < file < environment < flag. Throws ConfigError.
  ResolvedConfig look() const;
  /// The same, and loads model.library: what verbs that use a model do.
  ResolvedConfig read() const;

  /// The same for verbs of a run: a run's config.toml means the folder that it lies in, unless
  /// another is named.
  ResolvedConfig read_run() const;

  const std::string& file() const { return file_; }

  /// The settings given as flags, for passing them on to runs that this one starts.
  std::vector<Setting> settings() const;

 private:
  std::string file_;
  std::vector<std::string> sets_, slow_;
  std::map<std::string, std::string> values_;  ///< short flag -> text
  bool profile_ = false, check_ = false, quiet_ = false;
  int verbose_ = 0;
};

/// --ranks (also TUTTI_RANKS) for verbs that start ranks; hand the value to launch_ranks() of
/// launch.h. 0: not given.
Flag ranks_flag(int& ranks);

/// --json for verbs that print facts.
Flag json_flag(bool& json);

}  // namespace tutti
