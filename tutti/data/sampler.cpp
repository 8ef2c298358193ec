#include "tutti/data/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti::data {

std::vector<uint32_t> epoch_permutation(uint64_t seed, int64_t epoch, int64_t size) {
  CHECK(size >= 0 && size <= std::numeric_limits<uint32_t>::max(), "{} samples", size);
  std::vector<uint32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed, Purpose::shuffle, static_cast<uint64_t>(epoch));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[rng.below(static_cast<uint32_t>(i))]);
  return order;
}

Sampler::Sampler(const SamplerSpec& spec) : spec_(spec) {
  if (spec.replicas < 1 || spec.local_batch < 1)
    throw ConfigError(fmt::format("{} replicas of local batch {}: both must be at least 1",
                                  spec.replicas, spec.local_batch));
  if (spec.size < global_batch())
    throw ConfigError(
        fmt::format("the data set has {} samples, fewer than one global batch of {} ({} replicas x "
                    "local batch {}): "
                    "lower the batch or the replicas, or use more data",
                    spec.size, global_batch(), spec.replicas, spec.local_batch));
  if (spec.size > std::numeric_limits<uint32_t>::max())
    throw ConfigError(
        fmt::format("the data set has {} samples; shuffling is limited to 2^32 - 1", spec.size));
}

int64_t Sampler::index(const Position& at, int64_t i) const {
  int64_t result = 0;
  indices(at, i, std::span(&result, 1));
  return result;
}

void Sampler::indices(const Position& at, int64_t first, std::span<int64_t> out) const {
  CHECK(at.epoch >= 0 && at.step >= 0 && at.step < steps_per_epoch(), "epoch {} step {} of {}",
        at.epoch, at.step, steps_per_epoch());
  CHECK(at.replica >= 0 && at.replica < spec_.replicas, "replica {} of {}", at.replica,
        spec_.replicas);
  CHECK(first >= 0 && first + std::ssize(out) <= spec_.local_batch,
        "samples {} + {} of a local batch of {}", first, out.size(), spec_.local_batch);
  const int64_t start = at.step * global_batch() + at.replica * spec_.local_batch + first;
  const std::lock_guard lock(mutex_);
  EpochOrder& order = orders_[static_cast<size_t>(at.epoch % 2)];
  if (order.epoch != at.epoch)
    order = {at.epoch, epoch_permutation(spec_.seed, at.epoch, spec_.size)};
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = order.permutation[static_cast<size_t>(start) + i];
}

Range evaluation_range(int64_t size, int rank, int ranks) {
  CHECK(ranks > 0 && rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
  const int64_t base = size / ranks,
                longer = size % ranks;  // the first `longer` ranks take one sample more
  const int64_t begin = rank * base + std::min<int64_t>(rank, longer);
  return {begin, begin + base + (rank < longer ? 1 : 0)};
}

}  // namespace tutti::data
