#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/sync/server_link.h"
#include "tutti/sync/weight_server.h"

namespace tutti::sync {
namespace {

struct QuorumCase {
  int workers, quorum, servers;
  bool own_ranks = false;
  int64_t steps = 12;
  bool one_is_slow = true;
};

/// The value that a gradient adds to the arena's i-th value.
float of_ticket(size_t i, int64_t ticket) {
  return static_cast<float>(1 + i % 7) * static_cast<float>(ticket + 1);
}

/// Takes steps by adding each step's sum of gradients to the weights.
struct Stepping final : ServedWeights {
  explicit Stepping(size_t floats) : arena(floats) {}
  std::byte* parameters() override { return reinterpret_cast<std::byte*>(arena.data()); }
  void apply(const ServedUpdate& update) override {
    EXPECT_EQ(update.number, next++);
    EXPECT_EQ(update.stale, 0);
    for (const ServedPart& part : parts) {
      const size_t begin = begins[static_cast<size_t>(part.bucket)] / sizeof(float);
      for (size_t i = part.range.begin / sizeof(float); i < part.range.end / sizeof(float); ++i)
        arena[begin + i] += update.buckets[static_cast<size_t>(part.bucket)][i];
    }
  }
  std::vector<float> arena;
  std::vector<ServedPart> parts;
  std::vector<size_t> begins;
  int64_t next = 0;
};

/// Runs two rounds, the second cut short; the last worker may be slow. Values are whole numbers, so
/// that sums are exact in any order.
void run_quorum(const QuorumCase& job) {
  SCOPED_TRACE(testing::Message() << job.quorum << " of " << job.workers << " workers, "
                                  << job.servers << " servers" << (job.own_ranks ? " apart" : ""));
  const std::vector<exchange::GradientEntry> entries{{"a", 4096}, {"b", 256}, {"c", 8192}};
  const exchange::BucketLayout layout = exchange::partition_buckets(entries, 256);
  std::mutex mutex;
  int64_t dropped = 0, steps = 0;
  comm::run_ranks(job.workers + (job.own_ranks ? job.servers : 0), [&](comm::Communicator& c) {
    ServedRanks ranks;
    for (int w = 0; w < job.workers; ++w) ranks.workers.push_back(w);
    for (int s = 0; s < job.servers; ++s)
      ranks.servers.push_back(s + (job.own_ranks ? job.workers : 0));
    const auto parts = deal_to_servers(layout, job.servers, false);
    Stepping weights(layout.bytes / sizeof(float));
    const int server = c.rank() - ranks.servers.front();
    std::unique_ptr<WeightServer> loop;
    for (const exchange::Bucket& bucket : layout.buckets) weights.begins.push_back(bucket.begin);
    for (const ServedPart& part : parts)
      if (part.server == server) weights.parts.push_back(part);
    if (server >= 0 && server < job.servers)
      loop = std::make_unique<WeightServer>(
          c,
          WeightServer::Spec{
              .ranks = ranks,
              .server = server,
              .parts = parts,
              .tickets = {.workers = job.workers, .together = job.quorum, .quorum = true}},
          layout, weights);
    const size_t floats = layout.bytes / sizeof(float);
    std::vector<float> mine(floats), gradient(floats);
    std::unique_ptr<ServerLink> link;
    if (c.rank() < job.workers)
      link = std::make_unique<ServerLink>(
          c,
          ServerLink::Spec{.ranks = ranks,
                           .parts = parts,
                           .parameters = reinterpret_cast<std::byte*>(mine.data()),
                           .here = loop.get()},
          layout);
    const int buckets = static_cast<int>(layout.buckets.size());
    int64_t first = 0;
    for (const bool cut : {false, true}) {
      c.barrier();
      if (loop) {
        loop->open(first, first + job.steps * job.quorum);
        loop->start();
      }
      int64_t made = 0;
      if (link) link->begin_round();
      for (auto ticket = link ? link->take_ticket() : std::nullopt; ticket;) {
        if (job.one_is_slow && c.rank() == job.workers - 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(7));
        for (size_t i = 0; i < floats; ++i) gradient[i] = of_ticket(i, *ticket);
        for (int b = 0; b < buckets; ++b)
          link->push(b, gradient.data() + layout.buckets[static_cast<size_t>(b)].begin / 4);
        // Any worker may reach it: a fast one may make most of the round.
        const int signal = cut && ++made == 3 ? 15 : 0;
        ticket = link->take_ticket();
        if (!ticket) {
          link->end(signal);
          break;
        }
        link->ask(signal);
        for (int b = 0; b < buckets; ++b) link->wait(b);
        // All parts have one version: the same multiple of a gradient's values.
        for (size_t i = 0; i < floats; ++i)
          ASSERT_EQ(mine[i], mine[0] * static_cast<float>(1 + i % 7)) << "parts of several steps";
      }
      if (loop) loop->wait();
      if (link) first = link->end_of_round();
      first = c.most(static_cast<int>(first));
      EXPECT_EQ(first % job.quorum, 0) << "whole steps";
    }
    if (job.steps > 1) {
      EXPECT_LT(first, 2 * job.steps * job.quorum) << "the signal has ended the round";
    }
    if (!loop) return;
    EXPECT_EQ(weights.next * job.quorum, first);
    // Each ticket counts once.
    const double sum = static_cast<double>(first) * static_cast<double>(first + 1) / 2;
    for (const ServedPart& part : weights.parts) {
      const size_t begin =
          (weights.begins[static_cast<size_t>(part.bucket)] + part.range.begin) / sizeof(float);
      for (size_t i = begin; i < begin + part.range.bytes() / sizeof(float); ++i)
        ASSERT_EQ(weights.arena[i], static_cast<float>(1 + i % 7) * static_cast<float>(sum));
    }
    const ServedCounts counts = loop->take_counts();
    EXPECT_EQ(counts.updates, weights.next);
    EXPECT_EQ(counts.staleness, std::vector<int64_t>{first});
    const std::lock_guard lock(mutex);
    if (server == 0) dropped = counts.dropped;
    steps = weights.next;
  });
  EXPECT_GT(steps, job.steps);
  if (job.quorum < job.workers) {
    EXPECT_GT(dropped, 0) << "the slow one has been waited for";
  } else {
    EXPECT_EQ(dropped, 0);
  }
}

TEST(WeightServer, AStepTakesAQuorumOfGradients) {
  run_quorum({.workers = 1, .quorum = 1, .servers = 1});
  run_quorum({.workers = 2, .quorum = 1, .servers = 1});
  run_quorum({.workers = 3, .quorum = 2, .servers = 1});
  run_quorum({.workers = 3, .quorum = 3, .servers = 1});
  run_quorum({.workers = 3, .quorum = 2, .servers = 3});
  run_quorum({.workers = 4, .quorum = 3, .servers = 2});
  run_quorum({.workers = 4, .quorum = 2, .servers = 2, .own_ranks = true});
  run_quorum({.workers = 2, .quorum = 1, .servers = 1, .own_ranks = true, .steps = 1});
}

/// A step often ends between a worker's question and its weights, which then belong to the step
/// before.
TEST(WeightServer, AStepTakesNoGradientOfOlderWeights) {
  for (const int servers : {1, 2})
    run_quorum({.workers = 4, .quorum = 1, .servers = servers, .steps = 400, .one_is_slow = false});
}

}  // namespace
}  // namespace tutti::sync
