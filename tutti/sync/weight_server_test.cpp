#include "tutti/sync/weight_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/sync/server_link.h"

namespace tutti::sync {
namespace {

TEST(DealToServers, TilesEveryBucket) {
  const std::vector<exchange::GradientEntry> entries{
      {"a", 4096}, {"b", 65536}, {"c", 640}, {"d", 1 << 20}};
  const exchange::BucketLayout layout = exchange::partition_buckets(entries, 4096);
  for (const bool whole : {false, true})
    for (const int servers : {1, 2, 3, 9}) {
      if (whole && servers > static_cast<int>(layout.buckets.size())) continue;
      std::vector<size_t> covered(layout.buckets.size());
      for (const ServedPart& part : deal_to_servers(layout, servers, whole)) {
        const auto b = static_cast<size_t>(part.bucket);
        EXPECT_EQ(part.range.begin, covered[b]);
        covered[b] = part.range.end;
        if (whole) {
          EXPECT_EQ(part.range.bytes(), layout.buckets[b].bytes);
        }
        EXPECT_LT(part.server, servers);
      }
      for (size_t b = 0; b < covered.size(); ++b) EXPECT_EQ(covered[b], layout.buckets[b].bytes);
    }
}

// Such a server would wait for gradients that are never sent.
TEST(DealToServers, RefusesAServerThatGetsNothing) {
  const exchange::BucketLayout layout = exchange::partition_buckets(
      std::vector<exchange::GradientEntry>{{"a", 4096}, {"b", 65536}, {"c", 640}, {"d", 1 << 20}},
      4096);
  const int buckets = static_cast<int>(layout.buckets.size());
  EXPECT_NO_THROW(deal_to_servers(layout, buckets, true));
  EXPECT_THROW(deal_to_servers(layout, buckets + 1, true), ConfigError);
  EXPECT_NO_THROW(deal_to_servers(layout, buckets + 1, false)) << "the largest is divided";
}

/// Adds up gradients and records them.
struct Adding final : ServedWeights {
  explicit Adding(const exchange::BucketLayout& of, std::vector<ServedPart> own)
      : layout(of), parts(std::move(own)), arena(of.bytes / sizeof(float)) {}
  std::byte* parameters() override { return reinterpret_cast<std::byte*>(arena.data()); }
  void apply(const ServedUpdate& update) override {
    EXPECT_EQ(update.number, next++);
    for (const ServedPart& part : parts) {
      const size_t begin = layout.buckets[static_cast<size_t>(part.bucket)].begin / sizeof(float);
      for (size_t i = part.range.begin / sizeof(float); i < part.range.end / sizeof(float); ++i) {
        const float value = update.buckets[static_cast<size_t>(part.bucket)][i];
        arena[begin + i] += value;
      }
    }
  }
  const exchange::BucketLayout& layout;
  std::vector<ServedPart> parts;
  std::vector<float> arena;
  int64_t next = 0;
};

struct ServedCase {
  int ranks, servers, group;
  std::optional<int64_t> bound = {};
  bool slow = true;
  const char* compression = "none";  // compresses every second bucket, from step 2 on
};

exchange::ExchangeCompression every_second(const exchange::BucketLayout& layout,
                                           const char* compression) {
  exchange::CompressionPolicy policy = exchange::parse_compression_policy(compression);
  if (!policy.compression.compresses()) return {};
  policy.warmup_steps = 2;
  policy.ramp_steps = 3;
  exchange::ExchangeCompression every{.phases = exchange::compression_phases(policy)};
  for (size_t b = 0; b < layout.buckets.size(); ++b) every.buckets.push_back(b % 2 == 0);
  return every;
}

/// The value that a gradient with factor `scale` adds to the arena's i-th value.
float of_kind(size_t i, double scale) {
  return static_cast<float>(scale * static_cast<double>(1 + i % 7) / 3);
}

/// Runs workers whose gradient of ticket t has the factor t + 1, over two rounds, the second cut
/// short. With one server, returns the bytes sent relative to whole gradients and weights.
double run_served(const ServedCase& job) {
  const std::vector<exchange::GradientEntry> entries{{"a", 4096}, {"b", 256}, {"c", 8192}};
  const exchange::BucketLayout layout = exchange::partition_buckets(entries, 256);
  std::mutex mutex;
  std::multiset<int64_t> made;
  std::vector<double> kept(layout.bytes / sizeof(float));  // residuals, summed over all workers
  double bytes = 0;
  int64_t messages = 0;  // number of whole gradients or weights
  comm::run_ranks(job.ranks, [&](comm::Communicator& c) {
    ServedRanks ranks;
    for (int s = 0; s < job.servers; ++s) ranks.servers.push_back(s);
    for (int r = 0; r < job.ranks; r += job.group) ranks.workers.push_back(r);
    const auto workers = static_cast<int64_t>(ranks.workers.size());
    const auto parts = deal_to_servers(layout, job.servers, false);
    const ServedCodecs codecs(every_second(layout, job.compression));
    std::vector<ServedPart> own;
    for (const ServedPart& part : parts)
      if (part.server == c.rank()) own.push_back(part);
    Adding weights(layout, own);
    std::unique_ptr<WeightServer> loop;
    if (c.rank() < job.servers)
      loop = std::make_unique<WeightServer>(
          c,
          WeightServer::Spec{.ranks = ranks,
                             .server = c.rank(),
                             .parts = parts,
                             .tickets = {.workers = static_cast<int>(workers),
                                         .together = workers,
                                         .bound = job.bound},
                             .codecs = &codecs},
          layout, weights);
    std::vector<float> mine(layout.bytes / sizeof(float)), gradient(mine.size());
    auto* const arena = reinterpret_cast<std::byte*>(mine.data());
    const auto team = c.split(c.rank() / job.group, 0, "team");
    std::unique_ptr<ServerLink> link;
    if (team->rank() == 0)
      link = std::make_unique<ServerLink>(c,
                                          ServerLink::Spec{.ranks = ranks,
                                                           .parts = parts,
                                                           .parameters = arena,
                                                           .here = loop.get(),
                                                           .codecs = &codecs},
                                          layout);
    WorkerGroup group(*team, link.get(), layout, arena);
    const auto take = [&] {
      int64_t ticket = link ? link->take_ticket().value_or(-1) : -1;
      team->broadcast_value(ticket, 0);
      return ticket;
    };
    const int64_t ends[] = {4 * workers, 40 * workers};
    int64_t first = 0;
    for (const int64_t end : ends) {
      c.barrier();
      if (loop) {
        loop->open(first, end);
        loop->start();
      }
      if (link) link->begin_round();
      int64_t steps = 0;
      for (int64_t ticket = take(); ticket >= 0;) {
        {
          const std::lock_guard lock(mutex);
          if (link) made.insert(ticket);
          if (link && !loop) ++messages;
        }
        if (job.slow && c.rank() == job.ranks - 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        for (size_t i = 0; i < gradient.size(); ++i)
          gradient[i] = of_kind(i, static_cast<double>(ticket + 1));
        for (int b = 0; b < static_cast<int>(layout.buckets.size()); ++b)
          group.push(b, gradient.data() + layout.buckets[static_cast<size_t>(b)].begin / 4);
        ++steps;
        // The worker that has done three steps stops the second round.
        const int signal = end == ends[1] && steps == 3 ? 15 : 0;
        ticket = take();
        if (ticket < 0) {
          if (link) link->end(signal);
          break;
        }
        if (link) link->ask(signal);
        if (link && !loop) {
          const std::lock_guard lock(mutex);
          ++messages;
        }
        for (int b = 0; b < static_cast<int>(layout.buckets.size()); ++b) group.wait(b);
      }
      if (loop) loop->wait();
      first = end;
    }
    for (int b = 0; link && b < static_cast<int>(layout.buckets.size()); ++b) {
      const std::lock_guard lock(mutex);
      const size_t at = layout.buckets[static_cast<size_t>(b)].begin / sizeof(float);
      const std::span<const float> unsent = link->unsent(b);
      for (size_t i = 0; i < unsent.size(); ++i) kept[at + i] += unsent[i];
    }
    c.barrier();
    double sum = 0;
    for (const int64_t ticket : made) sum += static_cast<double>(ticket + 1);
    for (const ServedPart& part : own) {
      const size_t at =
          (layout.buckets[static_cast<size_t>(part.bucket)].begin + part.range.begin) / 4;
      for (size_t i = at; i < at + part.range.bytes() / sizeof(float); ++i)
        ASSERT_NEAR(weights.arena[i] + kept[i], of_kind(i, sum), 1e-5 * of_kind(i, sum));
    }
    if (!loop) return;
    EXPECT_EQ(weights.next, std::ssize(made));
    const std::lock_guard lock(mutex);
    bytes += loop->take_counts().bytes;
  });
  EXPECT_EQ(std::ssize(std::set<int64_t>(made.begin(), made.end())), std::ssize(made))
      << "a ticket was given twice";
  EXPECT_EQ(*made.rbegin() + 1, std::ssize(made)) << "a ticket was left out";
  EXPECT_LT(std::ssize(made), 40 * job.ranks / job.group) << "the signal has ended the round";
  const bool keeps = std::ranges::any_of(kept, [](double value) { return value != 0; });
  const std::string_view compression = job.compression;
  EXPECT_EQ(keeps, compression != "none" && compression != "topk:1");
  return bytes / (static_cast<double>(messages) * static_cast<double>(layout.bytes));
}

/// Fails as with a full disk, or a gradient that is not finite.
struct Failing final : ServedWeights {
  std::byte* parameters() override { return reinterpret_cast<std::byte*>(arena.data()); }
  void apply(const ServedUpdate&) override { throw NumericError("the server's own error"); }
  std::vector<float> arena = std::vector<float>(1024);
};

TEST(WeightServer, AWorkerBesideItMeetsItsError) {
  const exchange::BucketLayout layout =
      exchange::partition_buckets(std::vector<exchange::GradientEntry>{{"a", 4096}}, 4096);
  const ServedRanks ranks{.servers = {0}, .workers = {0}};
  const auto parts = deal_to_servers(layout, 1, false);
  for (const bool asks : {true, false}) {
    const auto alone = comm::make_single_communicator();
    alone->set_timeout(patience(2));
    Failing weights;
    WeightServer loop(*alone, {.ranks = ranks, .server = 0, .parts = parts, .tickets = {}}, layout,
                      weights);
    std::vector<float> mine(1024), gradient(1024);
    ServerLink link(*alone,
                    {.ranks = ranks,
                     .parts = parts,
                     .parameters = reinterpret_cast<std::byte*>(mine.data()),
                     .here = &loop},
                    layout);
    loop.open(0, 8);
    loop.start();
    link.begin_round();
    ASSERT_TRUE(link.take_ticket());
    link.push(0, gradient.data());
    const auto go_on = [&] {
      if (asks) {
        link.ask(0);
        link.wait(0);
      } else {
        while (link.take_ticket()) {}
      }
    };
    EXPECT_THROW(go_on(), NumericError) << asks;
  }
}

TEST(WeightServer, AppliesEveryGradientOnce) {
  run_served({.ranks = 1, .servers = 1, .group = 1, .slow = false});
  run_served({.ranks = 2, .servers = 1, .group = 1});
  run_served({.ranks = 2, .servers = 2, .group = 1});
  run_served({.ranks = 4, .servers = 3, .group = 1});
  run_served({.ranks = 4, .servers = 1, .group = 2});
  run_served({.ranks = 4, .servers = 2, .group = 2});
}

// Applied gradients plus the workers' residuals equal the sum of all gradients, on any servers.
TEST(WeightServer, LosesNothingThatItIsNotSent) {
  EXPECT_EQ(run_served({.ranks = 2, .servers = 1, .group = 1}), 1);
  for (const char* const compression : {"bf16", "fp16", "int8", "onebit", "topk:0.02", "topk:1"}) {
    SCOPED_TRACE(compression);
    const ServedCase job{.ranks = 2, .servers = 1, .group = 1, .compression = compression};
    const double sent = run_served(job);
    if (std::string_view(compression) != "topk:1") {
      EXPECT_LT(sent, 1);
    }
  }
  for (const char* const compression : {"int8", "topk:0.02"}) {
    SCOPED_TRACE(compression);
    run_served({.ranks = 1, .servers = 1, .group = 1, .slow = false, .compression = compression});
    run_served({.ranks = 4, .servers = 3, .group = 1, .compression = compression});
    run_served({.ranks = 4, .servers = 2, .group = 2, .compression = compression});
    run_served({.ranks = 3, .servers = 2, .group = 1, .bound = 1, .compression = compression});
  }
}

TEST(ServedCodecs, RefusesWhatNoPhaseSends) {
  const exchange::BucketLayout layout =
      exchange::partition_buckets(std::vector<exchange::GradientEntry>{{"a", 4096}}, 4096);
  const ServedCodecs codecs(every_second(layout, "int8"));
  std::vector<float> gradient(1024, 1), unsent(1024, 2), decoded(1024);
  std::vector<std::byte> room(codecs.most_bytes(1024));
  EXPECT_EQ(room.size(), 4097U) << "a dense phase";
  EXPECT_EQ(codecs.encode({2, gradient, unsent}, room, nullptr).size(), 1024U + 4 * 4 + 1);
  const auto message = codecs.encode({1, gradient, unsent}, room, nullptr);
  codecs.decode(message, decoded);
  EXPECT_EQ(unsent[7], 0);
  EXPECT_NEAR(decoded[7], 1, 0.01) << "nearly all of the 3 was sent before";
  EXPECT_THROW(codecs.decode(message.first(message.size() - 1), decoded), CommError);
  EXPECT_THROW(codecs.decode({}, decoded), CommError);
  room.back() = std::byte{9};
  EXPECT_THROW(codecs.decode(room, decoded), CommError);
}

TEST(WeightServer, AppliesEveryGradientOnceWithinABound) {
  run_served({.ranks = 3, .servers = 1, .group = 1, .bound = 0});
  run_served({.ranks = 3, .servers = 2, .group = 1, .bound = 1});
}

}  // namespace
}  // namespace tutti::sync
