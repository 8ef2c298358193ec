#pragma once
// The gradient's noise scale (McCandlish, Kaplan, Amodei 2018, appendix A.1): the number of samples
// in a batch at which the gradient's mean is as large as its noise. It follows from the squared
// norms of the gradients of small batches, the micro-batches, and of their mean, the gradient of
// the large batch:
//   signal = |G|^2     = (B |g_B|^2 - b |g_b|^2) / (B - b)
//   noise  = tr(Sigma) = (|g_b|^2 - |g_B|^2) / (1 / b - 1 / B), for one sample's gradient
// Both estimates are unbiased, but their quotient is not, so each is averaged over steps
// separately. The critical batch is noise / signal.

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

namespace tutti::train {

struct NoiseEstimate {
  double signal = 0, noise = 0;
};
/// Estimates from batches of `small` and `large` samples, small < large.
NoiseEstimate estimate_noise(double small_squares, double large_squares, double small,
                             double large);

/// Averages the two estimates, with more weight on later steps: a step's weight is kKept times the
/// next one's.
class NoiseAverage {
 public:
  static constexpr double kKept = 0.98;
  /// Adds the mean of the estimates of the `steps` next steps.
  void add(const NoiseEstimate& mean, int64_t steps);
  /// Returns the critical batch in samples; NaN if the gradient's mean cannot be distinguished from
  /// 0 yet.
  double critical_batch() const;

  /// Saves as metrics of a checkpoint, NAME.signal and so on; restore() does nothing if they are
  /// absent.
  void save(const std::string& name, std::map<std::string, double>& metrics) const;
  void restore(const std::string& name, const std::map<std::string, double>& metrics);

 private:
  NoiseEstimate sum_;
  double weight_ = 0;
};

struct NoiseSettings {
  int64_t every = 0;                ///< steps; 0: never
  bool layers = false;              ///< also measure each parameter
  int64_t micro_batch_samples = 1;  ///< samples of a micro-batch
};

/// Sums the squares while a step runs, in blocks of parameters whose sums are added in a fixed
/// tree: the bits are the same on any number of ranks. Each rank processes its share of the mean
/// gradient. Not thread-safe; used by the thread that uses the communicator.
class NoiseMeter {
 public:
  /// Collective. `micro_batches` maps them, at least two. All arguments must outlive this
  /// object.
  NoiseMeter(comm::Communicator& communicator, const exchange::ReplicaMap& micro_batches,
             const plan::Variables& variables, const exchange::BucketLayout& layout,
             const NoiseSettings& settings);

  void begin_step(int64_t step);
  /// Returns whether this step is measured.
  bool measuring() const { return measuring_; }
  /// Takes a complete bucket of a local micro-batch in `arena`, before it is added to others.
  void add_micro_batch(int local_micro_batch, int bucket, const float* arena);
  /// Takes a bucket's arrived sum over all micro-batches; it belongs to the step in which they were
  /// added. Where ranks share updates, only this rank's shard is used.
  void add_sum(int bucket, const float* sum);

  struct Reading {
    int64_t steps = 0;  ///< steps since the last reading; 0: the other members are empty
    double small_squares = 0, large_squares = 0;
    NoiseEstimate all;
    std::vector<NoiseEstimate> layers;  ///< in the order of names()
  };
  /// Collective. Reads the steps since the last call, all of whose sums must have been added.
  Reading read();
  /// Returns the names of the parameters that are measured separately.
  const std::vector<std::string>& names() const { return names_; }
  /// Returns whether a step was measured since the last reading.
  bool any() const { return measured_ > 0; }

 private:
  struct Member {
    size_t at;  // offset into the arena, in floats
    size_t floats;
    size_t block;  // index of its first block
    size_t blocks;
  };
  void square_blocks(int bucket, const float* arena, const exchange::Shard& part);
  double of_member(const Member& member, const double* blocks) const;
  Reading reading(std::span<const double> small);

  comm::Communicator& communicator_;
  const exchange::ReplicaMap micro_batches_;
  const exchange::BucketLayout& layout_;
  const NoiseSettings settings_;
  std::vector<Member> members_;                     // by parameter
  std::vector<exchange::Shard> mine_;               // by bucket
  std::vector<std::string> names_;                  // their names, if they are measured separately
  std::vector<double> scratch_;                     // one sum of squares per block
  std::vector<double> small_;                       // by local micro-batch and parameter
  std::vector<double> large_, all_large_;           // by block: this rank's share, and the total
  std::unique_ptr<comm::CollectiveOperation> sum_;  // null on one rank
  std::vector<char> due_;                           // by bucket: its next sum is measured
  bool measuring_ = false;
  int64_t measured_ = 0;
};

}  // namespace tutti::train
