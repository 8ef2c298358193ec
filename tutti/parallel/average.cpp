#include "tutti/parallel/average.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {
namespace {

BucketLayout one_bucket(size_t count) {
  CHECK(count > 0, "an average of nothing");
  BucketLayout layout = partition_buckets(
      std::vector<GradientEntry>{{"average over replicas", count * sizeof(float)}},
      count * sizeof(float));
  layout.buckets[0].name = "average over replicas";
  return layout;
}

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
  // Ranks differ by at most one replica: all send the larger number of rows.
  std::vector<double> mine(width * static_cast<size_t>(map.most_per_rank()), 0.0);
  std::copy(local.begin(), local.end(), mine.begin());
  std::vector<double> all(mine.size() * static_cast<size_t>(map.ranks()));
  communicator.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));

  const comm::TreeSum tree(
      map.replicas(),
      comm::all_parts(map.replicas(), comm::first_replicas(map.replicas(), map.replicas())));
  std::vector<double> column(static_cast<size_t>(map.replicas()));
  std::vector<double> sums(width);
  for (size_t i = 0; i < width; ++i) {
    for (int p = 0; p < map.ranks(); ++p)
      for (int r = map.first()[static_cast<size_t>(p)]; r < map.first()[static_cast<size_t>(p) + 1];
           ++r)
        column[static_cast<size_t>(r)] =
            all[static_cast<size_t>(p) * mine.size() +
                static_cast<size_t>(r - map.first()[static_cast<size_t>(p)]) * width + i];
    sums[i] = tree.evaluate(column);
  }
  return sums;
}

}  // namespace tutti
