#include "tutti/train/tuning_file.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tutti/base/log.h"

namespace tutti {

Choices read_tuning_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return {};
  std::stringstream text;
  text << file.rdbuf();
  try {
    return Choices::parse(text.str());
  } catch (const ConfigError& error) {
    log::warn("'{}' is damaged and will be written anew: {}", path.string(), error.what());
    return {};
  }
}

void write_tuning_file(const std::filesystem::path& path, const Choices& choices) {
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  const std::filesystem::path partial = path.string() + fmt::format(".partial-{}", getpid());
  std::ofstream file(partial);
  file << choices.to_string();
  file.close();
  if (file) std::filesystem::rename(partial, path, failed);
  if (!file || failed) {
    std::filesystem::remove(partial, failed);
    log::debug("cannot write '{}': the next run will measure again", path.string());
  }
}

}  // namespace tutti
