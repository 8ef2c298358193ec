#include "tutti/comm/transport/routed_channel.h"

#include <gtest/gtest.h>

#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

// Enough nodes for halving between them. The input of the allgather is its part of the output.
TEST(RoutedChannel, ManyNodesOfTwoRanksHalveAndDoubleInPlace) {
  constexpr int kRanks = 130;
  constexpr size_t kPart = 7;
  std::vector<int> nodes;
  for (int p = 0; p < kRanks; ++p) nodes.push_back(p / 2);
  run_ranks(
      kRanks,
      [](Communicator& c) {
        const auto rank = static_cast<size_t>(c.rank());
        std::vector<float> x(kPart * kRanks), sum(kPart);
        CollectiveSpec spec{.kind = Collective::reduce_scatter,
                            .element = Element::f32,
                            .count = x.size(),
                            .input = x.data(),
                            .output = sum.data(),
                            .algorithm = "two_level"};
        const auto scatter = c.plan(spec);
        spec.kind = Collective::allgather;
        spec.input = x.data() + kPart * rank;
        spec.output = x.data();
        const auto gather = c.plan(spec);
        EXPECT_TRUE(rank != 0 || gather->schedule().rounds.size() == 2 + 7) << "log2 of 65, up";
        for (int run = 1; run <= 2; ++run) {
          for (size_t i = 0; i < x.size(); ++i) x[i] = float(i) * float(run);
          scatter->run();
          std::ranges::fill(x, -1.0f);
          std::ranges::copy(sum, x.begin() + kPart * rank);
          gather->run();
          for (size_t i = 0; i < x.size(); ++i)
            ASSERT_EQ(x[i], float(i) * float(run * kRanks)) << i;
        }
      },
      nodes);
}

TEST(RoutedChannel, OnlyNeighboursSeeAWindow) {
  run_ranks(4,
            [](Communicator& c) {
              const auto window = c.allocate(8);
              for (int p = 0; p < 4; ++p)
                EXPECT_EQ(window->peer(p) != nullptr, p % 2 == c.rank() % 2) << p;
            },
            {0, 1, 0, 1});
}

// A program that plans anew for every call, because its counts change.
TEST(RoutedChannel, PlanningForEverTakesFewNumbers) {
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0}, {0, 1}})
    run_ranks(
        2,
        [](Communicator& c) {
          std::vector<float> x(10, 1.0f);
          const CollectiveSpec spec{.kind = Collective::allreduce,
                                    .element = Element::f32,
                                    .count = x.size(),
                                    .output = x.data()};
          const auto kept = c.plan(spec);
          for (int k = 0; k < 1000; ++k) {
            std::ranges::fill(x, 1.0f);
            c.plan(spec)->run();
            ASSERT_EQ(x[9], 2.0f) << k;
            ASSERT_LE(c.channels().taken(), 128u);
          }
        },
        nodes);
}

// An operation abandoned in flight may still have messages under way: later operations must not
// take them for their own.
TEST(RoutedChannel, AnAbandonedOperationDisturbsNoLaterOne) {
  run_ranks(2,
            [](Communicator& c) {
              float x = 0;
              const CollectiveSpec spec{
                  .kind = Collective::broadcast, .element = Element::f32, .count = 1, .output = &x};
              for (int k = 0; k < 200; ++k) {
                {
                  const auto abandoned = c.plan(spec);
                  x = -1;
                  if (c.rank() == 0) abandoned->start();
                }
                c.barrier();
                x = static_cast<float>(c.rank() == 0 ? k : -2);
                c.plan(spec)->run();
                ASSERT_EQ(x, static_cast<float>(k));
              }
            },
            {0, 1});
}

}  // namespace
}  // namespace tutti::comm
