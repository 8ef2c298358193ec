#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/test_device.h"
#include "tutti/device/emulated/test_kernels.h"

namespace tutti::device {
namespace {

using namespace test_kernels;

/// Makes all calls of a device that can fail.
void use_everything(EmulatedDevice& device) {
  const auto stream = device.make_stream("one"), other = device.make_stream("two");
  const auto forked = device.make_event(), joined = device.make_event();
  const Memory x(device, 64), y(device, 64), pinned(device, 64, MemoryKind::pinned);
  stream->fill(pinned.data(), std::byte{0}, 64);
  stream->copy(x.data(), pinned.data(), 64);
  stream->begin_recording();
  stream->record(*forked);
  other->wait(*forked);
  other->copy(y.data(), x.data(), 64);
  other->record(*joined);
  stream->wait(*joined);
  launch(*stream, kAxpy, {1},
         AxpyArgs{reinterpret_cast<float*>(y.data()), reinterpret_cast<float*>(x.data()), nullptr,
                  1, 16});
  stream->host(calling([] {}));
  const auto recording = stream->end_recording();
  stream->replay(*recording);
  stream->record(*forked);
  EXPECT_FALSE(device.done(*forked));
  device.wait(*forked, "everything");
}

TEST(CallFailures, LeaveNothingBehindWhicheverCallItIs) {
  const auto right = make_emulated_device({});
  use_everything(*right);
  EXPECT_EQ(right->calls(), 22);
  for (int64_t n = 1; n <= right->calls(); ++n) {
    const auto device = make_emulated_device({.failing_call = n});
    EXPECT_TRUE(throws<DeviceError>({fmt::format("call {} fails because it was asked to", n)},
                                    [&] { use_everything(*device); }));
    EXPECT_EQ(device->counts().bytes, 0u);
  }
}

TEST(CallFailures, NameTheCall) {
  const auto device = make_emulated_device({.failing_call = 2});
  const auto stream = device->make_stream("one");
  EXPECT_TRUE(throws<DeviceError>({"emulated device: making an event: call 2"},
                                  [&] { device->make_event(); }));
  device->make_event();  // one call alone fails
}

}  // namespace
}  // namespace tutti::device
