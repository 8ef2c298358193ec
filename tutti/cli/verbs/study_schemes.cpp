#include "tutti/cli/verbs/study_schemes.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tutti/base/error.h"

namespace tutti::cli {
namespace {

SchemeOfStudy parse_scheme(const std::string& part, bool (*set_by_study)(std::string_view)) {
  std::istringstream words(part);
  SchemeOfStudy choice;
  words >> choice.scheme;
  choice.sets.push_back("sync.scheme=" + choice.scheme);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw ConfigError(
          fmt::format("--sync {}: '{}' is no setting; KEY=VALUE may follow a scheme, and a comma "
                      "stands before the next one",
                      part, word));
    const std::string key = word.substr(0, equals);
    if (key == "sync.scheme" || set_by_study(key))
      throw ConfigError(
          fmt::format("--sync {}: {} is for all schemes alike, and no scheme's own", part, key));
    choice.sets.push_back(word);
  }
  return choice;
}

/// Returns the folder's name, with its keys: a study started again with other keys is another
/// study.
std::string folder_of(const SchemeOfStudy& choice) {
  std::string name = choice.scheme;
  for (size_t i = 1; i < choice.sets.size(); ++i) {
    const std::string& set = choice.sets[i];
    name += "_" + set.substr(set.substr(0, set.find('=')).rfind('.') + 1);
  }
  for (char& c : name)
    if (c == ':' || c == '/' || c == '"') c = '-';
  return name;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<SchemeOfStudy> parse_schemes(std::string_view list,
                                         bool (*set_by_study)(std::string_view)) {
  std::vector<SchemeOfStudy> choices;
  for (const std::string& part : split_list(list))
    choices.push_back(parse_scheme(part, set_by_study));
  for (SchemeOfStudy& choice : choices) {
    choice.folder = folder_of(choice);
    if (std::ranges::count(choices, choice.folder, &SchemeOfStudy::folder) > 1)
      throw ConfigError(fmt::format("--sync names {} twice", choice.folder));
  }
  return choices;
}

}  // namespace tutti::cli
