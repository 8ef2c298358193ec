#pragma once
// For tests: an emulated device with two streams, and numbers there.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/device/emulated/emulated_device.h"
#include "tutti/device/launch.h"
#include "tutti/device/mirrors.h"

namespace tutti::device {

/// Numbers in memory of a device, or in pinned memory.
struct Floats {
  Memory memory;
  float* data() const { return reinterpret_cast<float*>(memory.data()); }
  size_t count() const { return memory.bytes() / sizeof(float); }
};

struct TestDevice {
  std::unique_ptr<EmulatedDevice> device;
  std::unique_ptr<Stream> compute, copies;
  Mirrors mirrors{*device};

  explicit TestDevice(const EmulatedOptions& options)
      : device(make_emulated_device(options)), compute(device->make_stream("compute")),
        copies(device->make_stream("copies")) {}
  explicit TestDevice(uint64_t seed)
      : TestDevice(EmulatedOptions{.seed = seed, .memory_bytes = size_t{64} << 20}) {}

  Floats floats(size_t count, MemoryKind kind = MemoryKind::device) const {
    return {Memory(*device, count * sizeof(float), kind)};
  }
  Floats floats_of(const std::vector<float>& values) {
    Floats made = floats(values.size());
    mirrors.to_device(made.memory.data(), reinterpret_cast<const std::byte*>(values.data()),
                      made.memory.bytes(), *compute);
    return made;
  }
  Floats pinned(const std::vector<float>& values) const {
    Floats made = floats(values.size(), MemoryKind::pinned);
    std::copy(values.begin(), values.end(), made.data());
    return made;
  }
  std::vector<float> values(const Floats& floats) {
    std::vector<float> read(floats.count());
    mirrors.to_host(reinterpret_cast<std::byte*>(read.data()), floats.memory.data(),
                    floats.memory.bytes(), *compute);
    return read;
  }
  void copy(Stream& stream, const Floats& to, const Floats& from) const {
    stream.copy(to.data(), from.data(), from.memory.bytes());
  }
  void wait(Stream& stream) const { settle(*device, stream, "the test's work"); }
};

/// Host work that calls a function.
class CallFunction final : public HostWork {
 public:
  explicit CallFunction(std::function<void()> function) : function_(std::move(function)) {}
  void run() override { function_(); }

 private:
  std::function<void()> function_;
};
inline std::shared_ptr<HostWork> calling(std::function<void()> function) {
  return std::make_shared<CallFunction>(std::move(function));
}

}  // namespace tutti::device
