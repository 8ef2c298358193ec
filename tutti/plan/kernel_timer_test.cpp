#include "tutti/plan/kernel_timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "tutti/ops/reorder.h"

namespace tutti::plan {
namespace {

/// Takes at least the given time, and counts its runs.
class SleepingKernel final : public backend::Kernel {
 public:
  SleepingKernel(std::chrono::milliseconds time, int& runs) : time_(time), runs_(runs) {}
  void run(const backend::KernelArgs&) override {
    ++runs_;
    std::this_thread::sleep_for(time_);
  }

 private:
  std::chrono::milliseconds time_;
  int& runs_;
};

int runs_of(std::chrono::milliseconds time, double best) {
  const ops::Reorder op(DType::f32);
  const backend::KernelRequest request{
      .op = &op, .in = {}, .out = {}, .in_free = {}, .out_free = {}};
  int runs = 0;
  backend::KernelCandidate candidate;
  candidate.make = [&] { return std::make_unique<SleepingKernel>(time, runs); };
  const double seconds = KernelTimer(request).seconds(candidate, best);
  EXPECT_GE(seconds, std::chrono::duration<double>(time).count());
  return runs;
}

constexpr double kNothingYet = std::numeric_limits<double>::infinity();

}  // namespace

// Layers of a volume take a second each.
TEST(KernelTimer, ALongRunDecidesAlone) {
  EXPECT_EQ(runs_of(std::chrono::milliseconds(60), kNothingYet), 1);
}

TEST(KernelTimer, AKernelFarBehindIsNotRunAgain) {
  EXPECT_EQ(runs_of(std::chrono::milliseconds(4), 1e-5), 1);
}

TEST(KernelTimer, AShortKernelIsRunColdFirst) {
  EXPECT_GE(runs_of(std::chrono::milliseconds(0), kNothingYet), 2);
}

}  // namespace tutti::plan
