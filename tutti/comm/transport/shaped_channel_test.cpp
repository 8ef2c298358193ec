#include "tutti/comm/transport/shaped_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tutti/base/error.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

TEST(LinkShape, RateAndDelay) {
  const LinkShape shape = LinkShape::parse("10gbit,50us");
  EXPECT_DOUBLE_EQ(shape.bytes_per_second, 1.25e9);
  EXPECT_DOUBLE_EQ(shape.latency, 50e-6);
  EXPECT_DOUBLE_EQ(LinkShape::parse("1.5mbit").bytes_per_second, 187500);
  EXPECT_DOUBLE_EQ(LinkShape::parse("1.5mbit").latency, 0);
  for (const char* wrong : {"", "10", "10gbit,", "10gbit,5", "10Gbps,1us", "gbit", "-1gbit"})
    EXPECT_THROW(LinkShape::parse(wrong), ConfigError) << wrong;
}

// No upper bound: the machine may be busy. The lower one is the link's.
TEST(ShapedChannel, ResultsAreRightAndNotSoonerThanTheLinkAllows) {
  run_ranks(3, [](Communicator& c) {
    c.set_shape(LinkShape::parse("80mbit,2ms"));
    constexpr size_t kCount =
        30000;  // 120,000 bytes: each rank sends 2/3 of it twice, 16 ms at 10 MB/s
    for (const char* algorithm : {"pairwise", "ring", "recursive_doubling"}) {
      std::vector<float> x(kCount, static_cast<float>(c.rank() + 1));
      const auto operation = c.plan({.kind = Collective::allreduce,
                                     .count = kCount,
                                     .output = x.data(),
                                     .algorithm = algorithm});
      for (int run = 0; run < 2; ++run) {
        std::ranges::fill(x, static_cast<float>(c.rank() + 1));
        c.barrier();
        const auto begin = std::chrono::steady_clock::now();
        operation->start();
        operation->wait();
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        EXPECT_EQ(x, std::vector<float>(kCount, 6.0f)) << algorithm;
        EXPECT_GE(seconds, 0.016 + 2 * 0.002 - 0.001) << algorithm;
      }
    }
  });
}

TEST(ShapedChannel, PartsOfASplitShareTheLink) {
  run_ranks(2, [](Communicator& c) {
    c.set_shape(LinkShape::parse("80mbit"));
    const auto part = c.split(0, c.rank());
    std::vector<float> x(25000, 1.0f), y(25000, 1.0f);  // 100,000 bytes each: 10 ms
    const auto a = c.plan({.kind = Collective::allreduce, .count = x.size(), .output = x.data()});
    const auto b =
        part->plan({.kind = Collective::allreduce, .count = y.size(), .output = y.data()});
    c.barrier();
    const auto begin = std::chrono::steady_clock::now();
    a->start();
    b->start();
    while (!a->test() || !b->test()) {}
    EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
              0.019);
    EXPECT_EQ(x[0] + y[0], 4.0f);
  });
}

}  // namespace
}  // namespace tutti::comm
