#include <gtest/gtest.h>

#include <set>

#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/test_device.h"
#include "tutti/device/emulated/test_kernels.h"

namespace tutti::device {
namespace {

using namespace test_kernels;

TEST(EmulatedRecordings, ReplaysSeeNumbersInMemoryAndNotThoseOfTheLaunch) {
  TestDevice d(1);
  const Floats in_memory = d.floats_of({1.0f}), launched = d.floats_of({1.0f}),
               x = d.floats_of({1.0f});
  const Floats slot = d.pinned({0.5f}), rate = d.floats(1);
  d.compute->begin_recording();
  d.copy(*d.compute, rate, slot);
  launch(*d.compute, kAxpy, {1}, AxpyArgs{in_memory.data(), x.data(), rate.data(), 0, 1});
  launch(*d.compute, kAxpy, {1}, AxpyArgs{launched.data(), x.data(), nullptr, slot.data()[0], 1});
  const auto recording = d.compute->end_recording();
  EXPECT_EQ(recording->launches(), 3u);
  EXPECT_EQ(d.device->counts().launches, 0);
  EXPECT_EQ(d.values(in_memory)[0], 1) << "recorded work has not happened";
  for (const float value : {0.5f, 0.25f}) {
    slot.data()[0] = value;
    d.compute->replay(*recording);
    d.wait(*d.compute);
  }
  EXPECT_EQ(d.values(in_memory)[0], 0.25f);
  EXPECT_EQ(d.values(launched)[0], 0.0f) << "the rate of the launch, twice";
  EXPECT_EQ(d.device->counts().launches, 4);
  EXPECT_EQ(d.device->counts().replays, 2);
}

/// Records work of two streams: `order` gets 1 (compute), 2 (copies), 3 (compute), with or without
/// the waits of compute for copies.
std::unique_ptr<Recording> record_both(TestDevice& d, std::vector<int>& order, bool joins) {
  const auto forked = d.device->make_event(), joined = d.device->make_event();
  d.compute->begin_recording();
  d.compute->host(calling([&] { order.push_back(1); }));
  d.compute->record(*forked);
  d.copies->wait(*forked);
  d.copies->host(calling([&] { order.push_back(2); }));
  d.copies->record(*joined);
  if (joins) d.compute->wait(*joined);
  d.compute->host(calling([&] { order.push_back(3); }));
  if (!joins) d.compute->wait(*joined);
  return d.compute->end_recording();
}

TEST(EmulatedRecordings, StreamsThatJoinAreReplayedInTheirOrder) {
  std::set<std::vector<int>> without;
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (const bool joins : {true, false}) {
      TestDevice d(seed);
      std::vector<int> order;
      const auto recording = record_both(d, order, joins);
      EXPECT_EQ(recording->launches(), 3u);
      d.compute->replay(*recording);
      d.compute->host(calling([&] { order.push_back(4); }));
      d.compute->replay(*recording);
      d.wait(*d.compute);
      if (joins)
        EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 1, 2, 3})) << "seed " << seed;
      else
        without.insert(order);
      EXPECT_EQ(d.device->counts().host_work, 7);
    }
  EXPECT_GT(without.size(), 1u) << "nothing orders 2 and 3";
}

TEST(EmulatedRecordings, AReplayFollowsItsStreamAlone) {
  for (uint64_t seed = 1; seed < 8; ++seed) {
    TestDevice d(seed);
    std::vector<int> order;
    const auto recording = record_both(d, order, true);
    const auto other = d.device->make_stream("other");
    other->host(calling([&] { order.push_back(0); }));
    other->replay(*recording);
    d.wait(*other);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  }
}

TEST(EmulatedRecordings, MayHoldReplays) {
  TestDevice d(1);
  std::vector<int> order;
  const auto inner = record_both(d, order, true);
  d.compute->begin_recording();
  d.compute->replay(*inner);
  d.compute->host(calling([&] { order.push_back(5); }));
  const auto outer = d.compute->end_recording();
  d.compute->replay(*outer);
  d.wait(*d.compute);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 5}));
  EXPECT_EQ(d.device->counts().host_work, 4);
}

TEST(EmulatedRecordings, OutliveTheObjectsThatTheyWereMadeWith) {
  TestDevice d(1);
  int done = 0;
  const auto end = d.device->make_event();
  {
    const auto stream = d.device->make_stream("short");
    stream->begin_recording();
    stream->host(calling([&] { ++done; }));
    const auto recording = stream->end_recording();
    d.compute->replay(*recording);
    d.compute->replay(*recording);
    d.compute->record(*end);
  }
  d.device->wait(*end, "the end");
  EXPECT_EQ(done, 2);
}

TEST(EmulatedRecordings, AStreamThatIsNotJoinedIsRefused) {
  TestDevice d(1);
  const auto forked = d.device->make_event(), early = d.device->make_event();
  d.compute->begin_recording();
  d.compute->record(*forked);
  d.copies->wait(*forked);
  d.copies->host(calling([] {}));
  d.copies->record(*early);
  d.copies->host(calling([] {}));
  d.compute->wait(*early);
  EXPECT_TRUE(throws<DeviceError>({"the recording on stream 'compute' ends before it has waited "
                                   "for the last work of stream 'copies'"},
                                  [&] { d.compute->end_recording(); }));
  d.copies->host(calling([] {}));  // nothing is recorded any more
  d.wait(*d.copies);
}

TEST(EmulatedRecordings, TheHostMustNotWaitMeanwhile) {
  TestDevice d(1);
  const auto before = d.device->make_event();
  d.compute->record(*before);
  d.compute->begin_recording();
  const auto refused = [&](const std::string& text, auto call) {
    EXPECT_TRUE(throws<DeviceError>({text}, call));
  };
  refused("the host waits for an event while work is recorded",
          [&] { d.device->wait(*before, "it"); });
  refused("the host waits for an event while work is recorded", [&] { d.device->done(*before); });
  refused("4 bytes are allocated while work is recorded", [&] { d.floats(1); });
  refused("stream 'compute', which is recorded, waits for an event from outside",
          [&] { d.compute->wait(*before); });
  refused("a recording begins on stream 'copies' before another has ended",
          [&] { d.copies->begin_recording(); });
  refused("no recording was begun on stream 'copies'", [&] { d.copies->end_recording(); });
  d.compute->end_recording();
  d.device->wait(*before, "it");
}

TEST(EmulatedRecordings, TheirEventsMeanNothingOutside) {
  TestDevice d(1);
  const auto event = d.device->make_event();
  d.compute->begin_recording();
  d.compute->record(*event);
  const auto recording = d.compute->end_recording();
  EXPECT_TRUE(
      throws<DeviceError>({"recorded within a recording"}, [&] { d.device->wait(*event, "it"); }));
  EXPECT_TRUE(throws<DeviceError>({"recorded within a recording that has ended"},
                                  [&] { d.copies->wait(*event); }));
  d.compute->record(*event);
  d.device->wait(*event, "it");
}

TEST(EmulatedRecordings, EndWithTheirStream) {
  TestDevice d(1);
  d.copies->begin_recording();
  d.copies.reset();
  d.wait(*d.compute);
}

}  // namespace
}  // namespace tutti::device
