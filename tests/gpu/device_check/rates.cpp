#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tests/gpu/device_check/timed_kernel.h"
#include "tutti/base/error.h"
#include "tutti/device/libraries.h"

namespace tutti::device_check {
namespace {

/// Returns the median of the seconds in which the device does what `put` puts on the stream.
template <class Put>
double seconds_of(device::Device& device, device::Stream& stream, int times, Put put) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int i = 0; i <= times; ++i) {
    const Clock::time_point begin = Clock::now();
    put();
    device::settle(device, stream, "a measurement");
    if (i > 0)  // the first time warms up
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

/// Returns the bytes per second that a copy within the device reads and writes.
double measure_copies(Target& target) {
  const size_t bytes = target.small ? size_t{1} << 16 : size_t{1} << 30;
  const int copies = target.small ? 2 : 10;
  device::Device& device = *target.device;
  const auto stream = device.make_stream("copies");
  device::Memory a(device, bytes), b(device, bytes);
  device::Memory host(device, bytes / 4, device::MemoryKind::pinned);
  stream->fill(a.data(), std::byte{0x3C}, bytes);
  const auto rate = [&](void* to, const void* from, size_t n) {
    return copies * static_cast<double>(n) / seconds_of(device, *stream, 5, [&] {
             for (int i = 0; i < copies; ++i) stream->copy(to, from, n);
           });
  };
  const double within = 2 * rate(b.data(), a.data(), bytes);
  fmt::print("copy within the device, read and written: {:.1f} GB/s\n", within * 1e-9);
  fmt::print("copy to the device, from pinned memory: {:.1f} GB/s\n",
             rate(a.data(), host.data(), host.bytes()) * 1e-9);
  fmt::print("copy from the device, to pinned memory: {:.1f} GB/s\n",
             rate(host.data(), a.data(), host.bytes()) * 1e-9);
  return within;
}

void measure_launches(Target& target, const backend::Backend& own) {
  const std::string line = "add f32 n1c64h2w2";
  const int launches = target.small ? 10 : 300;
  device::Device& device = *target.device;
  TimedKernel kernel(line, own, kernels_for(line, own).at(0));
  const auto stream = device.make_stream("launches");
  const auto put = [&](int count) {
    for (int i = 0; i < count; ++i) kernel.put(*stream);
  };
  const double one = seconds_of(device, *stream, 20, [&] { put(1); });
  const double eager = seconds_of(device, *stream, 20, [&] { put(launches); });
  stream->begin_recording();
  put(launches);
  const auto recording = stream->end_recording();
  const double replayed = seconds_of(device, *stream, 20, [&] { stream->replay(*recording); });
  fmt::print("one small kernel and a wait: {:.1f} us\n", one * 1e6);
  fmt::print(
      "{} small kernels, eager: {:.2f} us each; replayed: {:.2f} us each, {:.3f} ms in all\n",
      launches, eager * 1e6 / launches, replayed * 1e6 / launches, replayed * 1e3);
}

void measure_large_product(Target& target, device::LibraryType type, const char* name) {
  device::Device& device = *target.device;
  const int64_t side = target.small ? 64 : 8192;
  const device::LibraryDense dense{.type = type, .rows = side, .inputs = side, .outputs = side};
  const auto bytes = static_cast<size_t>(side * side) * sizeof(float);
  device::Memory x(device, bytes), w(device, bytes), y(device, bytes);
  const auto stream = device.make_stream("products");
  for (device::Memory* memory : {&x, &w}) stream->fill(memory->data(), std::byte{0x3C}, bytes);
  for (const device::LibraryWay& way : device.libraries()->ways(dense)) {
    if (!way.refusal.empty()) continue;
    device::Memory workspace(device, way.workspace_bytes);
    const auto call = device.libraries()->call(dense, way.name);
    const double seconds = seconds_of(device, *stream, 5, [&] {
      call->put(*stream, {.first = x.data(),
                          .second = w.data(),
                          .result = y.data(),
                          .workspace = workspace.data()});
    });
    fmt::print("product of {0} x {0} matrices, {1}, {2}: {3:.1f} TFLOP/s\n", side, name, way.name,
               2e-12 * static_cast<double>(side * side * side) / seconds);
    return;
  }
  fmt::print("product of {0} x {0} matrices, {1}: not run: the libraries offer none\n", side, name);
}

/// Kernels that wait for memory, on sizes of ResNet-50, and a few products.
std::vector<std::string> timed_lines(bool small) {
  const std::string image = small ? "n2c64h8w8" : "n64c256h56w56";
  const std::string many = small ? "n4096" : "n25557032";
  std::vector<std::string> lines;
  for (const char* type : {"bf16", "f32"}) {
    for (const char* op : {"batch_norm_stats", "batch_norm_apply", "batch_norm_grad_reduce",
                           "batch_norm_grad_apply", "add", "activation", "activation_grad",
                           "dropout", "bias_backward", "spatial_sum", "global_average_pool",
                           "broadcast", "pool", "pool_grad", "slice", "pad", "concat", "resize"}) {
      const std::string name = op;
      std::string rest;
      if (name.starts_with("batch_norm_apply") || name == "batch_norm_grad_reduce" ||
          name.starts_with("activation"))
        rest = " relu";
      if (name.starts_with("pool")) rest = " max r3s3 stride2 pad1";
      if (name == "slice") rest = " from0 step2";
      if (name == "pad") rest = " low1 high1";
      if (name == "concat") rest = " axis1 other64";
      if (name == "resize") rest = " factor2";
      lines.push_back(fmt::format("{} {} {}{}", op, type, image, rest));
    }
    lines.push_back(fmt::format("conv {} {} k64r1s1", type, image));
    lines.push_back(
        fmt::format("conv {} {} k16r3s3 pad1", type, small ? "n2c16h8w8" : "n128c16h32w32"));
  }
  lines.push_back(fmt::format("sgd_update f32 {} momentum0.9", many));
  lines.push_back(fmt::format("adam_update f32 {}", many));
  lines.push_back(fmt::format("gradient_squares f32 {}", many));
  lines.push_back(small ? "softmax_cross_entropy f32 n9c10"
                        : "softmax_cross_entropy f32 n256c1000");
  return lines;
}

void measure_kernel(Target& target, const std::string& line, const std::string& name, double most) {
  TimedKernel kernel(line, target.backend, name);
  const int runs = target.small ? 1 : 10;
  const auto stream = target.device->make_stream("kernels");
  const double seconds = seconds_of(*target.device, *stream, 3,
                                    [&] {
                                      for (int i = 0; i < runs; ++i) kernel.put(*stream);
                                    }) /
                         runs;
  const double rate = static_cast<double>(kernel.bytes()) / seconds;
  fmt::print("{:>10.1f} {:>9.2f} {:>9.1f} {:>8.0f} {:>9.2f}  {} by {}\n", seconds * 1e6,
             static_cast<double>(kernel.bytes()) * 1e-6, rate * 1e-9, 100 * rate / most,
             kernel.flop() / seconds * 1e-12, line, name);
}

}  // namespace

Outcome run_kernel(Target& target, const std::string& line) {
  const SomeKernels own(target.backend, is_own);
  const std::vector<std::string> kernels = kernels_for(line, own);
  if (kernels.empty()) throw DeviceError("there is no own kernel for " + line);
  TimedKernel kernel(line, own, kernels.front());
  const auto stream = target.device->make_stream("kernel");
  for (int i = 0; i < 2; ++i) kernel.put(*stream);
  device::settle(*target.device, *stream, "a kernel");
  fmt::print("{} by {} has run\n", line, kernels.front());
  return Outcome::passed;
}

Outcome measure_rates(Target& target) {
  const SomeKernels own(target.backend, is_own);
  const double most = measure_copies(target);
  measure_launches(target, own);
  if (target.device->libraries()) {
    measure_large_product(target, device::LibraryType::bf16, "bf16");
    measure_large_product(target, device::LibraryType::tf32, "tf32");
    measure_large_product(target, device::LibraryType::f32, "f32");
  } else {
    fmt::print("large products: not run: there are no libraries for this device\n");
  }
  constexpr size_t kMostKernels = 4;  // libraries offer dozens
  int failures = 0;
  fmt::print("{:>10} {:>9} {:>9} {:>8} {:>9}  kernel (bytes: each operand once)\n", "us", "MB",
             "GB/s", "% copy", "TFLOP/s");
  for (const std::string& line : timed_lines(target.small)) {
    try {
      const std::vector<std::string> kernels = kernels_for(line, target.backend);
      if (kernels.empty()) fmt::print("not run: {}: there is no kernel for it\n", line);
      for (size_t i = 0; i < std::min(kernels.size(), kMostKernels); ++i)
        measure_kernel(target, line, kernels[i], most);
      if (kernels.size() > kMostKernels && !is_own(kernels[kMostKernels - 1]))
        measure_kernel(target, line, kernels.back(), most);  // ours
    } catch (const Error& error) {
      ++failures;
      fmt::print("FAILED {}: {}\n", line, error.what());
    }
  }
  return failures == 0 ? Outcome::passed : Outcome::failed;
}

}  // namespace tutti::device_check
