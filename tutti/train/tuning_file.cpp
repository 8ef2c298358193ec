#include "tutti/train/tuning_file.h"

#include <fstream>
#include <sstream>

#include "tutti/base/log.h"
#include "tutti/train/result_file.h"

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
  try {
    write_result_file(path, choices.to_string());
  } catch (const IoError& error) {
    log::debug("{}: the next run will measure again", error.what());
  }
}

}  // namespace tutti
