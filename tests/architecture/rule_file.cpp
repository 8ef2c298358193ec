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

void append(std::vector<std::string>& to, const std::vector<std::string>& words, size_t first) {
  to.insert(to.end(), words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
}

}  // namespace

Rules read_rules(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw IoError(fmt::format("{}: cannot be read", file.string()));
  Rules rules;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    const auto words = words_of(text.substr(0, text.find('#')));
    if (words.empty()) continue;
    const std::string& kind = words[0];
    if (kind == "system" || kind == "banned") {
      append(kind == "system" ? rules.system_headers : rules.banned_words, words, 1);
      continue;
    }
    if (words.size() < 3 || words[2] != ":")
      throw ConfigError(fmt::format("{}:{}: expected `{} NAME : PLACES`", file.string(), number, kind));
    const std::vector<std::string> places(words.begin() + 3, words.end());
    if (kind == "folder") {
      rules.folders[words[1]] = places;
    } else if (kind == "tests") {
      rules.tests[words[1]] = places;
    } else if (kind == "fence") {
      rules.headers.push_back({words[1], places});
    } else if (kind == "if") {
      rules.macros.push_back({words[1], places});
    } else {
      throw ConfigError(fmt::format("{}:{}: unknown rule `{}`", file.string(), number, kind));
    }
  }
  return rules;
}

}  // namespace tutti::architecture
