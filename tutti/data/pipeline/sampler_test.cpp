#include "tutti/data/pipeline/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/data/pipeline/batch_order.h"

namespace tutti::data {
namespace {

std::vector<int64_t> epoch_permutation(uint64_t seed, int64_t epoch, int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  Permutation(seed, epoch, size).run(0, order);
  return order;
}

/// A set may have more samples than fit 32 bits, or than a rank could store an order for.
TEST(Sampler, SetsMayBeOfAnySize) {
  const int64_t size = int64_t{1} << 40;
  const Sampler sampler({.seed = 7, .size = size, .replicas = 4, .local_batch = 8});
  std::vector<int64_t> batch(8);
  sampler.indices({3, sampler.steps_per_epoch() - 1, 3}, 0, batch);
  EXPECT_EQ(std::set<int64_t>(batch.begin(), batch.end()).size(), 8u);
  EXPECT_GT(std::ranges::max(batch), int64_t{1} << 33);
  EXPECT_LT(std::ranges::max(batch), size);
}

std::vector<int64_t> global_batch_of(const Sampler& sampler, int64_t epoch, int64_t step) {
  std::vector<int64_t> all;
  for (int r = 0; r < sampler.spec().replicas; ++r)
    for (int64_t i = 0; i < sampler.spec().local_batch; ++i)
      all.push_back(sampler.index({epoch, step, r}, i));
  return all;
}

TEST(Sampler, GlobalBatchIsARunOfThePermutationWhateverTheReplicas) {
  const Sampler one({.seed = 7, .size = 103, .replicas = 1, .local_batch = 12});
  const Sampler four({.seed = 7, .size = 103, .replicas = 4, .local_batch = 3});
  const auto order = epoch_permutation(7, 2, 103);
  EXPECT_EQ(one.steps_per_epoch(), 8);  // 103 = 8 * 12 + 7: the last seven are left out
  EXPECT_EQ(four.steps_per_epoch(), 8);
  for (int64_t step = 0; step < 8; ++step) {
    const std::vector<int64_t> expected(order.begin() + step * 12, order.begin() + (step + 1) * 12);
    EXPECT_EQ(global_batch_of(one, 2, step), expected);
    EXPECT_EQ(global_batch_of(four, 2, step), expected);
  }
}

TEST(Sampler, PartsOfABatchAndRandomAccessAgree) {
  const Sampler sampler({.seed = 3, .size = 64, .replicas = 2, .local_batch = 8});
  std::vector<int64_t> whole(8), part(3);
  for (const int64_t epoch :
       {0, 5, 1, 0, 2}) {  // epochs out of order evict each other and must still repeat
    sampler.indices({epoch, 3, 1}, 0, whole);
    sampler.indices({epoch, 3, 1}, 4, part);
    EXPECT_EQ(part, std::vector<int64_t>(whole.begin() + 4, whole.begin() + 7));
    const auto order = epoch_permutation(3, epoch, 64);
    EXPECT_EQ(whole, std::vector<int64_t>(order.begin() + 56, order.begin() + 64));
  }
}

TEST(Sampler, RefusesWhatCannotBe) {
  EXPECT_THROW(Sampler({.seed = 0, .size = 7, .replicas = 2, .local_batch = 4}), ConfigError);
  EXPECT_THROW(Sampler({.seed = 0, .size = 7, .replicas = 0, .local_batch = 4}), ConfigError);
  const Sampler sampler({.seed = 0, .size = 8, .replicas = 2, .local_batch = 4});
  EXPECT_EQ(sampler.steps_per_epoch(), 1);
  EXPECT_THROW(sampler.index({0, 1, 0}, 0), InternalError);
  EXPECT_THROW(sampler.index({0, 0, 2}, 0), InternalError);
  EXPECT_THROW(sampler.index({0, 0, 0}, 4), InternalError);
}

TEST(EvaluationRange, CoversEverySampleOnce) {
  for (const int64_t size : {0, 1, 5, 10000, 10007})
    for (const int ranks : {1, 2, 3, 64}) {
      int64_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Range range = evaluation_range(size, rank, ranks);
        EXPECT_EQ(range.begin, at);
        EXPECT_LE(range.size(), size / ranks + 1);
        EXPECT_GE(range.size(), size / ranks);
        at = range.end;
      }
      EXPECT_EQ(at, size);
    }
}

/// Two nodes that share out the replicas.
SamplerSpec two_nodes(int64_t size) {
  return {.seed = 5, .size = size, .replicas = 4, .local_batch = 2, .node_of = {0, 1, 0, 1}};
}

TEST(Sampler, ANodeHasSamplesOfItsOwnInAnOrderOfItsOwn) {
  const Sampler sampler(two_nodes(33));  // 17 and 16 samples
  EXPECT_EQ(sampler.steps_per_epoch(), 4);
  std::vector<int64_t> seen[2], orders[2];
  for (const int64_t epoch : {0, 1})
    for (int64_t step = 0; step < 4; ++step)
      for (int replica = 0; replica < 4; ++replica)
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t sample = sampler.index({epoch, step, replica}, i);
          EXPECT_EQ(sample % 2, replica % 2);
          EXPECT_LT(sample, 33);
          if (epoch == 0) seen[replica % 2].push_back(sample / 2);
          if (replica % 2 == 0) orders[epoch].push_back(sample);
        }
  EXPECT_NE(seen[0], seen[1]);
  EXPECT_NE(orders[0], orders[1]);
  for (std::vector<int64_t>& node : seen) {
    std::ranges::sort(node);
    EXPECT_EQ(std::ranges::adjacent_find(node), node.end());  // each once
  }
}

TEST(Sampler, FilesOfSeveralSamplesGoToOneNodeEach) {
  SamplerSpec spec = two_nodes(33);
  spec.file_samples = {3, 10, 8, 1, 11};  // node 0: 11 + 3 + 1 ..., node 1: 10 + 8
  const std::vector<int> node_of = deal_files(spec.file_samples, 2);
  EXPECT_EQ(node_of, (std::vector<int>{0, 1, 1, 0, 0}));
  const Sampler sampler(spec);
  EXPECT_EQ(sampler.samples_of(0), 15);
  EXPECT_EQ(sampler.samples_of(1), 18);
  EXPECT_EQ(sampler.steps_per_epoch(), 3);  // with 4 samples per node and step: 15 are enough for
  const auto file_of = [&](int64_t sample) {
    size_t f = 0;
    for (int64_t end = spec.file_samples[0]; sample >= end; end += spec.file_samples[++f]) {}
    return f;
  };
  std::set<int64_t> seen;
  for (int64_t epoch = 0; epoch < 30; ++epoch)
    for (int64_t step = 0; step < 3; ++step)
      for (int replica = 0; replica < 4; ++replica)
        for (int64_t i = 0; i < 2; ++i) {
          const int64_t sample = sampler.index({epoch, step, replica}, i);
          EXPECT_EQ(node_of[file_of(sample)], replica % 2);
          seen.insert(sample);
        }
  EXPECT_EQ(std::ssize(seen), 33);  // the samples that an epoch leaves out come in another
}

TEST(Sampler, FilesOfOneSampleAreEverySoManyth) {
  SamplerSpec spec = two_nodes(33);
  const Sampler plain(spec);
  spec.file_samples.assign(33, 1);
  const std::vector<int> node_of = deal_files(spec.file_samples, 2);
  for (size_t i = 0; i < node_of.size(); ++i) EXPECT_EQ(node_of[i], static_cast<int>(i % 2));
  const Sampler files(spec);
  EXPECT_FALSE(files.by_files());
  for (int replica = 0; replica < 4; ++replica)
    EXPECT_EQ(plain.index({1, 2, replica}, 1), files.index({1, 2, replica}, 1));
  spec.file_samples = {33};  // fewer files than nodes
  EXPECT_FALSE(Sampler(spec).by_files());
}

TEST(Sampler, OneNodeHasTheOrderOfAll) {
  SamplerSpec spec = two_nodes(33);
  spec.node_of = {0, 0, 0, 0};
  const Sampler shard(spec);
  spec.node_of.clear();
  const Sampler all(spec);
  for (int64_t step = 0; step < all.steps_per_epoch(); ++step)
    EXPECT_EQ(shard.index({3, step, 1}, 1), all.index({3, step, 1}, 1));
}

TEST(Sampler, RefusesWhatDoesNotDivideWithTheNumbers) {
  const auto error = [](SamplerSpec spec) -> std::string {
    return message_of<ConfigError>("", [&] { (void)Sampler(spec); });
  };
  SamplerSpec spec = two_nodes(34);
  EXPECT_EQ(error(spec), "");
  spec.strict = true;
  EXPECT_TRUE(has_text(error(spec),
                       "34 training samples are no multiple of 2 nodes x a node's batch of "
                       "4, a global batch of 8 (4 replicas x local batch 2): 2 are left over"));
  spec.size = 32;
  EXPECT_EQ(error(spec), "");
  spec.node_of = {0, 0, 0, 1};
  EXPECT_TRUE(has_text(error(spec), "they have 3, 1"));
  spec = two_nodes(32);
  spec.file_samples = {30, 2};
  EXPECT_TRUE(has_text(error(spec), "of the nodes' samples (30, 2) not all make up"));
  spec.file_samples = {20, 12};
  EXPECT_EQ(error(spec), "");
  spec.strict = true;
  EXPECT_TRUE(has_text(error(spec), "the nodes have 20, 12 samples"));
}

/// Returns the starts of an epoch's windows, in the order of training.
std::vector<int64_t> windows_of_epoch(const Sampler& sampler, int64_t epoch) {
  std::vector<int64_t> all;
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step)
    for (const int64_t window : global_batch_of(sampler, epoch, step)) all.push_back(window);
  return all;
}

TEST(Sampler, WindowsOfAnEpochCoverATextOnceAndAreCutElsewhereInTheNext) {
  // 107 tokens: windows of 10 and the token after each begin at 0 to 96.
  const SamplerSpec spec{.seed = 5, .size = 97, .replicas = 3, .local_batch = 1, .spacing = 10};
  const Sampler sampler(spec);
  ASSERT_EQ(sampler.steps_per_epoch(), 3);  // 9 windows side by side
  std::set<int64_t> cuts;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<int64_t> windows = windows_of_epoch(sampler, epoch);
    EXPECT_FALSE(std::ranges::is_sorted(windows));
    std::ranges::sort(windows);
    EXPECT_GE(windows.front(), 0);
    EXPECT_LT(windows.front(), 10);
    for (size_t i = 0; i < windows.size(); ++i)
      EXPECT_EQ(windows[i], windows[0] + static_cast<int64_t>(i) * 10);
    EXPECT_LE(windows.back(), 96);
    cuts.insert(windows.front());
  }
  EXPECT_EQ(cuts.size(), 10u);
  EXPECT_EQ(windows_of_epoch(Sampler(spec), 7), windows_of_epoch(sampler, 7));
  // With fewer starts than a window is long there is one window.
  const Sampler small({.seed = 5, .size = 4, .spacing = 10});
  EXPECT_EQ(small.steps_per_epoch(), 1);
  for (int64_t epoch = 0; epoch < 20; ++epoch) EXPECT_LT(small.index({epoch, 0, 0}, 0), 4);
  EXPECT_TRUE(throws<ConfigError>({"9 samples side by side"}, [&] {
    Sampler({.seed = 5, .size = 97, .replicas = 10, .local_batch = 1, .spacing = 10});
  }));
}

TEST(Sampler, WindowsAnywhereAreAFunctionOfTheSeedAndThePlaceInTheEpoch) {
  SamplerSpec spec{.seed = 5, .size = 1'000'000'000'000, .local_batch = 6, .spacing = 1000};
  spec.anywhere = true;
  const Sampler one(spec);
  spec.replicas = 3;
  spec.local_batch = 2;
  const Sampler three(spec);
  EXPECT_EQ(one.steps_per_epoch(), 1'000'000'000 / 6);
  double sum = 0;
  for (const int64_t epoch : {0, 1})
    for (int64_t step = 0; step < 100; ++step) {
      const std::vector<int64_t> windows = global_batch_of(one, epoch, step);
      EXPECT_EQ(windows, global_batch_of(three, epoch, step));
      EXPECT_EQ(std::set<int64_t>(windows.begin(), windows.end()).size(), 6u);
      for (const int64_t window : windows) sum += static_cast<double>(window);
      EXPECT_LT(std::ranges::max(windows), spec.size);
      EXPECT_GE(std::ranges::min(windows), 0);
    }
  EXPECT_NEAR(sum / 1200, 0.5e12, 0.05e12);  // six standard deviations of the mean
  EXPECT_NE(global_batch_of(one, 0, 0), global_batch_of(one, 1, 0));
}

TEST(DealtOrder, KeepsAsManyAsAreAskedFor) {
  const Sampler sampler({.seed = 7, .size = 100, .replicas = 1, .local_batch = 4});
  constexpr int64_t kKept = 3 * 5000 + 2;
  DealtOrder order(sampler, kKept);
  for (int64_t k = 0; k < kKept + 10; ++k) order.add({.epoch = k, .step = k % 25});
  EXPECT_EQ(order.batches(), kKept + 10);
  for (int64_t k = 10; k < order.batches(); ++k) EXPECT_EQ(order.id(k).position.epoch, k);
}

}  // namespace
}  // namespace tutti::data
