#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tests/architecture/tree_rules.h"
#include "tutti/base/error.h"

namespace tutti::architecture {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

Rules read_rules(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw IoError(fmt::format("{}: cannot be read", file.string()));
  Rules rules;
  const std::map<std::string, std::vector<std::string>*> lists{{"system", &rules.system_headers},
                                                               {"testing", &rules.testing},
                                                               {"generated", &rules.generated},
                                                               {"banned", &rules.banned_words}};
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    const auto words = words_of(text.substr(0, text.find('#')));
    if (words.empty()) continue;
    const std::string& kind = words[0];
    if (const auto list = lists.find(kind); list != lists.end()) {
      list->second->insert(list->second->end(), words.begin() + 1, words.end());
      continue;
    }
    if (words.size() < 3 || words[2] != ":")
      throw ConfigError(
          fmt::format("{}:{}: expected `{} NAME : PLACES`", file.string(), number, kind));
    const std::vector<std::string> places(words.begin() + 3, words.end());
    if (kind == "folder") {
      rules.folders[words[1]] = places;
    } else if (kind == "tests") {
      rules.tests[words[1]] = places;
    } else if (kind == "fence") {
      rules.headers.push_back({words[1], places});
    } else if (kind == "if") {
      rules.macros.push_back({words[1], places});
    } else if (kind == "namespace") {
      rules.namespaces.push_back({words[1], places});
    } else if (kind == "word") {
      rules.words.push_back({words[1], places});
    } else {
      throw ConfigError(fmt::format("{}:{}: unknown rule `{}`", file.string(), number, kind));
    }
  }
  return rules;
}

}  // namespace tutti::architecture
