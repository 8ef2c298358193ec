// Tests the check itself: a small correct tree passes, and each kind of violation is reported with
// its file and line.
#include "tests/architecture/tree_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tutti/base/error.h"

namespace tutti::architecture {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRules = R"(
folder base :
folder graph : base
folder backend : base graph/node.h
folder backend/mpi : base backend/.
tests graph : backend
fence mpi.h : backend/mpi
fence json.h : backend/*.cpp
fence check.h : .
fence tutti/graph/node.h : backend graph/*.cpp
fence either.h : backend
testing check.h
system vector
if TEST_DATA : .
if __AVX* : backend/mpi
generated tutti/graph/built.h
word O_CREAT : base
banned util new
)";

class TreeRules : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("tree_rules." + std::to_string(getpid()));
    write("rules.txt", kRules);
    for (const char* folder : {"base", "graph", "backend"})
      write(std::string("tutti/") + folder + "/README.md", "# purpose\n");
    write("tutti/base/error.h", "#pragma once\n#include <vector>\n");
    write("tutti/graph/node.h", "#pragma once\n#include \"tutti/base/error.h\"\n");
    write("tutti/graph/printer.h", "#pragma once\n");
    write("tutti/backend/backend.h", "#pragma once\n#include \"tutti/graph/node.h\"\n");
    write("tutti/backend/mpi/world.cpp",
          "#include <mpi.h>\n#include \"tutti/backend/backend.h\"\n#ifdef __AVX2__\n#endif\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  /// Returns all violations of the tree, one per line.
  std::string check() {
    std::string text;
    for (const auto& violation : check_tree(root_, read_rules(root_ / "rules.txt")))
      text += violation.to_string() + "\n";
    return text;
  }

  void expect(const std::string& file, const std::string& text, const std::string& violation) {
    write(file, text);
    EXPECT_EQ(check().substr(0, violation.size()), violation);
    EXPECT_EQ(check().find('\n'), check().size() - 1) << "one sin, one line:\n" << check();
  }

  fs::path root_;
};

TEST_F(TreeRules, GoodTreePasses) { EXPECT_EQ(check(), ""); }

TEST_F(TreeRules, IncludeUpwardsIsNamed) {
  expect("tutti/base/error.h", "#pragma once\n\n#include \"tutti/graph/node.h\"\n",
         "tutti/base/error.h:3: base may not include \"tutti/graph/node.h\"");
}

TEST_F(TreeRules, OneHeaderAllowedDoesNotAllowItsFolder) {
  expect("tutti/backend/backend.h", "#pragma once\n#include \"tutti/graph/printer.h\"\n",
         "tutti/backend/backend.h:2: backend may not include \"tutti/graph/printer.h\"");
}

TEST_F(TreeRules, SubfolderWithItsOwnLineDoesNotInherit) {
  expect("tutti/backend/mpi/late.cpp", "#include \"tutti/graph/node.h\"\n",
         "tutti/backend/mpi/late.cpp:1: backend/mpi may not include \"tutti/graph/node.h\"");
}

TEST_F(TreeRules, AFolderDoesNotIncludeWhatStandsAboveItInASubfolder) {
  write("tutti/backend/mpi/world.h", "#pragma once\n");
  expect("tutti/backend/other.cpp", "#include \"tutti/backend/mpi/world.h\"\n",
         "tutti/backend/other.cpp:1: backend may not include \"tutti/backend/mpi/world.h\"");
}

TEST_F(TreeRules, AFenceAroundAnOwnHeader) {
  write("tutti/graph/walk.cpp", "#include \"tutti/graph/node.h\"\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/walk.h", "#pragma once\n#include \"tutti/graph/node.h\"\n",
         "tutti/graph/walk.h:2: <tutti/graph/node.h> may be included only in");
}

TEST_F(TreeRules, TestsMayIncludeMore) {
  write("tutti/graph/node_test.cpp", "#include \"tutti/backend/backend.h\"\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/node.cpp", "#include \"tutti/backend/backend.h\"\n",
         "tutti/graph/node.cpp:1: graph may not include");
}

TEST_F(TreeRules, FencedHeaderOutsideItsFence) {
  expect("tutti/backend/other.cpp", "#include <mpi.h>\n",
         "tutti/backend/other.cpp:1: <mpi.h> may be included only in: backend/mpi");
}

TEST_F(TreeRules, AWordStandsWhereItMayInCodeAlone) {
  write("tutti/base/file.cpp", "int f = O_CREAT;\n");
  write("tutti/graph/node_test.cpp", "int f = O_CREAT;\n");
  write("tutti/graph/node.cpp", "int MY_O_CREAT;  // as O_CREAT does\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/node.cpp", "int f = A|O_CREAT|B;\n",
         "tutti/graph/node.cpp:1: `O_CREAT` stands only in: base");
}

TEST_F(TreeRules, FenceOfSourcesHoldsForHeaders) {
  write("tutti/backend/writer.cpp", "#include <json.h>\n");
  EXPECT_EQ(check(), "");
  expect("tutti/backend/writer.h", "#pragma once\n#include <json.h>\n",
         "tutti/backend/writer.h:2: <json.h> may be included only");
}

TEST_F(TreeRules, HeadersOfTestsAreForTests) {
  write("tutti/base/checks.h", "#pragma once\n#include <check.h>\n");
  write("tutti/base/more_checks.h", "#pragma once\n#include \"tutti/base/checks.h\"\n");
  write("tutti/base/error_test.cpp", "#include \"tutti/base/more_checks.h\"\n");
  EXPECT_EQ(check(), "");
  expect("tutti/base/error.cpp", "#include <vector>\n#include \"tutti/base/more_checks.h\"\n",
         "tutti/base/error.cpp:2: \"tutti/base/more_checks.h\" is for tests");
}

TEST_F(TreeRules, UnknownThirdPartyHeader) {
  expect("tutti/graph/node.cpp", "#include <boost/any.hpp>\n",
         "tutti/graph/node.cpp:1: <boost/any.hpp> is neither");
}

TEST_F(TreeRules, RelativeAndMissingHeaders) {
  expect("tutti/graph/node.cpp", "#include \"node.h\"\n",
         "tutti/graph/node.cpp:1: \"node.h\": own headers are named");
  expect("tutti/graph/node.cpp", "#include \"tutti/graph/gone.h\"\n",
         "tutti/graph/node.cpp:1: \"tutti/graph/gone.h\": there is no");
}

TEST_F(TreeRules, AHeaderThatEachBuildHasStandsBehindItsFence) {
  write("tutti/backend/kernel.cu", "#include \"either.h\"\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/node.cpp", "#include \"either.h\"\n",
         "tutti/graph/node.cpp:1: <either.h> may be included only in: backend");
}

TEST_F(TreeRules, GeneratedHeaderNeedNotExist) {
  write("tutti/graph/node.cpp", "#include \"tutti/graph/built.h\"\n");
  EXPECT_EQ(check(), "");
}

TEST_F(TreeRules, ConditionalCode) {
  write("tutti/graph/data_test.cpp", "#ifdef TEST_DATA\n#endif\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/node.cpp", "\n#if 0\n#endif\n",
         "tutti/graph/node.cpp:2: code that is switched off");
  expect("tutti/graph/node.cpp", "#if defined(__AVX2__)\n#endif\n",
         "tutti/graph/node.cpp:1: `__AVX2__` may not be tested");
}

TEST_F(TreeRules, HeaderWithoutGuard) {
  expect("tutti/graph/node.h", "int f();\n",
         "tutti/graph/node.h:1: a header begins with #pragma once");
}

TEST_F(TreeRules, BannedWordIsAWholeWordOfTheName) {
  write("tutti/graph/newton.h", "#pragma once\n");
  EXPECT_EQ(check(), "");
  expect("tutti/graph/graph_util.h", "#pragma once\n",
         "tutti/graph/graph_util.h:0: `util` is banned");
}

TEST_F(TreeRules, ReadmeMissingEmptyOrTooLong) {
  fs::remove(root_ / "tutti/graph/README.md");
  EXPECT_EQ(check(), "tutti/graph:0: the folder has no README.md\n");
  for (const char* nothing : {"", "line\n"})
    expect("tutti/graph/README.md", nothing,
           "tutti/graph/README.md:1: a folder's README begins with `# NAME: its purpose`");
  std::string text = "# purpose\n";
  for (int i = 0; i < 30; ++i) text += "line\n";
  expect("tutti/graph/README.md", text,
         "tutti/graph/README.md:31: a folder's README has at most 30 lines");
}

TEST_F(TreeRules, FolderWithoutRule) {
  expect("tutti/extra/README.md", "# purpose\n",
         "tutti/extra:0: the rules have no line `folder extra`");
}

TEST_F(TreeRules, TableOfTheDocument) {
  write("table.md",
        "| folder | purpose |\n|---|---|\n| base/ | errors |\n| graph/ | graph |\n| gone/ | "
        "nothing |\n");
  const auto found = check_table(root_, root_ / "table.md", read_rules(root_ / "rules.txt"));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].line, 5);
  EXPECT_EQ(found[1].rule, "the table has no row for backend/");
  EXPECT_EQ(found[2].rule, "the table has no row for backend/mpi/");
}

TEST_F(TreeRules, FilesThatAreTooLong) {
  const auto lines = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "line\n";
    return text;
  };
  write("tutti/graph/short.cpp", lines(kFileLines));
  write("tutti/graph/data.json", lines(kFileLines + 1));
  EXPECT_TRUE(check_lengths(root_, {"tutti"}).empty());
  for (const char* name : {"long.cpp", "long.h", "long.py", "long.sh", "CMakeLists.txt"}) {
    const std::string file = std::string("tutti/graph/") + name;
    write(file, lines(kFileLines + 1));
    const auto found = check_lengths(root_, {"tutti"});
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].to_string(),
              file + ":401: a file has at most 400 lines: part it by its subjects");
    fs::remove(root_ / file);
  }
}

TEST_F(TreeRules, CommentsThatBeginInTheMiddle) {
  write("tutti/graph/node.h",
        "/// Checks all\n/// of them. Whose it is\n// what it says.\nint a;  ///< bytes of it\n"
        "int b;      // bytes\n            // of them\nconst char* c = \"//what\";\n");
  EXPECT_TRUE(check_comments(root_, {"tutti"}).empty());
  write("tutti/graph/node.h",
        "/// What it is.\nint a;  ///< of all\n  // Of these, one.\nint b;  // who asked\n");
  const auto found = check_comments(root_, {"tutti"});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].to_string(),
            "tutti/graph/node.h:1: a comment is a sentence or names its thing: it does not begin "
            "with `What`");
}

TEST_F(TreeRules, FoldersWithTooManyFiles) {
  for (int i = 0; i < kFolderFiles - 2; ++i)
    write(fmt::format("tutti/graph/op{}.h", i), "#pragma once\n");
  EXPECT_TRUE(check_lengths(root_, {"tutti"}).empty());
  write("tutti/graph/one_more.cpp", "");
  const auto found = check_lengths(root_, {"tutti"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].to_string().starts_with(
      "tutti/graph:0: a folder has at most 60 sources, and this one 61"));
}

TEST_F(TreeRules, AHiddenFunctionIsNamedOnceInATarget) {
  const std::string hidden =
      "namespace {\n\nint first() { return 1; }\n[[nodiscard]] int first(int x) { return x; }\n\n} "
      " // namespace\n";
  write("tutti/graph/CMakeLists.txt",
        "# add_library(all node.cpp printer.cpp)\n"
        "tutti_folder(graph COLD\n  SOURCES node.cpp sub/value.cpp by_${choice}.cpp\n"
        "  TESTS node_test.cpp\n  USES base)\nadd_executable(printer printer.cpp)\n");
  for (const char* file : {"node.cpp", "node_test.cpp", "printer.cpp"})
    write(std::string("tutti/graph/") + file, hidden);
  write("tutti/graph/sub/value.cpp",
        "namespace {\nint one() { return 1; }\n}\nint first() {\n  return first(2);\n}\n");
  EXPECT_TRUE(check_unity_names(root_, {"tutti"}).empty());
  for (const char* file : {"sub/value.cpp", "by_size.cpp"}) {
    write(std::string("tutti/graph/") + file,
          "namespace {\n\ntemplate <class T>\nconst T& first(const T& x) {\n  return x;\n}\n\n"
          "}  // namespace\n");
    const auto found = check_unity_names(root_, {"tutti"});
    ASSERT_EQ(found.size(), 1u) << file;
    EXPECT_EQ(found[0].to_string().substr(0, found[0].to_string().find(": what")),
              std::string("tutti/graph/") + file +
                  ":4: `first` is also a function of tutti/graph/node.cpp");
    fs::remove(root_ / "tutti/graph" / file);
  }
}

TEST_F(TreeRules, AHiddenFunctionIsNamedOnceAmongSourcesThatAreFound) {
  const std::string hidden = "namespace {\n\nint first() { return 1; }\n\n}  // namespace\n";
  write("tutti/graph/CMakeLists.txt", "tutti_folder(graph FOUND USES base)\n");
  write("tutti/graph/other/CMakeLists.txt", "tutti_folder(graph_other FOUND)\n");
  for (const char* file : {"node.cpp", "node_test.cpp", "other/value.cpp"})
    write(std::string("tutti/graph/") + file, hidden);
  EXPECT_TRUE(check_unity_names(root_, {"tutti"}).empty());
  write("tutti/graph/sub/value.cpp", hidden);
  EXPECT_EQ(check_unity_names(root_, {"tutti"}).size(), 1u);
}

TEST_F(TreeRules, AHiddenFunctionIsNamedAsNoneOfAHeader) {
  write("tutti/graph/CMakeLists.txt", "add_library(graph sub/node.cpp)\n");
  write("tutti/graph/printer.h",
        "#pragma once\nnamespace tutti {\nstruct X {\n  int second();\n};\nvoid first(X x);\n}\n");
  write("tutti/graph/sub/node.cpp",
        "namespace tutti::other {\nnamespace {\n\nvoid first() {}\nvoid second() {}\n\n"
        "}  // namespace\n}  // namespace tutti::other\n");
  EXPECT_TRUE(check_unity_names(root_, {"tutti"}).empty());
  write("tutti/graph/sub/node.cpp",
        "namespace tutti {\nnamespace {\n\nvoid first() {}\nvoid second() {}\n\n"
        "}  // namespace\n}  // namespace tutti\n");
  const auto found = check_unity_names(root_, {"tutti"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].to_string().starts_with(
      "tutti/graph/sub/node.cpp:4: `tutti::first` is also a function of tutti/graph/printer.h"));
}

TEST_F(TreeRules, ARoomHasANamespace) {
  fs::remove_all(root_ / "tutti");
  const auto found = [&] {
    std::string text;
    for (const auto& one : check_namespaces(root_, read_rules(root_ / "rules.txt")))
      text += one.to_string().substr(0, one.to_string().find(';')) + "\n";
    return text;
  };
  write("tutti/graph/node.h", "namespace tutti {\nint f();\n}\n");
  EXPECT_EQ(found(), "") << "without a rule";
  write("rules.txt", "folder graph :\nnamespace - : graph/c.h\nnamespace tutti : base\n");
  const std::string expected = ": the code of this file stands in namespace tutti::graph\n";
  EXPECT_EQ(found(), "tutti/graph/node.h:1" + expected);
  write("tutti/graph/node.h",
        "namespace tutti::graph {\nint f();\n}\nnamespace tutti::plan {\n"
        "class Plan;\n}\n");
  write("tutti/graph/op/add.cpp", "namespace tutti::graph::op {\nint f() { return 1; }\n}\n");
  write("tutti/graph/c.h", "int f();\n");
  write("tutti/base/log.h", "namespace tutti::log {\nint f();\n}\n");
  EXPECT_EQ(found(), "");
  write("tutti/graph/node.h",
        "namespace tutti::graph {\nint f();\n}\nnamespace tutti::plan {\n"
        "class Plan {};\n}\n");
  EXPECT_EQ(found(), "tutti/graph/node.h:4" + expected);
  write("tutti/graph/node.h", "namespace tutti::graphs {\nint f();\n}\n");
  EXPECT_EQ(found(), "tutti/graph/node.h:1" + expected);
  fs::remove(root_ / "tutti/graph/node.h");
  write("tutti/base/log.h", "namespace tutti::graph {\nint f();\n}\n");
  EXPECT_NE(found(), "");
  write("tutti/base/log.h", "namespace tutti {\nint f();\n}\n");
  write("tutti/graph/c.h", "namespace tutti::graph {\nint f();\n}\n");
  EXPECT_EQ(found(), "tutti/graph/c.h:1: the code of this file stands in no namespace\n");
}

TEST_F(TreeRules, FoldersInACircle) {
  EXPECT_TRUE(check_cycles("rules.txt", read_rules(root_ / "rules.txt")).empty());
  write("rules.txt", "folder graph : graph/op\nfolder graph/op : graph/.\n");
  EXPECT_EQ(check_cycles("rules.txt", read_rules(root_ / "rules.txt")).size(), 1u);
  write("rules.txt", "folder base : device/cpu\nfolder device : graph\nfolder graph : base\n");
  const auto found = check_cycles("rules.txt", read_rules(root_ / "rules.txt"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rule,
            "folders include each other in a circle: base -> device -> graph -> base");
}

TEST_F(TreeRules, LineThatIsNoRule) {
  write("rules.txt", "folder base\n");
  EXPECT_THROW(read_rules(root_ / "rules.txt"), ConfigError);
  EXPECT_THROW(read_rules(root_ / "none.txt"), IoError);
}

}  // namespace
}  // namespace tutti::architecture
