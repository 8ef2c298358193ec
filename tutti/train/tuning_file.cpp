#include "tutti/train/tuning_file.h"

#include <fstream>
#include <sstream>

#include "tutti/base/log.h"
#include "tutti/base/small_text.h"
#include "tutti/data/format/text_file.h"
#include "tutti/train/result_file.h"

namespace tutti {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::error_code unknown;
  std::ifstream file =
      open_small_text(path, {.expected = "a file of measured kernels",
                             .any_kind = std::filesystem::is_character_file(path, unknown)});
  std::stringstream text;
  text << file.rdbuf();
  return data::plain_lines(text.str());
}

}  // namespace

Choices read_tuning_file(const std::filesystem::path& path) {
  const std::string text = read_all(path);
  if (!Choices::begin(text)) {
    log::warn(
        "'{}' is no file of measured kernels: it is left as it is, and what is measured now "
        "is not kept; name another file as plan.tuning, or remove this one",
        path.string());
    return {};
  }
  try {
    return Choices::parse(text);
  } catch (const ConfigError& error) {
    log::warn("'{}' is damaged and will be written anew: {}", path.string(), error.what());
    return {};
  }
}

void write_tuning_file(const std::filesystem::path& path, const Choices& choices) {
  if (!Choices::begin(read_all(path))) return;  // somebody's file of another kind
  std::error_code failed;
  std::filesystem::create_directories(path.parent_path(), failed);
  try {
    write_result_file(path, choices.to_string());
  } catch (const IoError& error) {
    log::debug("{}: the next run will measure again", error.what());
  }
}

}  // namespace tutti
