#pragma once
// A Sampler says which samples make up which minibatch. The order depends only on the seed and the
// epoch, not on the number of ranks or threads, nor on where a run was resumed.

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
  int replicas = 1;         ///< replicas of the whole job
  int64_t local_batch = 1;  ///< samples per replica and step
  /// The node of each replica, from 0 on: each node has its own samples, in its own order. Empty:
  /// all replicas share all samples.
  std::vector<int> node_of{};
  /// How many samples each file holds: files are dealt out to the nodes (deal_files). If it is
  /// empty, or there are fewer files than nodes, a node has the samples i with i % nodes == node.
  std::vector<int64_t> file_samples{};
  bool strict = false;  ///< refuse a set that batches do not divide evenly
  /// Dataset::spacing() of a set with overlapping samples: an epoch has size / spacing of them,
  /// side by side, from a start that its seed chooses.
  int64_t spacing = 1;
  bool anywhere = false;  ///< for such a set: draw as many samples, each independently
};

/// A minibatch of one replica.
struct Position {
  int64_t epoch = 0;
  int64_t step = 0;  ///< within the epoch
  int replica = 0;
};

/// Global batch `step` is the range [step * B, (step + 1) * B) of the epoch's permutation, B =
/// replicas * local_batch; replica r takes the r-th slice of local_batch samples. Overlapping
/// samples are taken side by side, or anywhere. With nodes, each node fills an equal part of the
/// batch from a permutation of its own samples; an epoch ends with the node that has fewest. The
/// incomplete last batch of an epoch is left out. Thread-safe. The permutation is computed, so
/// memory does not grow with the set, only with the number of multi-sample files when files are
/// dealt out to nodes.
class Sampler {
 public:
  /// ConfigError if the set, or a node's part of it, is smaller than one batch; if `strict` and
  /// samples would be left over; if nodes have different numbers of replicas.
  explicit Sampler(const SamplerSpec& spec);

  const SamplerSpec& spec() const { return spec_; }
  int64_t global_batch() const { return spec_.replicas * spec_.local_batch; }
  int64_t steps_per_epoch() const { return least_ / (global_batch() / nodes_); }
  int nodes() const { return nodes_; }  ///< nodes with samples of their own; 1: none has
  bool by_files() const { return !runs_.empty(); }  ///< nodes have files of their own
  /// Return the samples of a node, and of the node that has fewest.
  int64_t samples_of(int node) const;
  int64_t least_samples() const { return least_; }

  /// Returns sample `i` in [0, local_batch) of the minibatch at `at`.
  int64_t index(const Position& at, int64_t i) const;
  /// Gets samples first, first + 1, ... of the minibatch at `at`; first + out.size() <=
  /// local_batch.
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
  int64_t size_ = 0;  // samples of an epoch: spec_.size, or as many as fit side by side
  int nodes_ = 1;
  int64_t least_ = 0;       // samples of the node that has fewest
  std::vector<int> place_;  // index of each replica within its node
  /// A node's samples in one file: the number of the first on the node, and in the set.
  struct Run {
    int64_t own = 0, first = 0;
  };
  std::vector<std::vector<Run>> runs_;  // runs of each node; empty: every nodes_-th sample
  std::vector<int64_t> samples_of_;     // samples of each node
  mutable std::mutex mutex_;
  mutable std::array<EpochOrder, 2>
      orders_;  // readers are at most one epoch ahead of the trainer: slot epoch % 2
};

/// Returns the node of each file. Files are taken by decreasing number of samples, and each goes to
/// the node that has fewest so far; so nodes may differ in files and samples. All 0 if there are
/// fewer files than nodes.
std::vector<int> deal_files(std::span<const int64_t> samples, int nodes);

/// A half-open range of sample indices.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Returns the rank's part of an evaluation set: contiguous, sizes differ by at most one, every
/// sample is in exactly one range.
Range evaluation_range(int64_t size, int rank, int ranks);

}  // namespace tutti::data
