#include "tutti/device/cpu/machine_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/base/scratch_directory.h"

namespace tutti::device {
namespace {

TEST(MachineWatch, SumsTheProcessorsThatAreNamed) {
  const std::string stat =
      "cpu  9999 9999 9999 9999 9999 9999 9999 9999 0 0\n"
      "cpu0 100 200 300 1000 50 10 20 400 70 0\n"
      "cpu1 1 1 1 1 1 1 1 1 0 0\n"
      "cpu12 100 0 0 100 0 0 0 0 0 0\n"
      "intr 5 0\n";
  const ProcessorTime time = parse_processor_time(stat, {0, 12});
  EXPECT_DOUBLE_EQ(time.busy, 6.3 + 1);
  EXPECT_DOUBLE_EQ(time.steal, 4);
  EXPECT_DOUBLE_EQ(time.there, 20.8 + 2);
  EXPECT_EQ(parse_processor_time("", {0}).there, 0);
}

TEST(MachineWatch, SaysWhatOtherWorkTook) {
  const ProcessorTime time{.there = 20,
                           .busy = 18,
                           .steal = 1,
                           .own = 10,
                           .periods = 100,
                           .throttled_periods = 30,
                           .seconds = 10};
  const trace::MachineUse use = time.shares();
  EXPECT_DOUBLE_EQ(use.other_work, 0.4);
  EXPECT_DOUBLE_EQ(use.steal, 0.05);
  EXPECT_DOUBLE_EQ(use.throttled, 0.3);
  EXPECT_EQ(trace::disturbance_sentence(use),
            "Other work took 40 % of the processors, and the hypervisor kept 5 % of the processors "
            "for other machines, and the control group's quota of processor time was used up in 30 "
            "% of its periods: these times say little");
  // Two ranks that run on the same processors count them once, and their own time each.
  ProcessorTime both = time.shared_by(2);
  both += time.shared_by(2);
  EXPECT_DOUBLE_EQ(both.busy, 18);
  EXPECT_DOUBLE_EQ(both.own, 20);
  EXPECT_EQ(both.shares().other_work, 0);

  EXPECT_EQ(trace::disturbance({.other_work = 0.09, .steal = 0.04, .throttled = 0.09}), "");
  EXPECT_EQ(trace::disturbance({}), "");
  const trace::MachineUse short_look = ProcessorTime{.there = 0.1, .busy = 0.1}.shares();
  EXPECT_TRUE(std::isnan(short_look.other_work));                         // some ticks of the clock
  EXPECT_TRUE(std::isnan(ProcessorTime{.there = 9}.shares().throttled));  // no quota
}

TEST(MachineWatch, ASystemThatSaysNothingIsUnknown) {
  const ScratchDirectory empty;
  const MachineWatch watch(empty.path());
  EXPECT_TRUE(std::isnan(watch.use().other_work));
  EXPECT_GE(watch.so_far().seconds, 0);
  EXPECT_FALSE(watch.processors().empty());
}

}  // namespace
}  // namespace tutti::device
