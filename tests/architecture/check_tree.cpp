// check_tree ROOT: prints every broken rule of the source tree as file:line: rule. Exit status 1 if
// there is one.
#include <cstdio>
#include <filesystem>

#include "tests/architecture/tree_rules.h"
#include "tutti/base/error.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: check_tree ROOT\n", stderr);
    return 2;
  }
  try {
    using namespace tutti::architecture;
    const std::filesystem::path root = argv[1];
    const Rules rules = read_rules(root / "tests/architecture/includes.txt");
    const std::vector<std::string> sources = {"tutti", "tests", "integrations", "examples",
                                              "benchmarks"};
    auto found = check_tree(root, rules);
    for (const auto& more : {check_table(root, root / "docs/architecture.md", rules),
                             check_cycles(root / "tests/architecture/includes.txt", rules),
                             check_lengths(root, sources), check_comments(root, sources),
                             check_unity_names(root, sources), check_namespaces(root, rules)})
      found.insert(found.end(), more.begin(), more.end());
    for (const auto& violation : found) std::printf("%s\n", violation.to_string().c_str());
    return found.empty() ? 0 : 1;
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
