#include "tutti/train/network/tuning_file.h"

#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>

#include "tutti/base/log.h"
#include "tutti/base/small_text.h"
#include "tutti/data/file/text_file.h"
#include "tutti/keep/result_file.h"

namespace tutti::train {
namespace {

/// Returns the text of choices, empty if there is no file; nothing if it is of another kind or
/// cannot be read. Throws IoError for a path that is not a regular file.
std::optional<std::string> text_of_choices(const std::filesystem::path& path) {
  std::error_code unknown;
  std::ifstream file =
      open_small_text(path, {.expected = "a file of measured kernels",
                             .any_kind = std::filesystem::is_character_file(path, unknown)});
  if (!file) return errno == ENOENT ? std::optional<std::string>("") : std::nullopt;
  std::stringstream whole;
  whole << file.rdbuf();
  const std::string text = data::plain_lines(whole.str());
  return file.bad() || !plan::Choices::begin(text) ? std::nullopt : std::optional(text);
}

}  // namespace

plan::Choices read_tuning_file(const std::filesystem::path& path) {
  const std::optional<std::string> text = text_of_choices(path);
  if (!text) {
    log::warn(
        "'{}' is no file of measured kernels, or cannot be read: it is left as it is, and what is "
        "measured now is not kept; name another file as plan.tuning, or remove this one",
        path.string());
    return {};
  }
  try {
    return plan::Choices::parse(*text);
  } catch (const ConfigError& error) {
    log::warn("'{}' is damaged and will be written anew: {}", path.string(), error.what());
    return {};
  }
}

void write_tuning_file(const std::filesystem::path& path, const plan::Choices& choices) {
  try {
    if (!text_of_choices(path)) return;  // reading it has logged the reason
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    keep::write_result_file(path, choices.to_string());
  } catch (const IoError& error) {
    log::debug("{}: the next run will measure again", error.what());
  }
}

}  // namespace tutti::train
