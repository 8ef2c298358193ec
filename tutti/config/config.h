#pragma once
// The configuration of a run as plain values, and the one table that describes every key: its name,
// type, default, unit, meaning and limits. Files, flags, the environment, the resolved output,
// docs/configuration.md and the JSON schema are all driven by that table (cli/config/config.h), so
// a new key is one member here and one row in config_rows_*.cpp. Nothing here reads a file, a flag
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

#include "tutti/base/log.h"
#include "tutti/comm/on_timeout.h"
#include "tutti/config/config_words.h"
#include "tutti/models/block/layer_table.h"
#include "tutti/models/block/model.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti {

struct CompressionPolicy;

// The table gives each member's meaning, unit and limits (config_rows_*.cpp,
// docs/configuration.md).

struct RunSection {
  int64_t seed = 1;
  std::string output_dir;  ///< empty: the next free one of runs/0001, runs/0002, ...
  int64_t epochs = 1;      ///< 0: only max_steps ends the run
  int64_t max_steps = 0;   ///< 0: only epochs ends the run
  int64_t threads = 0;     ///< 0: chosen from the cores of this rank (cli/job/launch.h)
  int64_t replicas = 0;    ///< 0: one per rank
  std::string metric;      ///< empty: the task's first
  double target = 0;       ///< value of the metric that ends the run; 0: none
  int64_t patience = 0;    ///< evaluations; 0: no early stop
  double min_improvement = 0;
  int64_t log_every = 50;
  double eval_every = 1;     ///< epochs; 0: only at the end
  int64_t noise_every = 20;  ///< steps; 0: the gradient's noise scale is not measured
  bool noise_layers = false;
  std::vector<std::string> slow;  ///< "RANK:FACTOR": ranks that wait in every step
  double slow_sigma = 0;          ///< spread of random waits of all ranks; 0: off
  Precision precision = Precision::fp32;
  log::Level log_level = log::Level::info;
  bool profile = false;
};

struct DataSection {
  std::string dataset = "lattices";
  std::string dir;  ///< empty: generated data stay in memory; data sets in files need it
  std::vector<std::string> input, target;  ///< fields; empty: the first and the second
  std::vector<std::string> transforms;     ///< "FIELD: STEPS"; other fields: the data set's own
  int64_t classes = 0;                     ///< 0: the data set's own
  double validation = 0;  ///< below 1: a fraction of the training set; from 2 on a count; 0: none
  int64_t split_seed = 1;
  Shuffle shuffle = Shuffle::global;
  bool strict = false;
  std::vector<std::string> fields;  ///< "arrays": "NAME: from ARRAY ..."
  std::vector<std::string> train_files, validation_files, test_files;  ///< "arrays": below dir
  std::string statistics;                                              ///< "arrays"; empty: none
  std::vector<int64_t> table_rows{100'000};  ///< "clicks": for all categories, or for each
  std::string vocabulary;              ///< "clicks"; empty: categories are hashed. Also "text"
  std::vector<int64_t> bag_length{1};  ///< "clicks": for all categories, or for each
  bool bag_weights = false;            ///< "clicks"
  int64_t window = 256;                ///< "text" and "tokens": tokens per sample
  TextWindows windows = TextWindows::ordered;     ///< in training
  TextTokens tokenizer = TextTokens::characters;  ///< "text"
  bool segments = false;   ///< "tokens": whether samples have document numbers
  int64_t quarantine = 0;  ///< bad samples that a rank may skip
  int64_t readers = 1;
  int64_t prefetch = 3;
  bool direct_reads = false;
  bool generate_when_read = false;  ///< makes images when read, not all at the start; not a key
  int64_t generate_train = 10000;
  int64_t generate_test = 2000;
  int64_t generate_seed = 1;
};

/// Returns whether images are made when they are read: a choice that follows from other keys.
inline bool made_when_read(const DataSection& data) {
  return data.generate_when_read && data.dataset == "lattices" && data.dir.empty();
}

/// Returns whether samples are windows of one text.
inline bool is_text(const DataSection& data) {
  return data.dataset == "text" || data.dataset == "tokens";
}

/// [data.staging]
struct StagingSection {
  std::string dir;  ///< a folder on each node; empty: files are read where they are
  int64_t threads = 4;
};

/// [data.cache], per node
struct CacheSection {
  int64_t memory = 0;  ///< bytes
  int64_t disk = 0;
  std::string dir;
  bool exchange = true;  ///< between nodes
};

struct ModelSection {
  std::string name = "resnet20";
  std::string library;            ///< path of a shared object; empty: none
  std::string library_content;    ///< its SHA-256, known once it is loaded; no key
  std::vector<LayerTable> layer;  ///< for the model "layers"
  ModelTask task = ModelTask::automatic;
  Shortcut shortcut = Shortcut::automatic;
  int64_t width = 0;            ///< 0: the model's own
  int64_t classes = 0;          ///< 0: the data set's
  std::vector<int64_t> hidden;  ///< empty: the model's own
  Pooling pooling = Pooling::sum;
  FeatureInteraction interaction = FeatureInteraction::dot;
  Embeddings embeddings = Embeddings::shared;
  int64_t depth = 0;       ///< 0: the model's own
  int64_t kernel = 0;      ///< 0: the model's own
  int64_t heads = 0;       ///< 0: the model's own
  int64_t key_heads = 0;   ///< 0: the model's own
  double rotary_base = 0;  ///< 0: the model's own
  bool tied = false;
  int64_t context = 0;                              ///< 0: a sample's positions
  int64_t lora_rank = 0;                            ///< 0: no LoRA
  double lora_alpha = 0;                            ///< 0: the rank
  std::vector<std::string> lora_layers;             ///< patterns over linear layers
  double dropout = -1;                              ///< -1: the model's own
  double attention_dropout = -1;                    ///< -1: the model's own
  std::string weights;                              ///< path; empty: new ones
  std::vector<std::string> weights_except, freeze;  ///< patterns over parameters
};

struct TracingSection {
  std::vector<int64_t> fov{33, 33, 33};  ///< voxels along z, y, x
  std::vector<int64_t> deltas{8, 8, 8};  ///< voxels that a move covers along z, y, x
  double move_threshold = 0.9;
  int64_t min_object = 10000;  ///< voxels
  std::vector<double> partitions{0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  int64_t seeds = 0;  ///< per epoch; 0: one for each voxel at which an object may begin
  int64_t validation_seeds = 256;
  SeedPoints seed_points = SeedPoints::peaks;
  double segment_threshold = 0.6;
  double settle_above = 0.005;
  double join_above = 0.5;
  int64_t min_segment = 1000;  ///< voxels
};

struct BatchSection {
  int64_t local = 0;       ///< samples per batch of a replica; 0: global / (replicas * accumulate)
  int64_t global = 0;      ///< samples per update; 0: local * replicas * accumulate; both 0: 128
  int64_t accumulate = 1;  ///< batches per replica and update
};

struct OptimizerSection {
  OptimizerKind name = OptimizerKind::sgd;
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  std::vector<std::string> exclude;  ///< groups without weight decay and without the trust ratio of
                                     ///< LARS and LAMB: "bias", "norm"
  std::vector<std::string> decay, rates;  ///< "PATTERN: VALUE"
  double clip_norm = 0;                   ///< 0: the gradient is not clipped
  double clip_value = 0;                  ///< 0: its elements are not clipped
  double ema = 0;                         ///< 0: weights are not averaged
  int64_t ema_from = 0;                   ///< steps
  double beta1 = 0.9;
  double beta2 = 0.999;
  double rho = 0.9;
  double eps = 1e-8;
  double trust = 0.001;
  TableRule::Kind tables = TableRule::Kind::sgd;
  double tables_eps = 1e-10;
};

struct ScheduleSection {
  ScheduleKind name = ScheduleKind::constant;
  double warmup_epochs = 0;
  int64_t warmup_steps = 0;
  double warmup_factor = 0;
  WarmupRise warmup_rise = WarmupRise::steps;
  std::vector<int64_t> milestones;
  MilestoneUnit milestone_unit = MilestoneUnit::epochs;
  double gamma = 0.1;
  std::vector<double> factors;  ///< one a milestone, instead of gamma
  int64_t patience = 5;         ///< plateau: evaluations
  double power = 1;             ///< polynomial
  Annealing annealing = Annealing::cosine;
  double peak_at = 0.3;  ///< one_cycle: fraction of the run at which optimizer.lr is reached
  double initial_factor = 0.04;  ///< one_cycle: first rate / optimizer.lr
  double final_factor = 0;       ///< last rate / optimizer.lr
  BatchScaling scale_with_batch = BatchScaling::none;
  int64_t base_batch = 128;
};

struct LossSection {
  double label_smoothing = 0;
  std::vector<double> class_weights;  ///< empty: all equal
  MeanOver mean_over = MeanOver::weights;
  PointwiseLossKind pointwise = PointwiseLossKind::mse;
  double delta = 1;
};

struct PlanSection {
  ActivationLayout layout = ActivationLayout::automatic;
  int64_t slabs = 0;   ///< 0: chosen
  int64_t memory = 0;  ///< bytes a rank; 0: no limit
  bool measure = true;
  double bf16_error = 2;
  std::string tuning = "auto";  ///< "auto": a file in the user's cache folder; "off"; else its path
  std::string choices_from;     ///< a checkpoint or a folder of them; empty: this run makes its own
};

struct ParallelSection {
  std::vector<int64_t> spatial;      ///< parts of a sample along each dimension; empty: whole ones
  int64_t batchnorm_group_size = 1;  ///< replicas
  int64_t pipeline = 1;              ///< stages
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int64_t tensor = 1;     ///< ranks that share each replica's layers
  bool sequence = false;  ///< between these layers, those ranks share the sequences' positions
};

struct SyncSection {
  std::string scheme = "step";  ///< parse_sync()
  int64_t first_steps = 0;
  int64_t fragments = 1;
  MetState state = MetState::keep;
  OuterStep outer = OuterStep::none;
  double outer_lr = 1;
  double outer_momentum = 0.9;
  int64_t delay = 0;    ///< meetings
  double alpha = 0;     ///< 0: 0.9 / replicas; with a tree, 0.9 / tree
  int64_t tree = 0;     ///< children of a node; 0: one centre
  int64_t tree_up = 0;  ///< steps; 0: 4 times K
  MixingGraph graph = MixingGraph::ring;
  int64_t servers = 1;
  int64_t server_ranks = 0;  ///< the last ranks of the job; 0: servers are beside workers
  int64_t quorum = 0;
  double delay_compensation = 0;
  double stale_rate = 0;
};

struct ReplaySection {
  std::string machine;  ///< path of a file that describes it; empty: no replay
  std::string spill;    ///< folder for the replicas' own weights and state; empty: memory
};

struct CheckpointSection {
  int64_t every_steps = 0;   ///< 0: not by steps
  int64_t every_epochs = 1;  ///< 0: not by epochs
  int64_t keep = 2;          ///< 0: all
  int64_t memory = 0;        ///< bytes for copies that wait to be written; 0: as much as is free
  bool best = true;          ///< also keep the checkpoint with the best evaluation
  std::string dir;           ///< empty: output_dir/checkpoints
  std::string resume;  ///< empty: start anew; "latest": newest valid one in dir; else a checkpoint
                       ///< or a folder of them
};

struct CommSection {
  int64_t bucket_bytes = 0;
  bool priority = true;
  int64_t chunk_bytes = 0;
  bool reproducible = true;
  bool sharded_update = false;
  std::string algorithm;  ///< empty: chosen
  std::string shape;      ///< the network to imitate; empty: full speed
  double timeout_s = 60;
  std::string progress_threads = "auto";  ///< or a whole number
  comm::OnTimeout on_timeout = comm::OnTimeout::abort;
  bool check = false;
  std::string nodes = "auto";        ///< or "hostname"
  std::string wire = "auto";         ///< or "mpi", "tcp"
  std::string address;               ///< for comm::own_address(); empty: all addresses of each host
  std::string selection;             ///< path of a table of algorithms; empty: built-in
  std::string compression = "none";  ///< parse_compression_policy()
  int64_t compression_min_bytes = 64 << 10;
  int64_t compression_warmup_steps = 0;
  int64_t compression_ramp_steps = 0;  ///< 0: no ramp
  std::vector<std::string> compression_exclude;
};

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
                 std::vector<std::string>, std::vector<LayerTable>>;

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
  alike,      ///< a job whose ranks differ in it does not start
  may_differ  ///< it names something that belongs to a node
};

/// The kind of path that a key holds, which decides where a relative path starts.
enum class PathKind {
  none,
  read,    ///< given in a file: that file's folder; by a flag or a variable: the working folder
  data,    ///< data.dir; where that is empty, as for `read`
  written  ///< the working folder
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
  std::string unit;                       ///< "", "bytes" or "s": such values may carry a suffix
  std::optional<double> least, greatest;  ///< inclusive; elementwise for lists
  std::vector<std::string> choices;       ///< the words allowed, elementwise for lists; empty: any
  PathKind path = PathKind::none;
  std::string path_word{};  ///< a value that is not a path: "latest"
  OnResume on_resume = OnResume::fixed;
  AmongRanks among_ranks = AmongRanks::alike;
  bool or_count = false;  ///< a string: either the default or a whole number, quoted or not
  bool or_one = false;    ///< for texts: a list of one is that string, an empty list ""
  std::vector<KeyNeed> only_with{};  ///< any one gives the key an effect; empty: it always has one
  std::function<ConfigValue(const RunConfig&)> get;
  std::function<void(RunConfig&, const ConfigValue&)>
      set;  ///< throws ConfigError with the reason, without place or name
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
std::string toml_of_layer(const LayerValue& value);

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
CompressionPolicy compression_policy(const CommSection& comm);

}  // namespace tutti
