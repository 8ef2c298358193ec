#pragma once
// Weights: the arenas of everything that training keeps on one rank, and their plain form for
// files.

#include <filesystem>
#include <span>
#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/keep/safetensors.h"
#include "tutti/plan/executor.h"
#include "tutti/plan/variables.h"
#include "tutti/train/network/slice_ranks.h"

namespace tutti {

/// Bytes [begin, end) of the parameters' arena.
struct ArenaRange {
  size_t begin = 0, end = 0;
};

class Weights {
 public:
  /// All zeros. `variables` must outlive this. Statistics are kept for each local replica.
  /// `parameters`: the parameters' arena where it is somebody else's memory
  /// (exchange/sharded_update.h); of several ranks that share it, one has `fills` true and puts
  /// values into it.
  Weights(const Variables& variables, int local_replicas, std::byte* parameters = nullptr,
          bool fills = true);
  /// Whether the local replicas are in lock step, with one set of parameters and optimizer state,
  /// or each has its own.
  enum class Replicas { alike, apart };
  /// The same, in memory of its own. `folder`, where it is not empty, is where replicas that are
  /// apart keep theirs (Buffer): memory may be short for all of them.
  Weights(const Variables& variables, int local_replicas, Replicas replicas,
          const std::filesystem::path& folder = {});

  /// Parameters in slices: tensors of files are whole, and making them is collective among those
  /// who share a replica, whose first rank gets them. Must outlive this.
  void share(SliceRanks& ranks) { slice_ranks_ = &ranks; }

  /// Fills parameters, tables and statistics as their Init says; a value depends on the seed and
  /// its name alone.
  void initialise(uint64_t seed);

  /// Of replicas that are apart, one's own.
  std::byte* parameters(int local_replica = 0) const {
    return parameters_ ? parameters_ : own_parameters_[set_of(local_replica)].data();
  }
  std::byte* state(int local_replica = 0) const { return state_[set_of(local_replica)].data(); }
  std::byte* tables() const { return tables_.data(); }
  bool apart() const { return apart_; }
  /// Makes every local replica's parameters and state the first one's.
  void make_alike();
  /// The moving average of the trained parameters, a kind of state; null: none is kept.
  std::byte* average() const;
  /// Makes the average the parameters, unless import_average() has set it, in what this rank keeps
  /// of it.
  void begin_average(std::span<const ArenaRange> kept);
  std::byte* statistics(int local_replica) const {
    return statistics_[static_cast<size_t>(local_replica)].data();
  }
  /// Gradients are bound by who exchanges them.
  ReplicaState replica(int local_replica) const {
    return {.parameters = parameters(local_replica),
            .tables = tables_.data(),
            .statistics = statistics(local_replica),
            .state = state(local_replica)};
  }
  /// Whether this rank puts values into the parameters.
  bool fills_parameters() const { return fills_; }
  int local_replicas() const { return static_cast<int>(statistics_.size()); }
  const Variables& variables() const { return variables_; }
  size_t memory_bytes() const;

  // Tensors for files: plain f32, made when a writer comes to them. They refer to this.

  /// `parameters` and `statistics` (arenas laid out as the own), under their own names. Tables are
  /// not among them (train/network/table_files.h).
  std::vector<TensorRef> model_tensors(const std::byte* parameters,
                                       const std::byte* statistics) const;
  /// Optimizer state as "PARAMETER.KIND", of trained parameters. An average is not among it, but
  /// the parameters themselves are as "PARAMETER.raw": a model is exported with the average.
  std::vector<TensorRef> state_tensors() const;
  /// An arena laid out as the trained parameters, as "PARAMETER" + suffix.
  std::vector<TensorRef> arena_tensors(const std::string& suffix, const std::byte* arena) const;
  /// The reverse. Throws ConfigError as import_model does.
  void import_arena(const SafetensorsFile& file, const std::string& suffix, std::byte* arena) const;
  /// What each local replica has of its own as "replicas/NAME", a row each: statistics, and where
  /// replicas are apart trained parameters and their state.
  std::vector<TensorRef> row_tensors() const;

  /// Takes parameters, and into every local replica the statistics, from a file's tensors by name,
  /// one after another. Names may have other programs' beginnings (foreign_names.h), which the log
  /// says. Throws ConfigError naming what is missing, unknown or of another shape; entries of other
  /// systems that are no parameters here (is_foreign_buffer()) are passed over. What fits one of
  /// `except` keeps its value, and need not be there. Tables are passed over
  /// (train/network/table_files.h).
  void import_model(const SafetensorsFile& file, std::span<const std::string> except = {});
  /// The reverse of state_tensors, for what this rank keeps: `kept`, in rising order. Nothing else
  /// of the arena is touched, so it takes no memory. Returns the parameters of which the file has
  /// no state: those stay at zero.
  std::vector<std::string> import_state(const SafetensorsFile& file,
                                        std::span<const ArenaRange> kept);
  /// Of a model that was exported with an average: that, for what this rank keeps, and the
  /// parameters themselves.
  void import_average(const SafetensorsFile& model, std::span<const ArenaRange> kept);
  /// `all`: the file must have every trained parameter. Otherwise one of which it has no state at
  /// all was frozen, and its value is the model's.
  void import_raw(const SafetensorsFile& state, bool all);
  /// One row of what row_tensors() gave, for one local replica. `files`: of the ranks that had it,
  /// one variable each in one of them.
  void import_rows(std::span<const SafetensorsFile* const> files, int local_replica, int row);
  /// Of replicas that are apart: what each has besides, laid out as the trained parameters, in rows
  /// of its own "replicas/PARAMETER.NAME" from now on. Pointers are borrowed.
  void add_rows(const std::string& name, std::vector<float*> of_local);
  /// Whether import_rows() has found what add_rows() added.
  bool has_added_rows() const { return added_found_; }
  /// Whether there is anything that row_tensors() gives.
  bool has_rows() const { return apart_ || !variables_.statistics.empty(); }
  /// The same of a checkpoint from before there were rows: `replica` of the job as "replica
  /// R/NAME".
  void import_named_statistics(const SafetensorsFile& file, int local_replica, int replica);

 private:
  TensorRef tensor_of(std::string name, const Variable& variable, const std::byte* arena) const;
  /// A variable's place in the arena of a kind of state, where `kept` says, from a tensor.
  static void import_kept(const SafetensorsFile& file, const std::string& name,
                          const Variable& variable, std::byte* arena,
                          std::span<const ArenaRange> kept);

  size_t set_of(int local_replica) const {
    return apart_ ? static_cast<size_t>(local_replica) : size_t{0};
  }
  /// A variable of which each local replica has one of its own.
  struct OwnVariable {
    const Variable* variable;
    std::string name;  // of its rows
    int kind;          // of state, and behind these of what was added; else one of these:
    static constexpr int kParameter = -1, kStatistic = -2;
  };
  std::vector<OwnVariable> own_variables() const;
  std::byte* arena_of(const OwnVariable& own, int local_replica) const;

  const Variables& variables_;
  SliceRanks* slice_ranks_ = nullptr;
  const bool apart_;
  std::vector<Buffer> own_parameters_, state_;  // one, or one of each local replica
  Buffer tables_;
  std::byte* parameters_;  // somebody else's memory, or null
  bool fills_, average_given_ = false, added_found_ = false;
  struct AddedRows {
    std::string name;
    std::vector<float*> of_local;
  };
  std::vector<AddedRows> added_;
  std::vector<Buffer> statistics_;
};

/// Parameters and one replica's statistics alone, to evaluate them.
class ModelWeights {
 public:
  explicit ModelWeights(const Variables& variables)
      : variables_(without_state(variables)), weights_(variables_, 1) {}
  Weights& weights() { return weights_; }
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

 private:
  static Variables without_state(Variables variables) {
    variables.state_kinds.clear();
    std::erase_if(variables.tables, [](const TableVariable& t) { return t.kept_by_update; });
    return variables;
  }
  Variables variables_;  // before those that refer to it
  Weights weights_;
};

}  // namespace tutti
