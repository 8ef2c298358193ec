#pragma once
// The gradient's noise scale (McCandlish, Kaplan, Amodei 2018, appendix A.1): how many samples a
// batch needs before the gradient's mean is as large as its noise. From the squared norms of the
// gradients of small batches, one a turn, and of their mean, the gradient of the large one:
//   signal = |G|^2     = (B |g_B|^2 - b |g_b|^2) / (B - b)
//   noise  = tr(Sigma) = (|g_b|^2 - |g_B|^2) / (1 / b - 1 / B), of one sample's gradient
// Both estimates have no bias; their quotient has, so each is averaged over steps by itself. The
// critical batch is noise / signal.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/bucket.h"
#include "tutti/exchange/replicas.h"
#include "tutti/exchange/shard.h"
#include "tutti/plan/variables.h"

namespace tutti {

struct NoiseEstimate {
  double signal = 0, noise = 0;
};
/// `small`, `large`: batches in samples, small < large.
NoiseEstimate estimate_noise(double small_squares, double large_squares, double small,
                             double large);

/// Averages of the two estimates, later steps more: a step counts kKept of the one after it.
class NoiseAverage {
 public:
  static constexpr double kKept = 0.98;
  /// The mean of the estimates of `steps` steps that follow.
  void add(const NoiseEstimate& mean, int64_t steps);
  /// In samples. NaN where the mean of the gradient has not been told from nothing yet.
  double critical_batch() const;

  /// As metrics of a checkpoint, NAME.signal and so on; restore() of one without them does nothing.
  void save(const std::string& name, std::map<std::string, double>& metrics) const;
  void restore(const std::string& name, const std::map<std::string, double>& metrics);

 private:
  NoiseEstimate sum_;
  double weight_ = 0;
};

struct NoiseSettings {
  int64_t every = 0;       ///< steps; 0: never
  bool layers = false;     ///< of each parameter too
  int64_t turn_batch = 1;  ///< samples of a turn
};

/// Sums the squares while a step runs, in blocks of parameters whose sums are added in a fixed
/// tree: the same bits on any number of ranks. Each rank looks at its share of the mean gradient.
/// Not thread-safe; used by the thread that uses the communicator.
class NoiseMeter {
 public:
  /// Collective. `turns`: at least two. Everything given must outlive it.
  NoiseMeter(comm::Communicator& communicator, const ReplicaMap& turns, const Variables& variables,
             const BucketLayout& layout, const NoiseSettings& settings);

  void begin_step(int64_t step);
  /// `bucket` of a local turn is complete in `arena`, before it is added to others.
  void add_turn(int local_turn, int bucket, const float* arena);
  /// The sum over all turns of the bucket that has arrived, of the last step that began before all
  /// turns of it were added; of a shard alone where ranks share updates.
  void add_sum(int bucket, const float* sum);

  struct Reading {
    int64_t steps = 0;  ///< measured since the last reading; 0: nothing else is told
    double small_squares = 0, large_squares = 0;
    NoiseEstimate all;
    std::vector<NoiseEstimate> layers;  ///< in the order of names()
  };
  /// Collective. Of the steps since the last call, all of whose sums have been added.
  Reading read();
  /// Of the parameters that are told apart.
  const std::vector<std::string>& names() const { return names_; }
  /// Whether a step was measured since the last reading.
  bool any() const { return measured_ > 0; }

 private:
  struct Member {
    size_t at;  // floats into the arena
    size_t floats;
    size_t block;  // the first of its blocks
    size_t blocks;
  };
  void square_blocks(int bucket, const float* arena, const Shard& part);
  double of_member(const Member& member, const double* blocks) const;
  Reading reading(std::span<const double> small);

  comm::Communicator& communicator_;
  const ReplicaMap turns_;
  const BucketLayout& layout_;
  const NoiseSettings settings_;
  std::vector<Member> members_;                     // by parameter
  std::vector<Shard> mine_;                         // of each bucket
  std::vector<std::string> names_;                  // of them, where they are told apart
  std::vector<double> scratch_;                     // a sum of squares a block
  std::vector<double> small_;                       // by local turn and parameter, over steps
  std::vector<double> large_, all_large_;           // by block: of this rank's share, and of all
  std::unique_ptr<comm::CollectiveOperation> sum_;  // null on one rank
  std::vector<char> due_;                           // by bucket: its next sum is of a measured step
  bool measuring_ = false;
  int64_t measured_ = 0;
};

}  // namespace tutti
