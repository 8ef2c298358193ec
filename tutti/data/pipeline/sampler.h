#pragma once
// Which samples make up which minibatch. The order is a function of the seed and the epoch alone:
// neither the number of ranks nor the number of threads, nor where a run was resumed, changes it.

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "tutti/data/pipeline/permutation.h"

namespace tutti::data {

struct SamplerSpec {
  uint64_t seed = 0;
  int64_t size = 0;         ///< samples in the set
  int replicas = 1;         ///< of the whole job
  int64_t local_batch = 1;  ///< samples per replica and step
  /// The node of each replica, from 0 on: each node has samples for itself, in an order of its own.
  /// Empty: all samples are everybody's.
  std::vector<int> node_of{};
  /// How many samples each file holds: files are dealt out to the nodes (deal_files). Empty, or
  /// fewer files than nodes: a node has the samples i with i % nodes == node.
  std::vector<int64_t> file_samples{};
  bool strict = false;  ///< refuse a set that batches do not divide
  /// Dataset::spacing() of a set whose samples overlap: an epoch has size / spacing of them, side
  /// by side, from a place on that its seed chooses.
  int64_t spacing = 1;
  bool anywhere = false;  ///< of such a set: as many, each drawn for itself
};

/// A minibatch of one replica.
struct Position {
  int64_t epoch = 0;
  int64_t step = 0;  ///< within the epoch
  int replica = 0;
};

/// Global batch `step` is the run [step * B, (step + 1) * B) of the epoch's permutation, B =
/// replicas * local_batch; replica r takes the r-th slice of local_batch samples. Samples that
/// overlap are taken side by side, or anywhere. With nodes each has its part of the batch from a
/// permutation of its own samples, as many of each; an epoch ends with the node that has fewest.
/// The incomplete last batch of an epoch is left out. Thread-safe; the permutation is computed, so
/// memory does not grow with the set, only with files of several samples where nodes have some of
/// them.
class Sampler {
 public:
  /// ConfigError if the set, or a node's part of it, is smaller than one batch; if `strict` and it
  /// does not divide; if nodes have different numbers of replicas.
  explicit Sampler(const SamplerSpec& spec);

  const SamplerSpec& spec() const { return spec_; }
  int64_t global_batch() const { return spec_.replicas * spec_.local_batch; }
  int64_t steps_per_epoch() const { return least_ / (global_batch() / nodes_); }
  int nodes() const { return nodes_; }  ///< that have samples of their own; 1 where none has
  bool by_files() const { return !runs_.empty(); }  ///< they have files of their own
  /// Samples of a node, and of the one that has fewest.
  int64_t samples_of(int node) const;
  int64_t least_samples() const { return least_; }

  /// Sample `i` in [0, local_batch) of the minibatch at `at`.
  int64_t index(const Position& at, int64_t i) const;
  /// Samples first, first + 1, ... of the minibatch at `at`; first + out.size() <= local_batch.
  void indices(const Position& at, int64_t first, std::span<int64_t> out) const;

 private:
  struct EpochOrder {
    int64_t epoch = -1;
    int node = 0;
    Permutation order;
  };

  void check_nodes();
  void deal_samples();
  void check_size() const;
  int64_t of_whole_set(int64_t own, int node) const;
  int64_t first_of_epoch(int64_t epoch) const;
  void draw(const Position& at, int64_t start, int node, std::span<int64_t> out) const;
  Permutation order_of(int64_t epoch, int node) const;

  SamplerSpec spec_;
  int64_t size_ = 0;  // samples of an epoch: spec_.size, or as many as lie side by side
  int nodes_ = 1;
  int64_t least_ = 0;       // samples of the node that has fewest
  std::vector<int> place_;  // of each replica, among those of its node
  /// A node's samples that lie in one file: the first by its number on the node, and in the set.
  struct Run {
    int64_t own = 0, first = 0;
  };
  std::vector<std::vector<Run>> runs_;  // of each node; empty: every nodes_-th sample
  std::vector<int64_t> samples_of_;     // of each node
  mutable std::mutex mutex_;
  mutable std::array<EpochOrder, 2>
      orders_;  // readers are at most one epoch ahead of the trainer: slot epoch % 2
};

/// The node of each file: in the order of their samples, most first, each goes to the node that has
/// fewest, so nodes may have different numbers of files and of samples. All 0 where there are fewer
/// files than nodes.
std::vector<int> deal_files(std::span<const int64_t> samples, int nodes);

/// A half-open range of sample indices.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Rank's part of an evaluation set: contiguous, sizes differ by at most one, every sample in
/// exactly one range.
Range evaluation_range(int64_t size, int rank, int ranks);

}  // namespace tutti::data
