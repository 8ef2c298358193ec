#pragma once
// The rules of the source tree (includes.txt) and the check of a tree against them. Reads only
// text; needs no compiler.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tutti::architecture {

/// One broken rule; line 0 means the whole file or folder.
struct Violation {
  std::filesystem::path file;
  int line = 0;
  std::string rule;
  std::string to_string() const;  ///< "tutti/ops/add.cpp:3: ops may not include plan (...)"
};

/// A pattern for headers, macros or words, and the places where these are allowed.
struct Fence {
  std::string pattern;
  std::vector<std::string> places;
};

struct Rules {
  std::map<std::string, std::vector<std::string>> folders;  ///< folder -> folders and headers that
                                                            ///< it may include
  std::map<std::string, std::vector<std::string>>
      tests;  ///< folder -> what its tests may include in addition
  std::vector<Fence> headers;
  std::vector<Fence> macros;
  std::vector<Fence> namespaces;  ///< a namespace, and whose code stands in it; `-`: in none
  std::vector<Fence> words;       ///< whole words of code outside of tests, comments and includes
  std::vector<std::string> system_headers;
  std::vector<std::string> testing;  ///< headers that only *_test.cpp files may reach
  std::vector<std::string> generated;
  std::vector<std::string> banned_words;
};

/// Reads a rule file. Throws IoError if it cannot be read and ConfigError at file:line if a line is
/// not a rule.
Rules read_rules(const std::filesystem::path& file);

/// Returns the room of `file` (relative to tutti/): the longest folder of the rules that holds it;
/// empty if none does.
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

/// Checks that no room may include, through others, a room that may include it.
std::vector<Violation> check_cycles(const std::filesystem::path& rule_file, const Rules& rules);

/// Checks that no source, test or script below these folders of `root` has more than kFileLines
/// lines, because a file has one subject, and that no folder of tutti/ has more than kFolderFiles
/// sources, because it has one purpose.
std::vector<Violation> check_lengths(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders);

/// Checks that no comment of C and C++ sources below these folders begins with Of, What or Who:
/// what follows such a word describes a thing that the reader has to guess.
std::vector<Violation> check_comments(const std::filesystem::path& root,
                                      const std::vector<std::string>& folders);

/// Checks that the code of tutti/ROOM stands in namespace tutti::ROOM, or where the rules say. The
/// namespace of another room is opened only to declare its types. Without such rules nothing is
/// checked.
std::vector<Violation> check_namespaces(const std::filesystem::path& root, const Rules& rules);

/// Checks that a function in an anonymous namespace does not have the name of a function in another
/// source of its target, or in a header beside them: in a unity build one overloads or hides the
/// other. The targets are those in the CMakeLists.txt files below these folders.
std::vector<Violation> check_unity_names(const std::filesystem::path& root,
                                         const std::vector<std::string>& folders);

}  // namespace tutti::architecture
