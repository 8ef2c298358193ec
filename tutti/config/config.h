#pragma once
// The configuration of a run as plain values, and the one table that describes every key: its name,
// type, default, unit, meaning and limits. Files, flags, the environment, the resolved output, the
// documentation and the JSON schema are all driven by that table (cli/config/config.h), so a new
// key is a member and a row in its section's file, *_section.h. Nothing here reads a file, a flag
// or the environment.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tutti/config/checkpoint_section.h"
#include "tutti/config/comm_section.h"
#include "tutti/config/data_section.h"
#include "tutti/config/loss_section.h"
#include "tutti/config/model_section.h"
#include "tutti/config/optimizer_section.h"
#include "tutti/config/plan_section.h"
#include "tutti/config/run_section.h"
#include "tutti/config/schedule_section.h"
#include "tutti/config/sync_section.h"
#include "tutti/config/tracing_section.h"

namespace tutti::exchange {
struct CompressionPolicy;
}

namespace tutti::config {

/// One run's configuration. Values are as given: relations between keys hold after validate().
struct RunConfig {
  RunSection run;
  DataSection data;
  StagingSection staging;
  CacheSection cache;
  ModelSection model;
  TracingSection tracing;
  BatchSection batch;
  OptimizerSection optimizer;
  ScheduleSection schedule;
  LossSection loss;
  PlanSection plan;
  ParallelSection parallel;
  SyncSection sync;
  ReplaySection replay;
  CheckpointSection checkpoint;
  CommSection comm;
};

using ConfigValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, std::vector<models::LayerTable>>;

enum class ConfigType { boolean, integer, real, text, choice, integers, reals, texts, layers };
std::string_view to_string(ConfigType type);  ///< for a reader: "an integer", "a list of numbers"

/// Whether a resumed run may have another value than the run it continues. A study applies the same
/// rule to the runs it finds, including finished ones.
enum class OnResume {
  fixed,       ///< results would not continue unchanged
  may_change,  ///< the weights do not depend on it, or it is meant to change
  no_matter    ///< may change without a report: neither results nor times depend on it
};

/// Whether the ranks of one job may have different values.
enum class AmongRanks {
  same,       ///< a job whose ranks differ in it does not start
  may_differ  ///< it names something that belongs to a node
};

/// A condition for a key to have an effect. The other key must have an effect itself and hold
/// one of these words, or, if no words are given, a value other than its default.
struct KeyNeed {
  std::string key;
  std::vector<std::string> words{};
  std::vector<std::string> without{};  ///< keys that must have their defaults
};

/// One row of the table. get and set convert between a member and a ConfigValue, in which a choice
/// is represented by its word.
struct ConfigKey {
  std::string name;  ///< "optimizer.lr"
  ConfigType type;
  std::string help;
  std::string unit{};  ///< "", "bytes" or "s": such values may carry a suffix
  std::optional<double> least{}, greatest{};  ///< inclusive; elementwise for lists
  std::vector<std::string> choices{};  ///< the words allowed, elementwise for lists; empty: any
  PathKind path = PathKind::none;
  std::string path_word{};  ///< a value that is not a path: "latest"
  OnResume on_resume = OnResume::fixed;
  AmongRanks among_ranks = AmongRanks::same;
  bool or_count = false;  ///< a string: either the default or a whole number, quoted or not
  bool or_one = false;    ///< for texts: a list of one is that string, an empty list ""
  std::vector<KeyNeed> only_with{};  ///< any one gives the key an effect; empty: it always has one
  std::function<ConfigValue(const RunConfig&)> get{};
  /// Throws ConfigError with the reason, without place or name.
  std::function<void(RunConfig&, const ConfigValue&)> set{};
};

struct ConfigGroup {
  std::string name, help;
};

/// Returns the table, in the order of the documentation. Immutable, made once; safe from any
/// thread.
const std::vector<ConfigKey>& config_keys();
const std::vector<ConfigGroup>& config_groups();
const ConfigKey* find_config_key(std::string_view name);  ///< null when there is none
/// Returns, for example, "optimizer.name = sgd or lars, or run.patience"
std::string words_of(std::span<const KeyNeed> needs);
/// Returns a value as it appears in a need: a word without quotes.
std::string word_of(const ConfigValue& value);

/// Returns the TOML text of a value: true, 1, 0.1, "fp32", [1, 2].
std::string to_toml(const ConfigValue& value);
std::string toml_of_layer(const models::LayerValue& value);

/// Batch sizes in samples of one optimiser step.
struct BatchSizes {
  int64_t local;   ///< samples per batch of a replica
  int64_t global;  ///< local * replicas * batch.accumulate
};
/// Derives batch sizes from batch.local, batch.global, batch.accumulate and the number of replicas.
/// Throws ConfigError when they contradict each other.
BatchSizes batch_sizes(const BatchSection& batch, int64_t replicas);

/// Returns run.replicas, or one per rank. Throws ConfigError when there are fewer replicas than
/// ranks.
int64_t replica_count(const RunSection& run, int64_t ranks);

/// Reads the policy from the comm.compression keys. Throws ConfigError naming the key.
exchange::CompressionPolicy compression_policy(const CommSection& comm);

}  // namespace tutti::config
