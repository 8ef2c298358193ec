#pragma once
// Averages and sums over replicas outside the gradient: batch-norm statistics before an evaluation
// or a checkpoint, and the counts and losses of an evaluation. They are added in the same tree as
// gradients, so that the bits are the same on any number of ranks.

#include <span>
#include <vector>

#include "tutti/exchange/exchange.h"

namespace tutti::exchange {

/// Averages `count` floats over all replicas. Planned once, used often.
class ReplicaAverage {
 public:
  /// Collective. The communicator must outlive it.
  ReplicaAverage(comm::Communicator& communicator, const ReplicaMap& map, size_t count);

  /// Returns the average of every replica's values: write(i, place) fills local replica i's `count`
  /// values; it is called for each local replica in order. Collective and blocking. The result
  /// stays valid until the next call.
  template <class Write>
  std::span<const float> average(Write&& write) {
    begin(write);
    return finish();
  }

  /// The two halves of average(). Communication goes on in between, as far as ranks make progress.
  template <class Write>
  void begin(Write&& write) {
    for (int local = 0; local < exchange_.map().local_count(); ++local) {
      write(local, std::span<float>(exchange_.slot(local), count_));
      exchange_.ready(local, 0);
    }
  }
  std::span<const float> finish();

 private:
  GradientExchange exchange_;
  size_t count_;
  std::vector<float> average_;
};

/// Sums `width` values over all replicas in double precision: `local` has local_count() rows of
/// `width`. For a few values, such as correct predictions, samples and summed losses. Collective
/// and blocking.
std::vector<double> sum_over_replicas(comm::Communicator& communicator, const ReplicaMap& map,
                                      std::span<const double> local, size_t width);

}  // namespace tutti::exchange
