#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/test_device.h"
#include "tutti/device/emulated/test_kernels.h"

namespace tutti::device {
namespace {

using namespace test_kernels;

constexpr size_t kCount = 500;
const std::vector<float> kOnes(kCount, 1.0f);

AxpyArgs axpy_args(const Floats& y, const Floats& x, float rate) {
  return {y.data(), x.data(), nullptr, rate, static_cast<int>(kCount)};
}

TEST(EmulatedStreams, NothingHappensBeforeSomebodyWaits) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestDevice d(seed);
    bool happened = false;
    d.compute->host(calling([&] { happened = true; }));
    d.compute->host(calling([] {}));
    EXPECT_FALSE(happened);
    d.wait(*d.compute);
    EXPECT_TRUE(happened);
  }
}

TEST(EmulatedStreams, WorkAfterTheAwaitedEventIsNotDone) {
  TestDevice d(1);
  int done = 0;
  const auto middle = d.device->make_event();
  d.compute->host(calling([&] { ++done; }));
  d.compute->record(*middle);
  d.compute->host(calling([&] { ++done; }));
  d.device->wait(*middle, "the middle");
  EXPECT_EQ(done, 1);
  d.device->wait(*middle, "the middle");
  EXPECT_EQ(done, 1);
  d.wait(*d.compute);
  EXPECT_EQ(done, 2);
}

TEST(EmulatedStreams, DoneComesByAskingAlone) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    TestDevice d(seed);
    int done = 0;
    const auto end = d.device->make_event();
    EXPECT_TRUE(d.device->done(*end)) << "it was never recorded";
    for (int i = 0; i < 10; ++i) d.compute->host(calling([&] { ++done; }));
    d.compute->record(*end);
    int asked = 1;
    while (!d.device->done(*end)) ++asked;
    EXPECT_EQ(done, 10);
    EXPECT_GT(asked, 5);
    EXPECT_EQ(d.device->counts().waits, 0);
  }
}

/// Returns the results of an update whose input another stream copies, over some seeds.
std::set<float> updated(bool waits, int work_before) {
  std::set<float> results;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    TestDevice d(seed);
    const Floats y = d.floats_of(kOnes), x = d.floats(kCount), threes = d.pinned(kOnes);
    for (size_t i = 0; i < kCount; ++i) threes.data()[i] = 3;
    const auto copied = d.device->make_event();
    d.copy(*d.copies, x, threes);
    d.copies->record(*copied);
    for (int i = 0; i < work_before; ++i) d.compute->host(calling([] {}));
    if (waits) d.compute->wait(*copied);
    launch(*d.compute, kAxpy, {2}, axpy_args(y, x, 0.5f));
    const float result = d.values(y)[5];
    results.insert(std::isnan(result) ? -100.0f : result);
  }
  return results;
}

TEST(EmulatedStreams, AMissingEventShowsOverSeeds) {
  EXPECT_EQ(updated(true, 0), std::set<float>{-0.5f});
  EXPECT_EQ(updated(false, 0), (std::set<float>{-100.0f, -0.5f}));
  EXPECT_EQ(updated(false, 100), (std::set<float>{-100.0f, -0.5f}))
      << "work before it must not hide it";
}

TEST(EmulatedStreams, PinnedMemoryThatIsUsedAgainTooEarlyShows) {
  TestDevice d(1);
  const Floats x = d.floats(kCount), slot = d.pinned(kOnes);
  d.copy(*d.compute, x, slot);
  slot.data()[0] = 7;
  EXPECT_EQ(d.values(x)[0], 7);
}

TEST(EmulatedStreams, AWaitIsForTheLastRecordBeforeIt) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    TestDevice d(seed);
    const auto event = d.device->make_event();
    std::vector<int> order;
    d.compute->wait(*event);  // it was never recorded, so there is nothing to wait for
    d.copies->host(calling([&] { order.push_back(1); }));
    d.copies->record(*event);
    d.compute->wait(*event);
    d.compute->host(calling([&] { order.push_back(2); }));
    d.compute->record(*event);  // again, on another stream
    d.copies->wait(*event);
    d.copies->host(calling([&] { order.push_back(3); }));
    d.wait(*d.copies);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  }
}

TEST(EmulatedStreams, CopiesAndFillsReachAllMemory) {
  TestDevice d(1);
  const Floats x = d.floats(kCount), y = d.floats(kCount), out = d.pinned(kOnes);
  for (const float value : d.values(x)) EXPECT_TRUE(std::isnan(value)) << "memory begins as NaN";
  d.compute->fill(x.data(), std::byte{0}, 8);
  d.compute->copy(y.data() + 1, x.data(), 8);
  d.copy(*d.compute, out, y);
  d.compute->copy(x.data(), x.data() + 2, 0);
  d.wait(*d.compute);
  EXPECT_TRUE(std::isnan(out.data()[0]));
  EXPECT_EQ(out.data()[1], 0);
  EXPECT_EQ(out.data()[2], 0);
  EXPECT_TRUE(std::isnan(out.data()[3]));
}

TEST(EmulatedStreams, CopiesOfOtherMemoryAreRefused) {
  TestDevice d(1);
  const Floats x = d.floats(kCount);
  std::vector<float> pageable(kCount);
  const auto refused = [&](void* to, const void* from, size_t bytes, const std::string& text) {
    EXPECT_TRUE(throws<DeviceError>({text}, [&] { d.compute->copy(to, from, bytes); }));
  };
  refused(x.data(), pageable.data(), 8, "a copy's source of 8 bytes at 0x");
  refused(pageable.data(), x.data(), 8, "copy through pinned memory");
  refused(x.data() + kCount - 1, x.data(), 8, "a copy's target of 8 bytes");
  refused(x.data(), x.data() + 1, 8, "which overlap");
  EXPECT_THROW(d.compute->fill(pageable.data(), std::byte{0}, 8), DeviceError);
  d.compute->copy(x.data(), x.data() + 2, 8);
  d.wait(*d.compute);
}

TEST(EmulatedStreams, MemoryThatEndsBeforeItsCopyIsFound) {
  TestDevice d(1);
  Floats x = d.floats_of(kOnes), y = d.floats(kCount);
  d.copy(*d.compute, y, x);
  x = {};
  EXPECT_TRUE(throws<DeviceError>({"a copy's source, when the copy happens, of 2000 bytes"},
                                  [&] { d.wait(*d.compute); }));
}

TEST(EmulatedStreams, CountsAreExact) {
  TestDevice d(1);
  {
    const Floats x = d.floats(kCount), y = d.floats(kCount), pinned = d.pinned(kOnes);
    d.copy(*d.compute, x, pinned);
    d.copy(*d.compute, y, pinned);
    launch(*d.compute, kAxpy, {2}, axpy_args(y, x, 1));
    d.compute->host(calling([] {}));
    d.wait(*d.compute);
    const DeviceCounts counts = d.device->counts();
    EXPECT_EQ(counts.waits, 1);
    EXPECT_EQ(counts.launches, 1);
    EXPECT_EQ(counts.copies, 2);
    EXPECT_EQ(counts.copied_bytes, 4000);
    EXPECT_EQ(counts.host_work, 1);
    EXPECT_EQ(counts.replays, 0);
    EXPECT_EQ(counts.bytes, 4000u);
  }
  EXPECT_EQ(d.device->counts().bytes, 0u);
  EXPECT_EQ(d.device->counts().most_bytes, 4000u);
  EXPECT_EQ(d.device->free_bytes(), size_t{64} << 20);
}

TEST(EmulatedStreams, ErrorsOfHostWorkComeOutOfTheNextWait) {
  TestDevice d(1);
  auto x = std::make_unique<Floats>(d.floats(kCount));
  const auto end = d.device->make_event();
  d.compute->host(calling([] { throw std::out_of_range("sample 17"); }));
  d.compute->host(calling([] { ADD_FAILURE() << "work after what failed"; }));
  d.compute->record(*end);
  while (!d.device->done(*end)) {}
  EXPECT_THROW(d.device->wait(*end, "the end"), std::out_of_range);
  const auto lost = [&](auto call) {
    EXPECT_TRUE(throws<DeviceError>({"the device is lost, because: sample 17"}, call));
  };
  lost([&] { d.device->wait(*end, "the end"); });
  lost([&] { d.compute->fill(x->data(), std::byte{0}, 4); });
  lost([&] { d.device->make_event(); });
  lost([&] { d.floats(1); });
  x.reset();
  EXPECT_EQ(d.device->counts().bytes, 0u);
}

TEST(EmulatedStreams, HostWorkCallsNothingOfTheDevice) {
  TestDevice d(1);
  d.compute->host(calling([&] { d.copies->host(calling([] {})); }));
  EXPECT_TRUE(
      throws<DeviceError>({"host work must not call its device"}, [&] { d.wait(*d.compute); }));
}

TEST(EmulatedStreams, HostWorkSeesMemoryOfTheDevice) {
  TestDevice d(1);
  EXPECT_TRUE(d.device->facts().host_work_reads_memory);
  const Floats x = d.floats_of(kOnes);
  float first = 0;
  d.compute->host(calling([&] {
    first = x.data()[0];
    x.data()[1] = 5;
  }));
  d.wait(*d.compute);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(d.values(x)[1], 5);
}

TEST(EmulatedStreams, ATimeOutNamesWhatWasWaitedForAndWhatIsLeft) {
  TestDevice d(1);
  const auto copied = d.device->make_event();
  bool happened = false;
  d.copies->host(calling([&] { happened = true; }));
  d.copies->record(*copied);
  d.compute->wait(*copied);
  d.device->time_limit = 0;
  EXPECT_TRUE(throws<DeviceError>({"the losses did not come within 0 s",
                                   "left are: 'compute' (1, waits for an event), 'copies' (2)"},
                                  [&] { d.device->wait(*copied, "the losses"); }));
  EXPECT_FALSE(happened);
  d.device->time_limit = 600;
  d.device->wait(*copied, "the losses");
  EXPECT_TRUE(happened);
}

TEST(EmulatedStreams, AStreamMayEndBeforeItsWork) {
  TestDevice d(1);
  const auto end = d.device->make_event();
  bool happened = false;
  d.copies->host(calling([&] { happened = true; }));
  d.copies->record(*end);
  d.copies.reset();
  d.device->wait(*end, "the end");
  EXPECT_TRUE(happened);
}

TEST(EmulatedStreams, FactsSayWhatItIs) {
  const auto device =
      make_emulated_device({.memory_bytes = 12345, .host_work_reads_memory = false});
  EXPECT_EQ(device->facts().kind, "emulated");
  EXPECT_EQ(device->facts().memory_bytes, 12345u);
  EXPECT_EQ(device->facts().architecture, 0);
  EXPECT_FALSE(device->facts().host_work_reads_memory);
  EXPECT_LT(device->joules(), 0);
  EXPECT_EQ(device->make_stream("one")->name(), "one");
}

}  // namespace
}  // namespace tutti::device
