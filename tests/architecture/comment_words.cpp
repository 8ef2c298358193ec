#include <algorithm>
#include <array>
#include <fstream>

#include "tests/architecture/tree_rules.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

bool has_comments(const fs::path& file) {
  constexpr std::array kKinds = {".h", ".c", ".cpp", ".hpp", ".cu", ".cuh"};
  return std::ranges::find(kKinds, file.extension()) != kKinds.end();
}

/// Returns the first word of the line's comment, or nothing if the comment goes on from the line
/// before: a comment on a line of its own begins with a capital, one after code with any letter.
std::string first_word(const std::string& line) {
  const size_t code = line.find_first_not_of(' ');
  size_t at = code == line.npos ? line.npos : line.find("//", code);
  if (at == line.npos || (at != code && !line.substr(0, at).ends_with("  "))) return "";
  at = std::min(line.find_first_not_of("/<", at), line.size());
  at = std::min(line.find_first_not_of(' ', at), line.size());
  std::string word = line.substr(at, line.find_first_of(" ,:.", at) - at);
  const bool goes_on = line.find("//") == code && !word.empty() && std::islower(word[0]) != 0;
  if (goes_on || word.empty()) return "";
  word[0] = static_cast<char>(std::toupper(word[0]));
  return word;
}

}  // namespace

std::vector<Violation> check_comments(const fs::path& root,
                                      const std::vector<std::string>& folders) {
  constexpr std::array kHalf = {"Of", "What", "Who"};
  std::vector<Violation> found;
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !has_comments(entry.path())) continue;
      std::ifstream stream(entry.path());
      int number = 0;
      for (std::string line; std::getline(stream, line);) {
        ++number;
        if (const std::string word = first_word(line);
            std::ranges::find(kHalf, word) != kHalf.end())
          found.push_back({fs::relative(entry.path(), root), number,
                           "a comment is a sentence or names its thing: it does not begin with `" +
                               word + "`"});
      }
    }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  return found;
}

}  // namespace tutti::architecture
