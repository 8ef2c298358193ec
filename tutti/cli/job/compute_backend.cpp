#include "tutti/cli/job/compute_backend.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/gpu/gpu_backend.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/number.h"
#include "tutti/cli/config/config.h"
#include "tutti/device/cpu/topology.h"
#include "tutti/device/cuda_library.h"
#include "tutti/device/emulated/emulated_device.h"
#include "tutti/device/libraries.h"

namespace tutti::cli {
namespace {

uint64_t emulated_seed() {
  const char* text = std::getenv(kEmulatedSeedVariable);
  if (!text || !*text) return 1;
  uint64_t seed = 0;
  if (!read_number(text, seed))
    throw ConfigError(
        fmt::format("{} must be a whole number, is '{}'", kEmulatedSeedVariable, text));
  return seed;
}

std::unique_ptr<device::Device> open_device(config::DeviceKind kind) {
  if (kind == config::DeviceKind::cuda) return device::open_cuda_device(0);
  device::EmulatedOptions options;
  options.seed = emulated_seed();
  options.functions = backend::own_functions();
  if (const int64_t bytes = device::read_topology().memory_bytes; bytes > 0)
    options.memory_bytes = static_cast<size_t>(bytes);  // the host's is all that there is
  auto device = device::make_emulated_device(options);
  device->time_limit = std::numeric_limits<double>::infinity();  // it is slow, and never hangs
  return device;
}

/// The emulated device always has the host's kernels; where they are asked for there, they are to
/// compute all.
backend::GpuKernels kernels_of(const config::RunConfig& config) {
  using backend::GpuKernels;
  if (config.run.device == config::DeviceKind::emulated)
    return config.plan.host_kernels ? GpuKernels::host_only : GpuKernels::prefer_own;
  return config.plan.host_kernels ? GpuKernels::prefer_own : GpuKernels::own_only;
}

/// Refuses tf32 where nothing computes in it: it would be fp32 without saying so.
void check_precision(const config::RunConfig& config, device::Device* device) {
  if (config.run.precision != config::Precision::tf32) return;
  const device::Libraries* const libraries = device ? device->libraries() : nullptr;
  if (libraries && libraries->any()) return;
  throw ConfigError(fmt::format(
      "run.precision = \"tf32\" is what NVIDIA's libraries compute in on its GPUs, and {}: take "
      "run.precision = \"fp32\" (--precision fp32){}",
      !device ? "run.device is \"cpu\""
              : fmt::format("{} has {}", device->facts().name,
                            libraries ? libraries->versions() : "none"),
      config.run.device == config::DeviceKind::cuda ? ", or install cuDNN and cuBLAS"
                                                    : ", or run.device = \"cuda\" (--gpu)"));
}

}  // namespace

ComputeBackend compute_backend(const config::RunConfig& config) {
  ComputeBackend compute{.host = std::make_unique<backend::CpuBackend>()};
  if (config.run.device != config::DeviceKind::cpu) compute.device = open_device(config.run.device);
  check_precision(config, compute.device.get());
  if (!compute.device) return compute;
  const bool tf32 = config.run.precision == config::Precision::tf32;
  compute.on_device = std::make_unique<backend::GpuBackend>(*compute.device, *compute.host,
                                                            kernels_of(config), tf32);
  log::info("computing on {}", device_line(compute.device->facts()));
  return compute;
}

std::string device_line(const device::DeviceFacts& facts) {
  std::string versions;
  if (!facts.driver.empty()) versions += ", driver " + facts.driver;
  if (!facts.runtime.empty()) versions += ", runtime " + facts.runtime;
  if (!facts.libraries.empty()) versions += ", " + facts.libraries;
  return fmt::format("{} ({} {}{}), {:.1f} GiB", facts.name, facts.kind, facts.number, versions,
                     static_cast<double>(facts.memory_bytes) / (1 << 30));
}

Json device_json(const device::DeviceFacts& facts) {
  return {{"kind", facts.kind},
          {"number", facts.number},
          {"name", facts.name},
          {"driver", facts.driver},
          {"runtime", facts.runtime},
          {"libraries", facts.libraries},
          {"memory_bytes", facts.memory_bytes}};
}

}  // namespace tutti::cli
