#include "tutti/exchange/sharded_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/exchange/exchange.h"

namespace tutti::exchange {
namespace {

const std::vector<GradientEntry> kShardedEntries{
    {"fc", 400}, {"conv3", 48000}, {"bn3", 64}, {"conv2", 20000}, {"conv1", 432}};

float sharded_gradient(int step, int replica, size_t i) {
  Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(replica) << 32 | i);
  return rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)));
}

BucketLayout layout() { return partition_buckets(kShardedEntries, 16384); }

// Runs steps of w -= sum of gradients; every rank writes its own shard. With `sharded` false one
// rank does everything.
std::vector<float> trained_weights(comm::Communicator& c, int replicas, int steps, bool sharded) {
  GradientExchange exchange(c, ReplicaMap(replicas, c.size(), c.rank()), layout(),
                            {.sharded = sharded});
  SharedWeights memory(c, exchange.layout(), exchange.layout().bytes);
  ShardedUpdate shards(c, exchange.layout(), memory, {});
  auto* const weights = reinterpret_cast<float*>(memory.data());
  for (int step = 0; step < steps; ++step) {
    // A forward pass reads all weights: ThreadSanitizer or a wrong bit would reveal a race.
    float read = 0;
    for (size_t i = 0; i < exchange.layout().bytes / 4; ++i) read += weights[i];
    EXPECT_TRUE(std::isfinite(read));
    for (int local = 0; local < exchange.map().local_count(); ++local)
      for (int b = 0; b < exchange.buckets(); ++b) {
        const Bucket& bucket = exchange.layout().buckets[static_cast<size_t>(b)];
        for (size_t i = bucket.begin / 4; i < (bucket.begin + bucket.bytes) / 4; ++i)
          exchange.slot(local)[i] = sharded_gradient(step, exchange.map().replica(local), i);
        exchange.ready(local, b);
      }
    shards.finish_reading();
    for (int b = exchange.buckets(); b-- > 0;) {
      exchange.wait(b);
      shards.wait_for_readers();
      const size_t begin = exchange.layout().buckets[static_cast<size_t>(b)].begin;
      const Shard mine = shards.mine(b);
      for (size_t i = mine.begin / 4; i < mine.end / 4; ++i)
        weights[begin / 4 + i] -= 1e-3f * exchange.result(b)[i];
      shards.updated(b);
    }
    for (int b = exchange.buckets(); b-- > 0;) shards.gather(b);
  }
  std::vector<float> all(weights, weights + exchange.layout().bytes / 4);
  c.barrier();  // no rank frees the memory while others copy it
  return all;
}

TEST(ShardedUpdate, HasTheBitsOfOneRank) {
  for (const int replicas : {2, 3, 4, 6}) {
    const auto single = comm::make_single_communicator();
    const std::vector<float> want = trained_weights(*single, replicas, 4, false);
    for (const char* link : {"", "10gbit"})  // shared memory; as over a network
      for (int ranks = 2; ranks <= std::min(replicas, 4); ++ranks)
        comm::run_ranks(ranks, [&](comm::Communicator& c) {
          if (*link) c.set_shape(comm::LinkShape::parse(link));
          const std::vector<float> got = trained_weights(c, replicas, 4, true);
          ASSERT_EQ(std::memcmp(got.data(), want.data(), want.size() * 4), 0)
              << replicas << " replicas on " << ranks << " ranks " << link;
        });
  }
}

TEST(ShardedUpdate, NormsAreSummedOverShards) {
  comm::run_ranks(3, [](comm::Communicator& c) {
    const BucketLayout buckets = layout();
    SharedWeights memory(c, buckets, buckets.bytes);
    ShardedUpdate shards(c, buckets, memory, {3, 7});
    for (int round = 1; round <= 2; ++round) {
      std::vector<float> sums(7, 0.0f);
      for (size_t i = static_cast<size_t>(c.rank()); i < sums.size(); i += 3)
        sums[i] = static_cast<float>(round) * 0.1f * static_cast<float>(i);
      shards.start_norms(1, sums);
      std::ranges::fill(sums, -1.0f);
      shards.finish_norms(1, sums);
      for (size_t i = 0; i < sums.size(); ++i)
        EXPECT_EQ(sums[i], static_cast<float>(round) * 0.1f * static_cast<float>(i));
    }
    EXPECT_ANY_THROW(shards.start_norms(0, {}));
    EXPECT_ANY_THROW(shards.start_norms(2, {}));
  });
}

TEST(ShardedUpdate, ShardsTileTheBuckets) {
  comm::run_ranks(4, [](comm::Communicator& c) {
    const BucketLayout buckets = layout();
    SharedWeights memory(c, buckets, buckets.bytes);
    const ShardedUpdate shards(c, buckets, memory, {});
    EXPECT_TRUE(memory.shared());
    EXPECT_EQ(memory.mine(), c.rank() == 0);
    for (size_t b = 0; b < buckets.buckets.size(); ++b) {
      size_t end = 0;
      for (const Shard& shard : shards.shards(static_cast<int>(b))) {
        EXPECT_EQ(shard.begin, end);
        end = shard.end;
      }
      EXPECT_EQ(end, buckets.buckets[b].bytes);
      EXPECT_EQ(shards.mine(static_cast<int>(b)),
                shards.shards(static_cast<int>(b))[static_cast<size_t>(c.rank())]);
    }
  });
}

}  // namespace
}  // namespace tutti::exchange
