#include "tests/architecture/tree_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <set>

#include "tutti/base/error.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

constexpr int kReadmeLines = 30;

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

/// Whether `file` (relative to tutti/, "backend/cpu/conv.cpp") lies in `place`: ".", a folder, a
/// file, or "folder/*.cpp".
bool lies_in(const std::string& file, const std::string& place) {
  return place == "." || file == place || file.starts_with(place + "/") || matches(place, file);
}

bool lies_in_any(const std::string& file, const std::vector<std::string>& places) {
  return std::ranges::any_of(places, [&](const auto& place) { return lies_in(file, place); });
}

/// The second group of the match is the header, the first `<` or `"`.
const std::regex& include_line() {
  static const std::regex include(R"re(\s*#\s*include\s*(<|")([^">]+)[">].*)re");
  return include;
}

/// Whether the line is a directive. Few are, and regular expressions take long.
bool is_directive(const std::string& line) {
  const size_t first = line.find_first_not_of(" \t");
  return first != line.npos && line[first] == '#';
}

class TreeCheck {
 public:
  TreeCheck(const fs::path& root, const Rules& rules) : root_(root), rules_(rules) {}

  std::vector<Violation> run() {
    for (const auto& entry : fs::directory_iterator(root_ / "tutti"))
      if (entry.is_directory()) check_folder(entry.path());
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "tutti")) {
      check_name(entry.path());
      const auto extension = entry.path().extension();
      if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh")
        check_source(entry.path());
    }
    std::ranges::sort(found_, [](const auto& a, const auto& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    return std::move(found_);
  }

 private:
  void report(const fs::path& file, int line, std::string rule) {
    found_.push_back({fs::relative(file, root_), line, std::move(rule)});
  }

  void check_folder(const fs::path& folder) {
    const std::string name = folder.filename().string();
    if (!rules_.folders.contains(name))
      report(folder, 0, fmt::format("the rules have no line `folder {}`", name));
    std::ifstream readme(folder / "README.md");
    if (!readme) return report(folder, 0, "the folder has no README.md");
    std::string text;
    if (!std::getline(readme, text) || !text.starts_with("# "))
      return report(folder / "README.md", 1, "a folder's README begins with `# NAME: its purpose`");
    int lines = 1;
    while (std::getline(readme, text)) ++lines;
    if (lines > kReadmeLines)
      report(folder / "README.md", lines,
             fmt::format("a folder's README has at most {} lines", kReadmeLines));
  }

  void check_name(const fs::path& path) {
    static const std::regex separators("[^A-Za-z0-9]+");
    const std::string name = path.filename().string();
    for (std::sregex_token_iterator word(name.begin(), name.end(), separators, -1), end;
         word != end; ++word)
      if (std::ranges::find(rules_.banned_words, word->str()) != rules_.banned_words.end())
        report(path, 0, fmt::format("`{}` is banned in names: say what it is for", word->str()));
  }

  void check_source(const fs::path& path) {
    static const std::regex condition(R"re(\s*#\s*(if|ifdef|ifndef|elif)\b\s*(.*))re");
    const std::string file = fs::relative(path, root_ / "tutti").generic_string();
    std::ifstream stream(path);
    bool guarded = false;
    int number = 0;
    for (std::string text; std::getline(stream, text);) {
      ++number;
      std::smatch match;
      const bool directive = is_directive(text);
      if (text.starts_with("#pragma once")) guarded = true;
      if (directive && std::regex_match(text, match, include_line())) {
        const std::string header = match[2];
        const bool own = match[1] == "\"";
        std::string rule = own ? broken_include(file, header) : "";
        if (rule.empty()) rule = broken_fence(file, header, !own);
        if (!rule.empty()) report(path, number, rule);
        if (path.extension() != ".h" && !file.ends_with("_test.cpp") && reaches_testing(header))
          report(path, number,
                 fmt::format("\"{}\" is for tests; a program is built "
                             "where there are none",
                             header));
      } else if (directive && std::regex_match(text, match, condition)) {
        check_condition(path, file, number, match[2]);
      } else if (!file.ends_with("_test.cpp")) {
        check_words(path, file, number, text.substr(0, text.find("//")));
      }
    }
    if (!guarded && path.extension() != ".cpp" && path.extension() != ".cu")
      report(path, 1, "a header begins with #pragma once");
  }

  void check_words(const fs::path& path, const std::string& file, int number,
                   const std::string& code) {
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    };
    for (const Fence& fence : rules_.words) {
      const std::string& word = fence.pattern;
      size_t at = code.find(word);
      if (at == code.npos || lies_in_any(file, fence.places)) continue;
      for (; at != code.npos; at = code.find(word, at + 1)) {
        const size_t behind = at + word.size();
        if ((at == 0 || !is_word(code[at - 1])) &&
            (behind == code.size() || !is_word(code[behind])))
          report(path, number,
                 fmt::format("`{}` stands only in: {} (includes.txt says why)", word,
                             fmt::join(fence.places, ", ")));
      }
    }
  }

  /// Whether the header is one for tests, or includes one through others.
  bool reaches_testing(const std::string& header) {
    const auto known = testing_.find(header);
    if (known != testing_.end()) return known->second;
    bool& reaches = testing_[header];  // false meanwhile, because headers may form a cycle
    reaches = std::ranges::any_of(
        rules_.testing, [&](const std::string& pattern) { return matches(pattern, header); });
    std::ifstream stream(root_ / header);
    for (std::string text; !reaches && std::getline(stream, text);)
      if (std::smatch match; is_directive(text) && std::regex_match(text, match, include_line()))
        reaches = reaches_testing(match[2]);
    return reaches;
  }

  /// Returns why `file` may not include "header"; empty if it may.
  std::string broken_include(const std::string& file, const std::string& header) const {
    if (!header.starts_with("tutti/")) {
      // Each build has its own header of that name, and its fence says who may include it.
      if (std::ranges::find(rules_.headers, header, &Fence::pattern) != rules_.headers.end())
        return {};
      return fmt::format("\"{}\": own headers are named \"tutti/folder/file.h\"", header);
    }
    const bool generated = std::ranges::find(rules_.generated, header) != rules_.generated.end();
    if (!generated && !fs::exists(root_ / header))
      return fmt::format("\"{}\": there is no such file", header);
    const std::string target = header.substr(6);
    const std::string folder = folder_of(file, rules_);
    const std::string owner = folder_of(target, rules_);
    if (folder.empty() || owner == folder) return {};
    auto allowed = rules_.folders.at(folder);
    if (file.ends_with("_test.cpp") && rules_.tests.contains(folder))
      allowed.insert(allowed.end(), rules_.tests.at(folder).begin(), rules_.tests.at(folder).end());
    if (lies_in_any(target, allowed) || std::ranges::find(allowed, owner + "/.") != allowed.end())
      return {};
    return fmt::format("{} may not include \"{}\"; it may include: {}", folder, header,
                       allowed.empty() ? "the standard library and fmt"
                                       : fmt::format("{}", fmt::join(allowed, ", ")));
  }

  /// Returns which fence an include breaks; own headers need no fence.
  std::string broken_fence(const std::string& file, const std::string& header, bool foreign) const {
    for (const auto& fence : rules_.headers) {
      if (!matches(fence.pattern, header)) continue;
      if (lies_in_any(file, fence.places)) return {};
      return fmt::format("<{}> may be included only in: {}", header, fmt::join(fence.places, ", "));
    }
    if (!foreign || std::ranges::any_of(rules_.system_headers, [&](const auto& pattern) {
          return matches(pattern, header);
        }))
      return {};
    return fmt::format("<{}> is neither a system header nor fenced: give it a `fence` line",
                       header);
  }

  /// Checks that every macro in `#if text` is allowed in the file; a test of a bare number never
  /// is.
  void check_condition(const fs::path& path, const std::string& file, int number,
                       const std::string& text) {
    static const std::regex name("[A-Za-z_][A-Za-z0-9_]*");
    const std::string code = text.substr(0, text.find("//"));
    if (!std::regex_search(code, name))
      report(path, number, "code that is switched off is deleted, not kept");
    for (std::sregex_iterator word(code.begin(), code.end(), name), end; word != end; ++word) {
      const std::string macro = word->str();
      if (macro == "defined") continue;
      const bool allowed = std::ranges::any_of(rules_.macros, [&](const auto& fence) {
        return matches(fence.pattern, macro) && lies_in_any(file, fence.places);
      });
      if (!allowed)
        report(path, number,
               fmt::format("`{}` may not be tested by #if here: a variant is a file of its own",
                           macro));
    }
  }

  fs::path root_;
  const Rules& rules_;
  std::vector<Violation> found_;
  std::map<std::string, bool> testing_;  ///< by header: whether it reaches one for tests
};

}  // namespace

std::string folder_of(const std::string& file, const Rules& rules) {
  std::string found;
  for (const auto& [folder, uses] : rules.folders)
    if (file.starts_with(folder + "/") && folder.size() > found.size()) found = folder;
  return found;
}

std::string Violation::to_string() const {
  return fmt::format("{}:{}: {}", file.generic_string(), line, rule);
}

std::vector<Violation> check_tree(const fs::path& root, const Rules& rules) {
  return TreeCheck(root, rules).run();
}

std::vector<Violation> check_table(const fs::path& root, const fs::path& document,
                                   const Rules& rules) {
  std::ifstream stream(document);
  if (!stream) throw IoError(fmt::format("{}: cannot be read", document.string()));
  static const std::regex row(R"(\| ([a-z0-9_/]+)/ \|.*)");
  std::vector<Violation> found;
  std::set<std::string> named;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    std::smatch match;
    if (!std::regex_match(text, match, row)) continue;
    named.insert(match[1]);
    if (!rules.folders.contains(match[1]))
      found.push_back(
          {document, number, fmt::format("the table names {}/, the rules do not", match[1].str())});
  }
  for (const auto& [folder, uses] : rules.folders)
    if (fs::exists(root / "tutti" / folder) && !named.contains(folder))
      found.push_back({document, 0, fmt::format("the table has no row for {}/", folder)});
  return found;
}

}  // namespace tutti::architecture
