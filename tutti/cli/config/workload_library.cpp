#include "tutti/cli/config/workload_library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>

#include "tutti/base/error.h"
#include "tutti/base/numeric/sha256.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/train/workload.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

[[noreturn]] void refuse(const std::string& library, const std::string& reason) {
  throw ConfigError(fmt::format("model.library = \"{}\": {}", library, reason));
}

std::string bytes_of(const std::string& library) {
  std::error_code error;
  const fs::file_status status = fs::status(library, error);
  require_path("model.library", library);
  if (status.type() != fs::file_type::regular) refuse(library, "is no file");
  if (fs::file_size(library, error) > kMostBytes) refuse(library, "is larger than 1 GiB");
  std::ifstream file(library, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) refuse(library, fmt::format("cannot be read: {}", file_error(errno)));
  return bytes;
}

size_t registered() { return models::models().size() + train::registered_metrics(); }

/// Loads a library and never unloads it: the models and metrics are its code.
void load(const std::string& library) {
  // The name needs a slash, or the loader would look in its own folders.
  void* const object = dlopen(fs::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object)
    refuse(library, fmt::format("cannot be loaded: {}. What it needs beyond Tutti's headers it "
                                "must be linked with",
                                dlerror()));
  void* const symbol = dlsym(object, "tutti_workload_register");
  if (!symbol) refuse(library, "has no function tutti_workload_register: write TUTTI_WORKLOAD()");
  const size_t before = registered();
  try {
    reinterpret_cast<void (*)()>(symbol)();
  } catch (const std::exception& error) {
    refuse(library, error.what());
  }
  if (registered() == before) refuse(library, "registers no model and no metric");
}

}  // namespace

std::string refusal_of_library(std::string_view bytes) {
  constexpr std::string_view kOurs = TUTTI_WORKLOAD_INTERFACE;
  constexpr std::string_view kBegin = kOurs.substr(0, kOurs.find(':') + 2);
  if (!bytes.starts_with("\177ELF")) return "is no shared object";
  std::string other;
  for (size_t at = 0; (at = bytes.find(kBegin, at)) != std::string_view::npos; ++at) {
    const std::string_view text = bytes.substr(at, bytes.find('\0', at) - at);
    if (text == kOurs) return "";
    other = text.substr(kBegin.size(), 64);
  }
  if (other.empty())
    return "is no workload of Tutti: nothing in it is registered by TUTTI_WORKLOAD() "
           "(tutti/train/workload.h)";
  return fmt::format(
      "was built against Tutti {}, and this is Tutti {}: build it again, against this one", other,
      kOurs.substr(kBegin.size()));
}

void load_library(config::ModelSection& model) {
  static std::map<std::string, std::string> loaded;  // path -> content
  if (model.library.empty()) return;
  auto at = loaded.find(model.library);
  if (at == loaded.end()) {
    const std::string bytes = bytes_of(model.library);
    if (const std::string reason = refusal_of_library(bytes); !reason.empty())
      refuse(model.library, reason);
    load(model.library);
    const std::string content =
        sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    at = loaded.emplace(model.library, content).first;
  }
  model.library_content = at->second;
}

}  // namespace tutti::cli
