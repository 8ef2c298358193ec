// The device of libtutti_cuda.so, where there is a GPU; elsewhere only the reason why there is
// none.

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <stdexcept>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/process_state.h"
#include "tutti/device/cuda_library.h"

namespace tutti::device {
namespace {

const std::vector<std::string> kPlaces = {TUTTI_CUDA_LIBRARY};

class CallsFunction : public HostWork {
 public:
  explicit CallsFunction(std::function<void()> function) : function_(std::move(function)) {}
  void run() override { function_(); }

 private:
  std::function<void()> function_;
};

std::shared_ptr<HostWork> work(std::function<void()> function) {
  return std::make_shared<CallsFunction>(std::move(function));
}

TEST(CudaLibraryAsBuilt, OpensADeviceOrSaysWhyNot) {
  const CudaReport report = cuda_report(kPlaces);
  EXPECT_EQ(report.library, kPlaces[0]);
  EXPECT_NE(report.runtime, "");
  if (report.devices.empty()) {
    EXPECT_TRUE(has_text(report.problem, "host " + host_name()));
    EXPECT_EQ(message_of<DeviceError>([] { open_cuda_device(0, kPlaces); }), report.problem);
    return;
  }
  EXPECT_EQ(report.problem, "");
  const DeviceFacts& facts = report.devices[0];
  EXPECT_GT(facts.memory_bytes, size_t{1} << 28);
  EXPECT_GE(facts.architecture, 50);
  EXPECT_TRUE(has_text(facts.properties, "\"deviceName\":\"" + facts.name + "\""));
  EXPECT_EQ(open_cuda_device(0, kPlaces)->facts().name, facts.name);
  EXPECT_TRUE(throws<DeviceError>({"there is no device cuda:1000", "CUDA_VISIBLE_DEVICES"},
                                  [] { open_cuda_device(1000, kPlaces); }));
}

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    const CudaReport report = cuda_report(kPlaces);
    if (report.devices.empty()) GTEST_SKIP() << report.problem;
    device_ = open_cuda_device(0, kPlaces);
    stream_ = device_->make_stream("work");
    event_ = device_->make_event();
  }
  Memory pinned() { return {*device_, kBytes, MemoryKind::pinned}; }

  static constexpr size_t kBytes = 1 << 20;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> event_;
};

TEST_F(CudaDevice, CopiesAndFillsInTheOrderOfAStream) {
  const Memory from = pinned(), to = pinned(), memory(*device_, kBytes);
  std::memset(from.data(), 7, kBytes);
  stream_->copy(memory.data(), from.data(), kBytes);
  stream_->fill(memory.data(), std::byte{9}, 100);
  stream_->copy(to.data(), memory.data(), kBytes);
  settle(*device_, *stream_, "a copy");
  EXPECT_EQ(to.data()[99], std::byte{9});
  EXPECT_EQ(to.data()[100], std::byte{7});
  EXPECT_EQ(to.data()[kBytes - 1], std::byte{7});
  const DeviceCounts counts = device_->counts();
  EXPECT_EQ(counts.copies, 2);
  EXPECT_EQ(counts.copied_bytes, 2 * static_cast<int64_t>(kBytes));
  EXPECT_EQ(counts.waits, 1);
  EXPECT_EQ(counts.bytes, kBytes);
}

TEST_F(CudaDevice, EventsOrderStreams) {
  const std::unique_ptr<Stream> other = device_->make_stream("other");
  std::promise<void> go;
  std::string order;
  stream_->host(work([&, gone = go.get_future().share()] {
    gone.wait();
    order += "first ";
  }));
  stream_->record(*event_);
  other->wait(*event_);
  other->host(work([&] { order += "second"; }));
  EXPECT_FALSE(device_->done(*event_));
  go.set_value();
  settle(*device_, *other, "host work");
  EXPECT_EQ(order, "first second");
  EXPECT_TRUE(device_->done(*event_));
}

TEST_F(CudaDevice, ExceptionsOfHostWorkComeOutOfTheNextWait) {
  stream_->host(work([] { throw std::runtime_error("as planned"); }));
  EXPECT_TRUE(
      throws<std::runtime_error>({"as planned"}, [&] { settle(*device_, *stream_, "work"); }));
  EXPECT_TRUE(
      throws<DeviceError>({"host work has failed: as planned"}, [&] { device_->make_event(); }));
}

TEST_F(CudaDevice, RecordedWorkHappensWithEachReplay) {
  const Memory to = pinned(), memory(*device_, kBytes);
  std::memset(to.data(), 0, kBytes);
  int calls = 0;
  stream_->begin_recording();
  stream_->fill(memory.data(), std::byte{5}, kBytes);
  stream_->copy(to.data(), memory.data(), kBytes);
  stream_->host(work([&] { ++calls; }));
  const std::unique_ptr<Recording> recording = stream_->end_recording();
  EXPECT_EQ(recording->launches(), 3u);
  settle(*device_, *stream_, "nothing");
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(to.data()[0], std::byte{0});
  stream_->replay(*recording);
  stream_->replay(*recording);
  settle(*device_, *stream_, "replays");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(to.data()[kBytes - 1], std::byte{5});
  EXPECT_EQ(device_->counts().replays, 2);
  EXPECT_EQ(device_->counts().copies, 2);
  EXPECT_EQ(device_->counts().host_work, 2);
}

TEST_F(CudaDevice, SaysHowMuchMemoryIsFree) {
  EXPECT_TRUE(throws<DeviceError>({"1073741824.0 MiB for the run", " are free", "plan.memory"},
                                  [&] { Memory(*device_, size_t{1} << 50); }));
  EXPECT_EQ(Memory(*device_, kBytes).bytes(), kBytes);  // it goes on
  EXPECT_EQ(device_->counts().bytes, 0u);
}

TEST_F(CudaDevice, IsLostOnceAWaitHasTakenTooLong) {
  std::promise<void> go;
  stream_->host(work([gone = go.get_future().share()] { gone.wait(); }));
  device_->time_limit = 0.01;
  EXPECT_TRUE(throws<DeviceError>({"slow work has not come to its end within 0.01 s"},
                                  [&] { settle(*device_, *stream_, "slow work"); }));
  EXPECT_TRUE(throws<DeviceError>({"slow work"}, [&] { device_->make_event(); }));
  go.set_value();
}

}  // namespace
}  // namespace tutti::device
