#include "tutti/device/cuda/libraries/opened_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tutti::device {
namespace {

/// Returns the folder of the file that this function is in, with a slash; empty: not known.
std::string own_folder() {
  Dl_info info = {};
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace

OpenedLibrary::OpenedLibrary(const std::string& name) : name_(name) {
  file_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file_) return;
  const std::string reason = dlerror();
  const std::string folder = own_folder();
  if (!folder.empty()) file_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!file_)
    problem_ = fmt::format("{} cannot be loaded ({}): its folder belongs into LD_LIBRARY_PATH",
                           name, reason);
}

void* OpenedLibrary::find(const char* name) {
  void* const function = file_ ? dlsym(file_, name) : nullptr;
  if (!function && problem_.empty())
    problem_ = fmt::format("{} has no {}: another version is needed", name_, name);
  return function;
}

}  // namespace tutti::device
