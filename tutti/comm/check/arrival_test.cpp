#include "tutti/comm/check/arrival.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

// The sleep is so long that no load of the machine makes another rank as late in most of the steps.
TEST(ArrivalRecord, NamesTheRankThatComesLate) {
  run_ranks(3, [](Communicator& c) {
    ArrivalRecord record(c, 2, 16);
    for (int interval = 0; interval < 2; ++interval) {
      const int slow = interval == 0 ? 2 : 0;
      for (int step = 0; step < 6; ++step) {
        record.note(0);
        if (c.rank() == slow) sleep_patiently(0.12);
        record.note(1);
        c.barrier();  // this makes all ranks late in the end
      }
      const ArrivalSummary summary = record.collect();
      EXPECT_EQ(summary.steps, 6);
      EXPECT_EQ(summary.clock_error, 0);
      ASSERT_EQ(summary.ranks.size(), 3u);
      ASSERT_NE(summary.straggler(), nullptr);
      EXPECT_EQ(summary.straggler()->rank, slow);
      EXPECT_GE(summary.straggler()->median, 0.06);
      EXPECT_GE(summary.straggler()->worst, summary.straggler()->median);
      const std::string text = to_string(*summary.straggler(), summary, c);
      EXPECT_TRUE(text.starts_with("rank " + std::to_string(slow) + " on " + c.host() +
                                   " arrived last in "))
          << text;
      EXPECT_TRUE(has_text(text, " of 6 steps, by "));
    }
  });
}

// Rank 1 sleeps once rank 0 waits, and the exchange ends 40 ms after both have begun it: bounds
// that hold under any load.
TEST(ArrivalRecord, TellsWaitingForALateRankFromCommunication) {
  std::atomic<int> waiting{0};  // steps in which rank 0 has begun to wait
  run_ranks(2, [&](Communicator& c) {
    const auto pause = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
    constexpr int kSteps = 3;
    ArrivalRecord record(c, 1, kSteps + 1);
    record.waited(0, ArrivalRecord::Clock::now());  // not counted: its step was forgotten
    for (int step = 0; step < kSteps; ++step) {
      while (c.rank() == 1 && waiting.load() <= step) std::this_thread::yield();
      if (c.rank() == 1) pause(80);
      record.note(0);
      const auto begin = ArrivalRecord::Clock::now();
      if (c.rank() == 0) waiting.store(step + 1);
      c.barrier();
      pause(40);  // the exchange itself
      record.waited(0, begin);
    }
    const ArrivalSummary summary = record.collect();
    ASSERT_EQ(summary.ranks.size(), 2u);
    for (const Lateness& rank : summary.ranks) {
      EXPECT_GE(rank.waited - rank.waited_for_late, 0.039) << rank.rank;
      if (rank.rank == 0) {
        EXPECT_GE(rank.waited_for_late, 0.079);
      }
    }
    EXPECT_EQ(summary.ranks[0].rank, 1);
    EXPECT_EQ(summary.ranks[0].last, kSteps);
    EXPECT_NEAR(summary.waited, (summary.ranks[0].waited + summary.ranks[1].waited) / 2, 1e-9);
  });
}

TEST(ArrivalRecord, KeepsAsManyStepsAsItHasRoomForAndOnlyWholeOnes) {
  run_ranks(2, [](Communicator& c) {
    ArrivalRecord record(c, 2, 3);
    for (int step = 0; step < 5; ++step) {
      record.note(1);
      record.note(0);
    }
    EXPECT_EQ(record.collect().steps, 3);
    record.note(0);
    EXPECT_EQ(record.collect().steps, 0);
    EXPECT_EQ(record.collect().straggler(), nullptr);
    EXPECT_THROW(record.note(2), InternalError);
  });
}

TEST(ArrivalRecord, ASingleRankIsNeverLate) {
  const auto c = make_single_communicator();
  ArrivalRecord record(*c, 1, 4);
  for (int step = 0; step < 9; ++step) record.note(0);
  const ArrivalSummary summary = record.collect();
  EXPECT_EQ(summary.steps, 0);
  EXPECT_EQ(summary.straggler(), nullptr);
}

TEST(ArrivalSummary, PersistentMeansOftenAndByMoreThanNoise) {
  ArrivalSummary summary{.steps = 100,
                         .step_seconds = 0.1,
                         .clock_error = 1e-5,
                         .ranks = {{.rank = 3, .last = 87, .median = 0.0123, .worst = 0.02},
                                   {.rank = 1, .last = 13, .median = 0.001, .worst = 0.004}}};
  ASSERT_NE(summary.straggler(), nullptr);
  EXPECT_EQ(summary.straggler()->rank, 3);
  summary.ranks[0].last = 66;
  EXPECT_EQ(summary.straggler(), nullptr);
  summary.ranks[0].last = 87;
  summary.ranks[0].median = 0.0049;
  EXPECT_EQ(summary.straggler(), nullptr);
  summary.ranks[0].median = 0.0123;
  summary.clock_error = 0.007;
  EXPECT_EQ(summary.straggler(), nullptr);
  summary.clock_error = 0;
  summary.steps = 3;
  EXPECT_EQ(summary.straggler(), nullptr);
}

}  // namespace
}  // namespace tutti::comm
