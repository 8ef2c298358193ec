#include "tutti/exchange/sharded_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tutti/base/error.h"

namespace tutti::exchange {

namespace {

// Returns the ranges of bytes that this rank updates.
std::vector<comm::Slice> shards_of(const comm::Communicator& communicator,
                                   const BucketLayout& layout) {
  std::vector<comm::Slice> mine;
  for (size_t b = 0; b < layout.buckets.size(); ++b) {
    const Shard shard = shard_bounds(layout, static_cast<int>(b),
                                     communicator.size())[static_cast<size_t>(communicator.rank())];
    mine.push_back({layout.buckets[b].begin + shard.begin, shard.bytes()});
  }
  return mine;
}

}  // namespace

// Over a shaped link, ranks behave as if they did not see each other's memory.
SharedWeights::SharedWeights(comm::Communicator& communicator, const BucketLayout& layout,
                             size_t bytes)
    : shared_(communicator.shares_memory() && !communicator.shaped()),
      mine_(!shared_ || communicator.rank() == communicator.neighbours().first()),
      window_(shared_ ? communicator.allocate_once(bytes, shards_of(communicator, layout))
                      : communicator.allocate(bytes)),
      data_(shared_ ? window_->peer(communicator.neighbours().first()) : window_->data()) {}

ShardedUpdate::ShardedUpdate(comm::Communicator& communicator, const BucketLayout& layout,
                             const SharedWeights& weights, const std::vector<size_t>& norms)
    : communicator_(communicator) {
  if (weights.shared())
    readers_ = communicator.plan({.name = "all have read the weights",
                                  .kind = comm::Collective::barrier,
                                  .priority = static_cast<int>(layout.buckets.size())});
  for (size_t b = 0; b < layout.buckets.size(); ++b) {
    const Bucket& bucket = layout.buckets[b];
    const std::vector<Shard>& shards =
        shards_.emplace_back(shard_bounds(layout, static_cast<int>(b), communicator.size()));
    comm::CollectiveSpec gather{.name = fmt::format("weights of {}", bucket.name),
                                .kind = comm::Collective::allgather,
                                .count = bucket.floats(),
                                .output = weights.data() + bucket.begin,
                                .shared_output = weights.shared(),
                                .priority = static_cast<int>(b)};
    for (const Shard& shard : shards)
      gather.parts.push_back({shard.begin / sizeof(float), shard.bytes() / sizeof(float)});
    gather.input = weights.data() + bucket.begin + mine(static_cast<int>(b)).begin;
    gathers_.push_back(communicator.plan(gather));
  }
  for (size_t set = 0; set < norms.size(); ++set) {
    std::vector<float>& sums = norm_sums_.emplace_back(norms[set]);
    norms_.push_back(communicator.plan({.name = fmt::format("norms {}", set),
                                        .kind = comm::Collective::allreduce,
                                        .count = norms[set],
                                        .output = sums.data(),
                                        .priority = static_cast<int>(set)}));
  }
}

Shard ShardedUpdate::mine(int bucket) const {
  return shards(bucket)[static_cast<size_t>(communicator_.rank())];
}

void ShardedUpdate::finish_reading() {
  if (readers_) readers_->start();
}

bool ShardedUpdate::all_have_read() { return !readers_ || readers_->test(); }

void ShardedUpdate::wait_for_readers() {
  if (readers_) wait(*readers_);
}

void ShardedUpdate::start_norms(int set, std::span<const float> sums) {
  std::vector<float>& mine = norm_sums_.at(static_cast<size_t>(set));
  CHECK(sums.size() == mine.size(), "{} norms for set {} of {}", sums.size(), set, mine.size());
  std::ranges::copy(sums, mine.begin());
  norms_[static_cast<size_t>(set)]->start();
}

bool ShardedUpdate::norms_done(int set) { return norms_[static_cast<size_t>(set)]->test(); }

void ShardedUpdate::finish_norms(int set, std::span<float> sums) {
  wait(*norms_.at(static_cast<size_t>(set)));
  std::ranges::copy(norm_sums_[static_cast<size_t>(set)], sums.begin());
}

void ShardedUpdate::updated(int bucket) { gathers_[static_cast<size_t>(bucket)]->start(); }
bool ShardedUpdate::gathered(int bucket) { return gathers_[static_cast<size_t>(bucket)]->test(); }
void ShardedUpdate::gather(int bucket) { wait(*gathers_[static_cast<size_t>(bucket)]); }

void ShardedUpdate::wait(comm::Operation& operation) {
  if (operation.test()) return;
  const auto begin = std::chrono::steady_clock::now();
  operation.wait();
  exposed_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace tutti::exchange
