#include "tutti/plan/run/device_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "tutti/backend/gpu/kernels/gradients.h"
#include "tutti/device/launch.h"
#include "tutti/plan/device_memory.h"

namespace tutti::plan {
namespace {

using backend::GradientFindings, backend::kGradientRun;

constexpr std::string_view kLook = "gradient_look";
static_assert(kGradientRun == kFindingsRun && sizeof(GradientFindings) == kFindingsBytes &&
              DeviceGradients::kMostNumbers == backend::kMostBrought &&
              offsetof(GradientFindings, brought) == DeviceGradients::kFoundBytes);

int64_t floats_of(size_t bytes) { return static_cast<int64_t>(bytes / sizeof(float)); }

size_t runs_of(size_t bytes) {
  return static_cast<size_t>((floats_of(bytes) + kGradientRun - 1) / kGradientRun);
}

bool has_kernels(const device::Device& device) {
  return std::ranges::find(device.functions(), kLook, &device::DeviceFunction::name) !=
         device.functions().end();
}

/// The same work by the host, which reads memory of the device.
template <class Work>
void put_on(device::Stream& stream, Work work) {
  struct Call final : device::HostWork {
    explicit Call(Work of) : work(std::move(of)) {}
    void run() override { work(); }
    Work work;
  };
  stream.host(std::make_shared<Call>(std::move(work)));
}

void look_here(const backend::GradientLookArgs& a) {
  const float *const begin = a.gradients, *const end = begin + a.floats;
  const float* const bad = std::find_if(begin, end, [](float x) { return !std::isfinite(x); });
  a.findings->first = bad == end ? -1 : bad - begin;
  if (bad != end) a.findings->any = 1;
  for (int i = 0; i < a.count; ++i) a.findings->brought[i] = *a.numbers[i];
}

void stop_here(const backend::GradientStopArgs& a) {
  if (a.findings->any == 0) return;
  std::fill_n(a.gradients, a.floats, 0.0f);
  std::fill_n(a.scalars, a.scalar_floats, 0.0f);
}

float* floats_at(std::byte* at) { return reinterpret_cast<float*>(at); }

}  // namespace

bool DeviceGradients::possible(const device::Device& device) {
  return has_kernels(device) || device.facts().host_work_reads_memory;
}

DeviceGradients::DeviceGradients(device::Device& device, size_t bytes, device::Stream& stream)
    : device_(device), has_kernels_(has_kernels(device)), bytes_(bytes),
      memory_(device, device_finding_bytes(bytes)) {
  begin(stream);
}

unsigned DeviceGradients::runs() const { return static_cast<unsigned>(runs_of(bytes_)); }

std::byte* DeviceGradients::arena(const void* host, device::Stream& stream) {
  const auto [at, added] = arenas_.try_emplace(host);
  if (added) {
    at->second = device::Memory(device_, bytes_);
    // Between parameters lie bytes that no kernel writes, and arenas are used whole.
    stream.fill(at->second.data(), std::byte{0}, bytes_);
  }
  return at->second.data();
}

void DeviceGradients::begin(device::Stream& stream) {
  stream.fill(memory_.data(), std::byte{0}, sizeof(GradientFindings));
}

void DeviceGradients::look(std::byte* arena, std::span<const float* const> numbers,
                           device::Stream& stream) {
  look_and_stop(arena, numbers, {}, stream);
}

void DeviceGradients::look_and_stop(std::byte* arena, std::span<const float* const> numbers,
                                    std::span<std::byte> scalars, device::Stream& stream) {
  backend::GradientLookArgs args{
      .gradients = floats_at(arena),
      .floats = floats_of(bytes_),
      .firsts = reinterpret_cast<int64_t*>(memory_.data() + sizeof(GradientFindings)),
      .findings = reinterpret_cast<GradientFindings*>(memory_.data()),
      .numbers = {},
      .count = static_cast<int32_t>(numbers.size()),
      .scalars = floats_at(scalars.data()),
      .scalar_floats = floats_of(scalars.size())};
  std::ranges::copy(numbers, args.numbers);
  if (has_kernels_)
    return device::launch(stream, device::function_named(device_, kLook), {runs()}, args);
  put_on(stream, [args] { look_here(args); });
  if (!scalars.empty()) stop({arena, bytes_}, scalars, stream);
}

void DeviceGradients::add(std::byte* into, const std::byte* from, device::Stream& stream) {
  const backend::GradientAddArgs args{floats_at(into), reinterpret_cast<const float*>(from),
                                      floats_of(bytes_)};
  if (has_kernels_)
    return device::launch(stream, device::function_named(device_, "gradient_add"), {runs()}, args);
  put_on(stream, [args] {
    for (int64_t i = 0; i < args.floats; ++i) args.into[i] += args.from[i];
  });
}

void DeviceGradients::stop(std::span<std::byte> gradients, std::span<std::byte> scalars,
                           device::Stream& stream) {
  const backend::GradientStopArgs args{reinterpret_cast<const GradientFindings*>(memory_.data()),
                                       floats_at(gradients.data()), floats_of(gradients.size()),
                                       floats_at(scalars.data()), floats_of(scalars.size())};
  if (has_kernels_)
    return device::launch(stream, device::function_named(device_, "gradient_stop"),
                          {static_cast<unsigned>(runs_of(gradients.size()))}, args);
  put_on(stream, [args] { stop_here(args); });
}

size_t DeviceGradients::memory_bytes() const {
  size_t bytes = memory_.bytes();
  for (const auto& [host, arena] : arenas_) bytes += arena.bytes();
  return bytes;
}

}  // namespace tutti::plan
