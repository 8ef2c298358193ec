#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/architecture/tree_rules.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

using Sources = std::vector<fs::path>;

std::string code_of(const fs::path& cmake_file) {
  std::ifstream stream(cmake_file);
  std::string code;
  for (std::string text; std::getline(stream, text);) code += text.substr(0, text.find('#')) + "\n";
  return code;
}

/// Returns the sources that a word of a CMake file names; for a variable in it, all that fit.
Sources named_sources(const fs::path& folder, const std::string& word) {
  static const std::regex variable(R"(\$\{[^}]*\})");
  if (!word.ends_with(".cpp")) return {};
  const fs::path pattern = folder / std::regex_replace(word, variable, "*");
  Sources found;
  if (fs::is_directory(pattern.parent_path()))
    for (const auto& entry : fs::directory_iterator(pattern.parent_path()))
      if (fnmatch(pattern.c_str(), entry.path().c_str(), 0) == 0) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// Returns the sources below a folder, tests or others, but for those of targets in sub-folders.
Sources sources_below(const fs::path& folder, bool tests) {
  Sources found;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && fs::exists(entry->path() / "CMakeLists.txt"))
      entry.disable_recursion_pending();
    const std::string name = entry->path().filename();
    if (name.ends_with(".cpp") && name.ends_with("_test.cpp") == tests)
      found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

/// Returns the sources of each target of a CMake file. A tutti_folder() has two: its TESTS are a
/// program.
std::vector<Sources> targets_of(const fs::path& cmake_file) {
  const std::string code = code_of(cmake_file);
  std::vector<Sources> targets;
  for (const std::string command : {"tutti_folder(", "add_library(", "add_executable("})
    for (size_t at = code.find(command); at != code.npos; at = code.find(command, at + 1)) {
      const size_t begin = at + command.size();
      std::istringstream words(code.substr(begin, code.find(')', begin) - begin));
      targets.emplace_back();
      for (std::string word; words >> word;) {
        if (word == "TESTS") targets.emplace_back();
        if (word == "FOUND")
          for (const bool tests : {false, true})
            targets.push_back(sources_below(cmake_file.parent_path(), tests));
        for (fs::path& source : named_sources(cmake_file.parent_path(), word))
          targets.back().push_back(std::move(source));
      }
    }
  return targets;
}

/// Spares most lines the regular expression, which takes long.
bool may_be_function(const std::string& line) {
  return line.find('(') != line.npos &&
         (std::isalpha(static_cast<unsigned char>(line[0])) || line[0] == '_' || line[0] == '[');
}

/// Returns the functions that a header declares, or that a source has in anonymous namespaces, if
/// they stand at the beginning of a line as clang-format puts them: the name with its namespace,
/// "tutti::data::files_of", and the line.
std::map<std::string, int> functions_of(const fs::path& file) {
  static const std::regex space(R"(namespace ([\w:]+) \{)");
  static const std::regex function(
      R"re((?:(?:\[\[.*\]\]|__attribute__\(\(.*\)\)) )?[A-Za-z_][^=(]*[ &*]([A-Za-z_]\w*)\(.*)re");
  std::map<std::string, int> found;
  std::ifstream stream(file);
  const bool header = file.extension() == ".h";
  std::string around;  // the namespace
  int opened = 0, number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    std::smatch match;
    if (text.starts_with("namespace ") && std::regex_match(text, match, space))
      around = match[1].str() + "::";
    else if (text == "namespace {")
      opened = number;
    else if (text == "}  // namespace" || (text == "}" && number == opened + 2))
      opened = 0;  // without a comment if it holds one line
    else if ((header || opened > 0) && may_be_function(text) &&
             std::regex_match(text, match, function))
      found.try_emplace(around + match[1].str(), number);
  }
  return found;
}

/// Maps the names of functions that headers below a folder declare to such a header.
std::map<std::string, fs::path> declared_below(const fs::path& folder) {
  std::map<std::string, fs::path> owners;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".h")
      for (const auto& [name, line] : functions_of(entry.path()))
        owners.try_emplace(name, entry.path());
  return owners;
}

}  // namespace

std::vector<Violation> check_unity_names(const fs::path& root,
                                         const std::vector<std::string>& folders) {
  std::map<std::pair<fs::path, int>, std::string> broken;  // a source may belong to many targets
  for (const std::string& folder : folders)
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.path().filename() != "CMakeLists.txt") continue;
      const auto declared = declared_below(entry.path().parent_path());
      for (const Sources& sources : targets_of(entry.path())) {
        auto owners = declared;
        for (const fs::path& source : sources)
          for (const auto& [name, line] : functions_of(source))
            if (const auto [owner, first] = owners.try_emplace(name, source); !first)
              broken[{fs::relative(source, root), line}] = fmt::format(
                  "`{}` is also a function of {}: what is compiled as one may call the wrong one; "
                  "keep one "
                  "in a header, or say in its name what differs",
                  name, fs::relative(owner->second, root).generic_string());
      }
    }
  std::vector<Violation> found;
  for (auto& [place, rule] : broken) found.push_back({place.first, place.second, std::move(rule)});
  return found;
}

}  // namespace tutti::architecture
