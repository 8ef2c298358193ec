#include "tutti/cli/job/progress.h"

#include <gtest/gtest.h>

#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::cli {
namespace {

constexpr int kNoCore = comm::Progress::kNoCore;

TEST(ChooseProgress, AutoTakesAFreeCoreAndNeverOneOfAComputeThread) {
  const ProgressChoice free = choose_progress("auto", 3, {4, 5, 6, 7});
  EXPECT_EQ(free.processors, (std::vector<int>{7}));
  EXPECT_EQ(free.line, "progress: 1 thread on core 7");
  EXPECT_EQ(choose_progress("auto", 1, {4, 5, 6, 7}).processors, (std::vector<int>{7}));
  for (const int threads : {4, 9}) {
    const ProgressChoice none = choose_progress("auto", threads, {4, 5, 6, 7});
    EXPECT_TRUE(none.processors.empty());
    EXPECT_EQ(none.line, "progress: polling between kernels, no core is free");
    EXPECT_FALSE(none.doubtful);
  }
}

TEST(ChooseProgress, ANumberIsANumber) {
  EXPECT_EQ(choose_progress("0", 1, {4, 5}).line, "progress: polling between kernels");
  const ProgressChoice two = choose_progress("2", 2, {4, 5, 6, 7});
  EXPECT_EQ(two.processors, (std::vector<int>{6, 7}));
  EXPECT_EQ(two.line, "progress: 2 threads on cores 6, 7");
  EXPECT_FALSE(two.doubtful);
  const ProgressChoice crowded = choose_progress("2", 3, {4, 5, 6, 7});
  EXPECT_EQ(crowded.processors, (std::vector<int>{7, kNoCore}));
  EXPECT_TRUE(crowded.doubtful);
  EXPECT_EQ(crowded.line,
            "progress: 2 threads, 1 without a core of its own: this rank has 4 cores for 3 compute "
            "threads");
  EXPECT_EQ(choose_progress("1", 8, {4}).processors, (std::vector<int>{kNoCore}));
}

TEST(OwnProcessors, RanksWithTheSameBindingDivideIt) {
  comm::run_ranks(4, [](comm::Communicator& c) {
    device::Topology t;
    t.cores = 8;
    t.bound_processors = {0, 1, 2, 3, 4, 5, 6, 7};
    t.bound_cores = 8;
    EXPECT_EQ(own_processors(c, t), (std::vector<int>{2 * c.rank(), 2 * c.rank() + 1}));
    t.bound_processors = c.rank() % 2 == 0 ? std::vector<int>{0, 1, 2, 3}
                                           : std::vector<int>{4, 5, 6, 7};  // alternately on two
                                                                            // sockets
    t.bound_cores = 4;
    EXPECT_EQ(own_processors(c, t).front(),
              (std::vector<int>{0, 4, 2, 6})[static_cast<size_t>(c.rank())]);
    t.bound_processors = {2 * c.rank(), 2 * c.rank() + 1};
    t.bound_cores = 2;
    EXPECT_EQ(own_processors(c, t), t.bound_processors);
    t.cpu_quota = 4;
    EXPECT_EQ(own_processors(c, t).size(), 1u);
    EXPECT_EQ(cores_of_rank(t, 4), 1);
  });
}

}  // namespace
}  // namespace tutti::cli
