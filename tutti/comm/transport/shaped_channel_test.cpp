#include "tutti/comm/transport/shaped_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

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
  for (const char* wrong : {"", "10", "10gbit,", "10gbit,5", "10Gbps,1us", "gbit", "-1gbit",
                            "nangbit", "infgbit", "10gbit,nanus"})
    EXPECT_THROW(LinkShape::parse(wrong), ConfigError) << wrong;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// There is no upper bound: the machine may be busy. The lower bound is the link's, from the moment
// when the first rank began: a rank that the system held up finds messages already on their way.
TEST(ShapedChannel, ResultsAreRightAndNotSoonerThanTheLinkAllows) {
  // 120,000 bytes: each rank sends 2/3 of it twice, 16 ms at 10 MB/s.
  constexpr size_t kCount = 30000;
  constexpr int kRuns = 2;
  std::mutex mutex;
  std::map<std::pair<std::string, int>, Clock::time_point> begins;  // earliest begin of any rank
  run_ranks(3, [&](Communicator& c) {
    c.set_shape(LinkShape::parse("80mbit,2ms"));
    for (const char* algorithm : {"pairwise", "ring", "recursive_doubling"}) {
      std::vector<float> x(kCount);
      const auto operation = c.plan({.kind = Collective::allreduce,
                                     .count = kCount,
                                     .output = x.data(),
                                     .algorithm = algorithm});
      for (int run = 0; run < kRuns; ++run) {
        std::ranges::fill(x, static_cast<float>(c.rank() + 1));
        c.barrier();
        {
          const std::lock_guard lock(mutex);
          begins.try_emplace({algorithm, run}, Clock::now());
        }
        operation->run();
        const std::lock_guard lock(mutex);
        EXPECT_GE(seconds_since(begins.at({algorithm, run})), 0.016 + 2 * 0.002 - 0.001)
            << algorithm;
        EXPECT_EQ(x, std::vector<float>(kCount, 6.0f)) << algorithm;
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
    const Clock::time_point begin = Clock::now();  // each rank's own, as its link is
    a->start();
    b->start();
    while (!a->test() || !b->test()) {}
    EXPECT_GE(seconds_since(begin), 0.019);
    EXPECT_EQ(x[0] + y[0], 4.0f);
  });
}

}  // namespace
}  // namespace tutti::comm
