#include "tutti/device/cuda/cuda_facts.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/device/cuda/cuda_error.h"
#include "tutti/device/cuda/libraries/libraries.h"
#include "tutti/device/cuda/nvml.h"

namespace tutti::device {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Returns the version of CUDA that the driver knows, 13000; 0: there is no driver.
int driver_cuda() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

[[noreturn]] void refuse_driver(const std::string& host) {
  if (driver_cuda() == 0)
    throw DeviceError(fmt::format(
        "{}: there is no NVIDIA driver (libcuda.so.1) for run.device = \"cuda\": start the run on "
        "a node with a GPU and its driver, a container with the GPU (--gpus all, --nv), or take "
        "run.device = \"cpu\"",
        host));
  const CudaVersions versions = cuda_versions();
  throw DeviceError(fmt::format(
      "{}: the NVIDIA driver {} knows CUDA {}, and libtutti_cuda.so was built with CUDA {}: "
      "install a driver for that or a later one, or build with nvcc of CUDA {} or earlier",
      host, versions.driver, version_text(driver_cuda()), versions.runtime,
      version_text(driver_cuda())));
}

int attribute(int number, cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, number),
        fmt::format("{}, cuda:{}", host_words(), number), "asking for an attribute");
  return value;
}

/// Returns a device as cuDNN describes it, so that it can plan for the device elsewhere.
std::string properties_text(int number, const cudaDeviceProp& p) {
  return fmt::format(
      R"({{"cudaDeviceId":{},"deviceVer":{},"driverVer":{},"driverVersion":{},"totalGlobalMem":{},)"
      R"("maxGridSize":[{},{},{}],"maxBlockSize":[{},{},{}],"regsPerBlock":{},)"
      R"("multiProcessorCount":{},"warpSize":{},"maxSharedMemoryPerBlock":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":{},)"
      R"("maxSharedMemoryPerSM":{},"maxRegistersPerSM":{},"maxCtasPerSM":{},)"
      R"("maxThreadsPerBlock":{},"maxThreadsPerSM":{},"pciDeviceId":{},"isTccDriver":{},)"
      R"("supportCoopLaunch":{},"smClockRateKHz":{},"memClockRateKHz":{},"memBusWidth":{},)"
      R"("l2CacheSize":{},"deviceName":"{}"}})",
      number, p.major * 100 + p.minor * 10, driver_cuda(), driver_cuda(), p.totalGlobalMem,
      p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2], p.maxThreadsDim[0], p.maxThreadsDim[1],
      p.maxThreadsDim[2], p.regsPerBlock, p.multiProcessorCount, p.warpSize, p.sharedMemPerBlock,
      p.sharedMemPerBlockOptin, p.reservedSharedMemPerBlock, p.sharedMemPerMultiprocessor,
      p.regsPerMultiprocessor, p.maxBlocksPerMultiProcessor, p.maxThreadsPerBlock,
      p.maxThreadsPerMultiProcessor, NvmlDevice(cuda_bus(number)).product(), p.tccDriver,
      p.cooperativeLaunch, attribute(number, cudaDevAttrClockRate),
      attribute(number, cudaDevAttrMemoryClockRate), p.memoryBusWidth, p.l2CacheSize, p.name);
}

}  // namespace

CudaVersions cuda_versions() {
  CudaVersions versions{.driver = {}, .runtime = {}, .libraries = library_versions()};
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) versions.runtime = version_text(runtime);
  if (const int known = driver_cuda(); known > 0) {
    versions.driver = nvml_driver_version();
    if (versions.driver.empty()) versions.driver = "of CUDA " + version_text(known);
  }
  return versions;
}

int cuda_device_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  cudaGetLastError();
  const std::string host = host_words();
  if (error == cudaErrorInsufficientDriver) refuse_driver(host);
  if (error == cudaErrorStubLibrary)
    throw DeviceError(fmt::format(
        "{}: the libcuda.so.1 that is found first is the toolkit's stub, which is for linking and "
        "no driver: take the folder lib/stubs out of LD_LIBRARY_PATH, on a node with a driver",
        host));
  if (error == cudaSuccess || error == cudaErrorNoDevice)
    throw DeviceError(fmt::format(
        "{}: the NVIDIA driver shows this process no GPU ({}): correct that variable, ask the "
        "scheduler for a GPU (--gpus), or give the container one; nvidia-smi -L lists them",
        host, visible_words()));
  check(error, host, "looking for GPUs");
  return 0;
}

std::string cuda_bus(int number) {
  std::array<char, 32> text = {};
  check(cudaDeviceGetPCIBusId(text.data(), text.size(), number),
        fmt::format("{}, cuda:{}", host_words(), number), "asking for its place on the bus");
  return text.data();
}

DeviceFacts cuda_facts(int number) {
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, number), fmt::format("{}, cuda:{}", host_words(), number),
        "asking for its properties");
  CudaVersions versions = cuda_versions();
  return {.kind = "cuda",
          .number = number,
          .name = p.name,
          .driver = std::move(versions.driver),
          .runtime = std::move(versions.runtime),
          .libraries = std::move(versions.libraries),
          .architecture = p.major * 10 + p.minor,
          .multiprocessors = p.multiProcessorCount,
          .memory_bytes = p.totalGlobalMem,
          .cache_bytes = static_cast<size_t>(p.l2CacheSize),
          .properties = properties_text(number, p)};
}

}  // namespace tutti::device
