#pragma once
// Weights: the arenas of all values that training keeps on one rank, and their plain form for
// files.

#include <filesystem>
#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/keep/safetensors.h"
#include "tutti/plan/run/executor.h"
#include "tutti/plan/variables.h"
#include "tutti/train/network/slice_ranks.h"

namespace tutti::train {

/// Bytes [begin, end) of the parameters' arena.
struct ArenaRange {
  size_t begin = 0, end = 0;
};

class Weights {
 public:
  /// Begins with zeros. `variables` must outlive this object. Statistics are kept for each local
  /// replica. `parameters` is the parameters' arena if it is borrowed memory
  /// (exchange/sharded_update.h); if several ranks share it, one of them has `fills` true and
  /// writes values into it.
  Weights(const plan::Variables& variables, int local_replicas, std::byte* parameters = nullptr,
          bool fills = true);
  /// Whether the local replicas run in lock step with one set of parameters and optimizer state, or
  /// each has its own.
  enum class Replicas { same, apart };
  /// The same, in memory of its own. If `folder` is not empty, replicas that are apart keep their
  /// values there (Buffer): memory may be too small for all of them.
  Weights(const plan::Variables& variables, int local_replicas, Replicas replicas,
          const std::filesystem::path& folder = {});

  /// Sets the ranks for parameters in slices: tensors in files are whole, and making them is
  /// collective among the ranks of a replica, whose first rank gets them. `ranks` must outlive this
  /// object.
  void share(SliceRanks& ranks) { slice_ranks_ = &ranks; }

  /// Fills parameters, tables and statistics as their Init specifies; a value depends only on the
  /// seed and its name.
  void initialise(uint64_t seed);

  /// Returns the parameters; if replicas are apart, this replica's own.
  std::byte* parameters(int local_replica = 0) const {
    return parameters_ ? parameters_ : own_parameters_[set_of(local_replica)].data();
  }
  std::byte* state(int local_replica = 0) const { return state_[set_of(local_replica)].data(); }
  std::byte* tables() const { return tables_.data(); }
  bool apart() const { return apart_; }
  /// Copies the first local replica's parameters and state to all others.
  void make_same();
  /// Returns the moving average of the trained parameters, a kind of state; null: there is none.
  std::byte* average() const;
  /// Copies the parameters into the average, within the ranges that this rank keeps, unless
  /// import_average() has set it.
  void begin_average(std::span<const ArenaRange> kept);
  std::byte* statistics(int local_replica) const {
    return statistics_[static_cast<size_t>(local_replica)].data();
  }
  /// Gradients are bound by the caller that exchanges them.
  plan::ReplicaState replica(int local_replica) const {
    return {.parameters = parameters(local_replica),
            .tables = tables_.data(),
            .statistics = statistics(local_replica),
            .state = state(local_replica)};
  }
  /// Returns whether this rank writes values into the parameters.
  bool fills_parameters() const { return fills_; }
  int local_replicas() const { return static_cast<int>(statistics_.size()); }
  const plan::Variables& variables() const { return variables_; }
  size_t memory_bytes() const;

  // Tensors for files: plain f32, made when a writer reaches them. They refer to this object.

  /// Returns `parameters` and `statistics` (arenas laid out like this object's), under their own
  /// names. Tables are not included (train/network/table_files.h).
  std::vector<keep::TensorRef> model_tensors(const std::byte* parameters,
                                             const std::byte* statistics) const;
  /// Returns the optimizer state of trained parameters as "PARAMETER.KIND". If there is an average
  /// it is not included; the parameters themselves are, as "PARAMETER.raw": a model is exported
  /// with the average.
  std::vector<keep::TensorRef> state_tensors() const;
  /// Returns an arena laid out like the trained parameters, as "PARAMETER" + suffix.
  std::vector<keep::TensorRef> arena_tensors(const std::string& suffix,
                                             const std::byte* arena) const;
  /// Reads what arena_tensors() wrote. Throws ConfigError like import_model().
  void import_arena(const keep::SafetensorsFile& file, const std::string& suffix,
                    std::byte* arena) const;
  /// Returns the values that each local replica has of its own as "replicas/NAME", one row each:
  /// statistics and, if replicas are apart, trained parameters and their state.
  std::vector<keep::TensorRef> row_tensors() const;

  /// Reads parameters, and statistics for every local replica, from a file's tensors by name, one
  /// after another. Names may have other programs' prefixes (foreign_names.h), which are logged.
  /// Throws ConfigError naming a tensor that is missing, unknown or of another shape; other
  /// systems' entries that are not parameters here (is_foreign_buffer()) are ignored. A variable
  /// that matches one of `except` keeps its value, and may be missing. Tables are skipped
  /// (train/network/table_files.h).
  void import_model(const keep::SafetensorsFile& file, std::span<const std::string> except = {});
  /// Reads what state_tensors() wrote, within the ranges that this rank keeps: `kept`, in rising
  /// order. The rest of the arena is not touched, so it takes no memory. Returns the parameters
  /// without state in the file: they stay at zero.
  std::vector<std::string> import_state(const keep::SafetensorsFile& file,
                                        std::span<const ArenaRange> kept);
  /// Reads, for a model that was exported with an average, that average into the ranges that this
  /// rank keeps.
  void import_average(const keep::SafetensorsFile& model, std::span<const ArenaRange> kept);
  /// Reads the parameters themselves. `all`: the file must have every trained parameter. Otherwise
  /// a parameter without any state in it was frozen, and keeps the model's value.
  void import_raw(const keep::SafetensorsFile& state, bool all);
  /// Reads one row written by row_tensors() for one local replica. `files` are those of the ranks
  /// that had it; each variable is in one of them.
  void import_rows(std::span<const keep::SafetensorsFile* const> files, int local_replica, int row);
  /// Adds, for replicas that are apart, further values of each replica, laid out like the trained
  /// parameters, which get rows of their own "replicas/PARAMETER.NAME" from now on. Pointers are
  /// borrowed.
  void add_rows(const std::string& name, std::vector<float*> of_local);
  /// Returns whether import_rows() has found the rows that add_rows() added.
  bool has_added_rows() const { return added_found_; }
  /// Returns whether row_tensors() returns anything.
  bool has_rows() const { return apart_ || !variables_.statistics.empty(); }
  /// Does the same for a checkpoint from before there were rows: `replica` of the job is stored as
  /// "replica R/NAME".
  void import_named_statistics(const keep::SafetensorsFile& file, int local_replica, int replica);

 private:
  keep::TensorRef tensor_of(std::string name, const plan::Variable& variable,
                            const std::byte* arena) const;
  /// Reads a tensor into a variable's place in a state arena, within `kept`.
  static void import_kept(const keep::SafetensorsFile& file, const std::string& name,
                          const plan::Variable& variable, std::byte* arena,
                          std::span<const ArenaRange> kept);

  size_t set_of(int local_replica) const {
    return apart_ ? static_cast<size_t>(local_replica) : size_t{0};
  }
  /// A variable of which each local replica has its own copy.
  struct OwnVariable {
    const plan::Variable* variable;
    std::string name;  // name of its rows
    int kind;          // index of a state, then of an added value; or one of these:
    static constexpr int kParameter = -1, kStatistic = -2;
  };
  std::vector<OwnVariable> own_variables() const;
  std::byte* arena_of(const OwnVariable& own, int local_replica) const;

  const plan::Variables& variables_;
  SliceRanks* slice_ranks_ = nullptr;
  const bool apart_;
  std::vector<device::Buffer> own_parameters_, state_;  // one, or one per local replica
  device::Buffer tables_;
  std::byte* parameters_;  // borrowed memory, or null
  bool fills_, average_given_ = false, added_found_ = false;
  struct AddedRows {
    std::string name;
    std::vector<float*> of_local;
  };
  std::vector<AddedRows> added_;
  std::vector<device::Buffer> statistics_;
};

/// Only parameters and one replica's statistics, for evaluation.
class ModelWeights {
 public:
  explicit ModelWeights(const plan::Variables& variables)
      : variables_(without_state(variables)), weights_(variables_, 1) {}
  Weights& weights() { return weights_; }
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

 private:
  static plan::Variables without_state(plan::Variables variables) {
    variables.state_kinds.clear();
    std::erase_if(variables.tables, [](const plan::TableVariable& t) { return t.kept_by_update; });
    return variables;
  }
  plan::Variables variables_;  // must precede members that refer to it
  Weights weights_;
};

}  // namespace tutti::train
