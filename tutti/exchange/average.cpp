#include "tutti/exchange/average.h"

#include <algorithm>
#include <array>

#include "tutti/base/error.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::exchange {
namespace {

BucketLayout one_bucket(size_t count) {
  CHECK(count > 0, "an average of nothing");
  BucketLayout layout = partition_buckets(
      std::vector<GradientEntry>{{"average over replicas", count * sizeof(float)}},
      count * sizeof(float));
  layout.buckets[0].name = "average over replicas";
  return layout;
}

// The sums over a range of replicas, as far as they are nodes of the tree over all replicas: one
// sum for each maximal node in the range. A range has at most two nodes of each size.
struct PartialSum {
  explicit PartialSum(int replicas) : replicas(replicas) {}

  // Appends the next node. Two nodes that are the halves of a larger node are merged into it.
  void append(comm::Range node, double sum) {
    while (count > 0) {
      const auto last = static_cast<size_t>(count - 1);
      const comm::Range both{nodes[last].lo, node.hi};
      if (!comm::is_node(replicas, both) || comm::split_point(both) != node.lo) break;
      node = both;
      sum = sums[last] + sum;
      --count;
    }
    CHECK(static_cast<size_t>(count) < kMost, "{} replicas", replicas);
    nodes[static_cast<size_t>(count)] = node;
    sums[static_cast<size_t>(count++)] = sum;
  }

  static constexpr size_t kMost = 64;
  int replicas, count = 0;
  std::array<comm::Range, kMost> nodes{};
  std::array<double, kMost> sums{};
};

}  // namespace

ReplicaAverage::ReplicaAverage(comm::Communicator& communicator, const ReplicaMap& map,
                               size_t count)
    : exchange_(communicator, map, one_bucket(count)), count_(count), average_(count) {}

std::span<const float> ReplicaAverage::finish() {
  exchange_.wait(0);
  const float* sum = exchange_.result(0);
  const auto replicas = static_cast<float>(exchange_.map().replicas());
  std::transform(sum, sum + count_, average_.begin(), [replicas](float x) { return x / replicas; });
  return average_;
}

std::vector<double> sum_over_replicas(comm::Communicator& communicator, const ReplicaMap& map,
                                      std::span<const double> local, size_t width) {
  CHECK(local.size() == width * static_cast<size_t>(map.local_count()),
        "{} values for {} replicas of {}", local.size(), map.local_count(), width);
  std::vector<double> sums(width);
  for (size_t i = 0; i < width; ++i) {
    PartialSum mine(map.replicas());
    for (int l = 0; l < map.local_count(); ++l)
      mine.append({map.replica(l), map.replica(l) + 1}, local[static_cast<size_t>(l) * width + i]);
    sums[i] = communicator
                  .combine_value(mine,
                                 [](PartialSum& low, const PartialSum& high) {
                                   for (int k = 0; k < high.count; ++k)
                                     low.append(high.nodes[static_cast<size_t>(k)],
                                                high.sums[static_cast<size_t>(k)]);
                                 })
                  .sums[0];
  }
  return sums;
}

}  // namespace tutti::exchange
