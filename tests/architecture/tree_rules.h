#pragma once
// The rules of the source tree (includes.txt) and the check of a tree against them. Reads text
// only; needs no compiler.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tutti::architecture {

/// One broken rule; line 0 speaks of the whole file or folder.
struct Violation {
  std::filesystem::path file;
  int line = 0;
  std::string rule;
  std::string to_string() const;  ///< "tutti/ops/add.cpp:3: ops may not include plan (...)"
};

/// What a header, a macro or a folder name is allowed to match, and where.
struct Fence {
  std::string pattern;
  std::vector<std::string> places;
};

struct Rules {
  std::map<std::string, std::vector<std::string>> folders;  ///< folder -> what it may include
  std::map<std::string, std::vector<std::string>>
      tests;  ///< folder -> what its tests may include besides
  std::vector<Fence> headers;
  std::vector<Fence> macros;
  std::vector<Fence> words;  ///< whole words of code outside of tests, comments and includes
  std::vector<std::string> system_headers;
  std::vector<std::string> testing;  ///< headers that only *_test.cpp files may reach
  std::vector<std::string> generated;
  std::vector<std::string> banned_words;
};

/// Reads a rule file. Throws IoError if it cannot be read and ConfigError at file:line if a line is
/// no rule.
Rules read_rules(const std::filesystem::path& file);

/// The longest folder of the rules that holds `file` (relative to tutti/), its room; empty if none
/// does.
std::string folder_of(const std::string& file, const Rules& rules);

constexpr int kFileLines = 400;
constexpr int kFolderFiles = 60;

/// Checks every folder and source file under root/tutti. The result is sorted by file and line;
/// empty means that all is well.
std::vector<Violation> check_tree(const std::filesystem::path& root, const Rules& rules);

/// Checks that the folder table of `document` (Markdown rows "| folder/ | purpose | ...") names
/// exactly the folders of the rules that exist under root/tutti.
std::vector<Violation> check_table(const std::filesystem::path& root,
                                   const std::filesystem::path& document, const Rules& rules);

/// Checks that no room may include, by way of others, a room that may include it.
std::vector<Violation> check_cycles(const std::filesystem::path& rule_file, const Rules& rules);

/// Checks that no source, test or script below these folders of `root` has more lines than a reader
/// takes in: a file has one subject. Likewise the sources of a folder of tutti/, which has one
/// purpose.
std::vector<Violation> check_lengths(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders);

/// Checks that a function in an anonymous namespace bears no name that another source of its target
/// has there too, or that a header beside them declares: in a unity build one overloads or hides
/// the other. The targets are those that the CMakeLists.txt below these folders name.
std::vector<Violation> check_unity_names(const std::filesystem::path& root,
                                         const std::vector<std::string>& folders);

}  // namespace tutti::architecture
