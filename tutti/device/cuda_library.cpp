#include "tutti/device/cuda_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/device/cuda/cuda_entry.h"
#include "tutti/device/cuda_interface.h"

namespace tutti::device {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libtutti_cuda.so";

struct LoadedLibrary {
  std::string file;
  const CudaEntry* entry = nullptr;
};

/// Returns null if there is no such file. A name without a slash is looked for by the system.
void* open_library(const std::string& place) {
  const bool is_file = place.find('/') != place.npos;
  if (std::error_code none; is_file && !fs::exists(place, none)) return nullptr;
  void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library) return library;
  const std::string reason = dlerror();
  if (!is_file && reason.find("No such file") != reason.npos &&
      reason.starts_with(place + ": cannot open"))
    return nullptr;
  throw DeviceError(fmt::format(
      "{} cannot be loaded: {}. Build it again on this system, or install what it needs", place,
      reason));
}

LoadedLibrary use_library(void* library, const std::string& place) {
  void* const symbol = dlsym(library, "tutti_cuda_entry");
  if (!symbol) throw DeviceError(fmt::format("{} is no library of Tutti's: remove it", place));
  Dl_info info = {};
  LoadedLibrary loaded{.file = dladdr(symbol, &info) ? info.dli_fname : place,
                       .entry = reinterpret_cast<decltype(&tutti_cuda_entry)>(symbol)()};
  if (const std::string_view theirs = loaded.entry->interface; theirs != TUTTI_CUDA_INTERFACE)
    throw DeviceError(fmt::format(
        "{} belongs to another build of Tutti, {}, and this is {}: build both together, or put the "
        "library of this build beside the program",
        loaded.file, theirs, TUTTI_CUDA_INTERFACE));
  return loaded;
}

LoadedLibrary find_library(const std::vector<std::string>& places) {
  for (const std::string& place : places)
    if (void* const library = open_library(place)) return use_library(library, place);
  throw DeviceError(fmt::format(
      "run.device = \"cuda\" needs {}, and it is not there (looked for: {}): this build has no "
      "CUDA part, or its library lies elsewhere. Configure it where nvcc is found, which says so "
      "(docs/gpu.md), or take run.device = \"cpu\"",
      kLibrary, fmt::join(places, ", ")));
}

}  // namespace

std::vector<std::string> cuda_library_places() {
  std::error_code none;
  const fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path();
  return {folder / kLibrary, (folder / TUTTI_LIBRARY_FOLDER / kLibrary).lexically_normal(),
          kLibrary};
}

std::unique_ptr<Device> open_cuda_device(int number, const std::vector<std::string>& places) {
  return find_library(places).entry->open(number);
}

CudaReport cuda_report(const std::vector<std::string>& places) {
  CudaReport report;
  try {
    const LoadedLibrary loaded = find_library(places);
    report.library = loaded.file;
    CudaVersions versions = loaded.entry->versions();
    report.driver = std::move(versions.driver);
    report.runtime = std::move(versions.runtime);
    report.libraries = std::move(versions.libraries);
    report.devices = loaded.entry->devices();
  } catch (const DeviceError& error) {
    report.problem = error.what();
  }
  return report;
}

}  // namespace tutti::device
