#include "tutti/data/sampler.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "tutti/base/error.h"

namespace tutti::data {

Sampler::Sampler(const SamplerSpec& spec) : spec_(spec) {
  if (spec.replicas < 1 || spec.local_batch < 1)
    throw ConfigError(fmt::format("{} replicas of local batch {}: both must be at least 1",
                                  spec.replicas, spec.local_batch));
  check_nodes();
  check_size();
}

void Sampler::check_nodes() {
  std::vector<int> replicas(1, 0);
  for (int r = 0; r < spec_.replicas; ++r) {
    const auto node =
        spec_.node_of.empty() ? 0 : static_cast<size_t>(spec_.node_of[static_cast<size_t>(r)]);
    if (node >= replicas.size()) replicas.resize(node + 1, 0);
    place_.push_back(replicas[node]++);
  }
  nodes_ = static_cast<int>(replicas.size());
  if (std::ranges::adjacent_find(replicas, std::ranges::not_equal_to{}) != replicas.end())
    throw ConfigError(fmt::format(
        "data.shuffle = \"shard\" gives each node as many samples: it needs as many replicas on "
        "each node, but they have {}",
        fmt::join(replicas, ", ")));
}

void Sampler::check_size() const {
  const std::string batch = fmt::format("{} ({} replicas x local batch {})", global_batch(),
                                        spec_.replicas, spec_.local_batch);
  if (spec_.size / nodes_ < global_batch() / nodes_)
    throw ConfigError(
        fmt::format("the data set has {} samples, fewer than one global batch of {}: lower the "
                    "batch or the replicas, or use more data",
                    spec_.size, batch));
  if (const int64_t rest = spec_.size % global_batch(); spec_.strict && rest > 0)
    throw ConfigError(fmt::format(
        "data.strict: {} training samples are no multiple of {}a global batch of {}: {} are left "
        "over; use {} samples or another batch, or set data.strict = false",
        spec_.size,
        nodes_ > 1
            ? fmt::format("{} nodes x a node's batch of {}, ", nodes_, global_batch() / nodes_)
            : "",
        batch, rest, spec_.size - rest));
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
  const auto replica = static_cast<size_t>(at.replica);
  const int node = nodes_ > 1 ? spec_.node_of[replica] : 0;
  const int64_t start =
      at.step * (global_batch() / nodes_) + place_[replica] * spec_.local_batch + first;
  const Permutation order = order_of(at.epoch, node);
  order.run(start, out);
  for (int64_t& sample : out) sample = sample * nodes_ + node;
}

Permutation Sampler::order_of(int64_t epoch, int node) const {
  const std::lock_guard lock(mutex_);
  EpochOrder& kept = orders_[static_cast<size_t>(epoch % 2)];
  if (kept.epoch != epoch || kept.node != node)
    kept = {
        epoch, node,
        Permutation(spec_.seed, epoch * nodes_ + node, (spec_.size - node + nodes_ - 1) / nodes_)};
  return kept.order;
}

Range evaluation_range(int64_t size, int rank, int ranks) {
  CHECK(ranks > 0 && rank >= 0 && rank < ranks, "rank {} of {}", rank, ranks);
  const int64_t base = size / ranks,
                longer = size % ranks;  // the first `longer` ranks take one sample more
  const int64_t begin = rank * base + std::min<int64_t>(rank, longer);
  return {begin, begin + base + (rank < longer ? 1 : 0)};
}

}  // namespace tutti::data
