#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "tests/architecture/tree_rules.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

/// Returns the namespace of the code of `file` (relative to tutti/); empty: none.
std::string space_of(const std::string& file, const Rules& rules) {
  for (const auto& [name, places] : rules.namespaces)
    for (const std::string& place : places)
      if (file == place || file.starts_with(place + "/")) return name == "-" ? "" : name;
  return "tutti::" + file.substr(0, file.find('/'));
}

bool is_within(const std::string& space, const std::string& outer) {
  return space == outer || space.starts_with(outer + "::");
}

bool is_declaration(const std::string& line) {
  return line.empty() || line.starts_with("//") ||
         (line.ends_with(";") && line.find('{') == line.npos &&
          (line.starts_with("class ") || line.starts_with("struct ") ||
           line.starts_with("enum class ")));
}

class NamespaceCheck {
 public:
  NamespaceCheck(const fs::path& root, const Rules& rules) : root_(root), rules_(rules) {}

  std::vector<Violation> run() {
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "tutti"))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp")
        check(entry.path());
    std::ranges::sort(found_, [](const auto& a, const auto& b) {
      return std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    return std::move(found_);
  }

 private:
  /// Whether a namespace at file level is one for the file's code.
  bool is_own(const std::string& space, const std::string& own) const {
    if (own != "tutti") return !own.empty() && is_within(space, own);
    return is_within(space, own) && std::ranges::none_of(rules_.folders, [&](const auto& folder) {
             return is_within(space, "tutti::" + folder.first);
           });
  }

  void check(const fs::path& path) {
    const std::string own = space_of(fs::relative(path, root_ / "tutti").generic_string(), rules_);
    std::ifstream stream(path);
    bool met = own.empty();
    int number = 0, foreign = 0;  // line of a namespace of others that is open
    for (std::string text; std::getline(stream, text);) {
      ++number;
      if (text.starts_with("}")) foreign = 0;
      if (foreign > 0 && !is_declaration(text)) {
        report(path, foreign, own);
        foreign = 0;
        met = true;  // one line is enough
      }
      if (!text.starts_with("namespace tutti") || !text.ends_with(" {")) continue;
      const bool is_ours = is_own(text.substr(10, text.size() - 12), own);
      met = met || is_ours;
      foreign = is_ours ? 0 : number;
    }
    if (!met) report(path, 0, own);
  }

  void report(const fs::path& path, int line, const std::string& own) {
    found_.push_back({fs::relative(path, root_), line,
                      own.empty() ? "the code of this file stands in no namespace"
                                  : fmt::format("the code of this file stands in namespace {}; "
                                                "that of others is at most declared",
                                                own)});
  }

  fs::path root_;
  const Rules& rules_;
  std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check_namespaces(const fs::path& root, const Rules& rules) {
  if (rules.namespaces.empty()) return {};
  return NamespaceCheck(root, rules).run();
}

}  // namespace tutti::architecture
