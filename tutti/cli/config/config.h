#pragma once
// Reads files, the environment and flags into one RunConfig that knows where each value came from.
// Precedence: built-in default < file (an included file below the one that includes it) <
// environment < flag. Every mistake is a ConfigError that names its place: file:line:column, the
// variable or the flag.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/config/config.h"

namespace tutti::cli {

/// The variable that tells ranks where to report (RankTable).
inline constexpr const char* kRankTableVariable = "TUTTI_RANK_TABLE";

/// The variable that chooses the order in which the emulated device works (job/compute_backend.h).
inline constexpr const char* kEmulatedSeedVariable = "TUTTI_EMULATED_SEED";

/// One value given as text outside a file. `text` is TOML, except that strings need no quotes and
/// lists no brackets.
struct Setting {
  std::string key;    ///< "optimizer.lr"
  std::string text;   ///< "0.1"
  std::string where;  ///< "--lr", "TUTTI_OPTIMIZER_LR"
};

struct ConfigSources {
  std::string file = {};  ///< path of a TOML file; empty: none
  /// Variables TUTTI_*, see tutti_environment().
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<Setting> flags = {};  ///< later ones win
};

/// Where a relative path that is the value of a key starts, and where it leads.
struct PathsOfKey {
  struct Placed {
    std::string written, place;
  };
  std::string folder{};  ///< folder of the file that sets it; empty: a flag or a variable does
  std::vector<Placed>
      relative{};  ///< paths in a file that do not begin with /, and where they lead
};

struct ResolvedConfig {
  config::RunConfig config;  ///< validated
  std::map<std::string, std::string>
      origins;  ///< key -> "file.toml:3:6", "TUTTI_...", "--lr"; absent: default
  std::map<std::string, PathsOfKey> paths;  ///< for keys that are paths and are set
  std::vector<std::string> warnings;        ///< for the log of rank 0
  /// Warnings about values other than the default that have no effect on the training.
  std::vector<std::string> idle;
  /// run.log_level as the files set it: a flag or a variable applies to one process.
  log::Level log_level_of_files = log::Level::info;

  /// Returns all warnings, for verbs that train or report on a training. Verbs that use a run's
  /// weights afterwards do not repeat warnings that only concern training.
  std::vector<std::string> warnings_of_training() const;
};

/// Reads and checks everything. Throws ConfigError.
ResolvedConfig read_config(const ConfigSources& sources);

/// Short names that people type by habit; each is a flag `--name` and a variable TUTTI_NAME.
struct ConfigAlias {
  std::string flag;  ///< "batch-size"
  std::string key;   ///< "batch.local"
};
const std::vector<ConfigAlias>& config_aliases();

/// Returns the variable of a key or flag: "optimizer.lr" -> "TUTTI_OPTIMIZER_LR", "log-level" ->
/// "TUTTI_LOG_LEVEL".
std::string variable_name(std::string_view name);

/// Returns the launcher that this process runs under, from the environment. Throws ConfigError when
/// its variables make no sense.
comm::Launcher read_launcher();

/// Returns the variables of this process with the prefix TUTTI_.
std::vector<std::pair<std::string, std::string>> tutti_environment();

}  // namespace tutti::cli
