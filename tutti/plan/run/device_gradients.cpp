#include "tutti/plan/run/device_gradients.h"

#include <algorithm>
#include <cmath>
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
static_assert(kGradientRun == kFindingsRun && sizeof(GradientFindings) == 2 * sizeof(int64_t));

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

void look_here(const float* gradients, int64_t floats, GradientFindings* findings) {
  const float* const end = gradients + floats;
  const float* const bad = std::find_if(gradients, end, [](float x) { return !std::isfinite(x); });
  findings->first = bad == end ? -1 : bad - gradients;
  if (bad != end) findings->any = 1;
}

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

void DeviceGradients::look(const std::byte* arena, device::Stream& stream) {
  const auto* const gradients = reinterpret_cast<const float*>(arena);
  auto* const findings = reinterpret_cast<GradientFindings*>(memory_.data());
  const int64_t floats = floats_of(bytes_);
  if (!has_kernels_) return put_on(stream, [=] { look_here(gradients, floats, findings); });
  auto* const firsts = reinterpret_cast<int64_t*>(memory_.data() + sizeof(GradientFindings));
  device::launch(stream, device::function_named(device_, kLook), {runs()},
                 backend::GradientLookArgs{gradients, floats, firsts});
  device::launch(stream, device::function_named(device_, "gradient_judge"), {1},
                 backend::GradientJudgeArgs{firsts, runs(), findings});
}

void DeviceGradients::add(std::byte* into, const std::byte* from, device::Stream& stream) {
  const backend::GradientAddArgs args{reinterpret_cast<float*>(into),
                                      reinterpret_cast<const float*>(from), floats_of(bytes_)};
  if (has_kernels_)
    return device::launch(stream, device::function_named(device_, "gradient_add"), {runs()}, args);
  put_on(stream, [args] {
    for (int64_t i = 0; i < args.floats; ++i) args.into[i] += args.from[i];
  });
}

void DeviceGradients::stop(std::span<std::byte> gradients, std::span<std::byte> scalars,
                           device::Stream& stream) {
  const backend::GradientStopArgs args{
      reinterpret_cast<const GradientFindings*>(memory_.data()),
      reinterpret_cast<float*>(gradients.data()), floats_of(gradients.size()),
      reinterpret_cast<float*>(scalars.data()), floats_of(scalars.size())};
  if (has_kernels_)
    return device::launch(stream, device::function_named(device_, "gradient_stop"),
                          {static_cast<unsigned>(runs_of(gradients.size()))}, args);
  put_on(stream, [args] {
    if (args.findings->any == 0) return;
    std::fill_n(args.gradients, args.floats, 0.0f);
    std::fill_n(args.scalars, args.scalar_floats, 0.0f);
  });
}

size_t DeviceGradients::memory_bytes() const {
  size_t bytes = memory_.bytes();
  for (const auto& [host, arena] : arenas_) bytes += arena.bytes();
  return bytes;
}

}  // namespace tutti::plan
