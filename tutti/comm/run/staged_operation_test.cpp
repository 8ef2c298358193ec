#include "tutti/comm/run/staged_operation.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

// The sum over ranks of the rank's number, doubled, summed again: n * n * (n - 1).
class TwoSums final : public StagedOperation {
 public:
  explicit TwoSums(Communicator& c) : StagedOperation(c, "two sums") {
    for (Exchange& sum : sums_)
      sum.operation =
          c.plan({.kind = Collective::allreduce, .count = 1, .input = &value_, .output = &value_});
  }
  ~TwoSums() override { withdraw(); }
  float value() const { return value_; }
  int works() const { return works_; }
  void fail_in(int stage) { fail_in_ = stage; }

 private:
  Exchange* next(int stage) override {
    works_.store(stage + 1);
    if (stage == fail_in_) throw CommError("no more of it");
    if (stage == 0) value_ = static_cast<float>(communicator().rank());
    if (stage == 1) value_ *= 2;
    return stage < 2 ? &sums_[static_cast<size_t>(stage)] : nullptr;
  }
  float value_ = 0;
  std::array<Exchange, 2> sums_;
  std::atomic<int> works_{0};
  int fail_in_ = -1;
};

TEST(StagedOperation, EachStageStandsOnTheOneBefore) {
  run_ranks(3, [](Communicator& c) {
    TwoSums sums(c);
    for (int run = 0; run < 20; ++run) {
      sums.run();
      ASSERT_EQ(sums.value(), 18);
    }
  });
}

// The owner makes no call between start() and the last stage.
TEST(StagedOperation, ThreadsMoveEveryStage) {
  run_ranks(3, [](Communicator& c) {
    c.set_progress(std::make_shared<Progress>(1));
    TwoSums sums(c);
    sums.start();
    while (sums.works() < 3) std::this_thread::yield();
    sums.wait();
    EXPECT_EQ(sums.value(), 18);
  });
}

// Ranks that wait for different operations move each other's second stages: a wait moves all.
TEST(StagedOperation, AWaitMovesTheStagesOfOthers) {
  run_ranks(4, [](Communicator& c) {
    const auto rows = c.split(c.rank() / 2, c.rank()), columns = c.split(c.rank() % 2, c.rank());
    TwoSums row(*rows), column(*columns);
    for (int run = 0; run < 20; ++run) {
      row.start(), column.start();
      const bool swap = c.rank() == 1 || c.rank() == 2;
      (swap ? column : row).wait();
      c.barrier();
      (swap ? row : column).wait();
      ASSERT_EQ(row.value(), 4);
      ASSERT_EQ(column.value(), 4);
    }
  });
}

TEST(StagedOperation, AReportNamesTheStage) {
  EXPECT_TRUE(throws<CommError>({"two sums, stage 2: allreduce"}, [] {
    run_ranks(2, [](Communicator& c) {
      c.set_timeout(patience(0.1));
      TwoSums sums(c);
      if (c.rank() == 1) sums.fail_in(1);
      sums.start();
      try {
        sums.wait();
      } catch (const CommError& error) {
        if (c.rank() == 0) throw;
        EXPECT_TRUE(has_text(error.what(), "two sums"));
        sleep_patiently(0.3);
      }
    });
  }));
}

}  // namespace
}  // namespace tutti::comm
