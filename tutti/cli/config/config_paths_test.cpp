#include "tutti/cli/config/config_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config/config_text.h"
#include "tutti/cli/data/data_inspect.h"
#include "tutti/data/format/sets/lattices.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// Two folders: "conf" with files, and "work", the working folder while the test runs.
class ConfigPaths : public testing::Test {
 protected:
  ConfigPaths() : before_(fs::current_path()) {
    for (const char* name : {"conf", "work"}) fs::create_directories(folder_ / name);
    fs::current_path(folder_ / "work");
  }
  ~ConfigPaths() override { fs::current_path(before_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / "conf" / name) << text;
    return (folder_ / "conf" / name).string();
  }
  static ResolvedConfig read(const std::string& file, std::vector<Setting> flags = {}) {
    return read_config({.file = file, .flags = std::move(flags)});
  }
  std::string refused(auto&& call) const {
    std::string text = message_of<ConfigError>("", call);
    const std::string all = folder_.string();
    for (size_t at = text.find(all); at != text.npos; at = text.find(all))
      text.replace(at, all.size(), "@");
    return text;
  }

  const ScratchDirectory scratch_;
  const fs::path folder_ = fs::canonical(scratch_.path()), before_;
};

/// Returns "data.dir" = "x/y" as the text of a file.
std::string line_of(const config::ConfigKey& row, const std::string& value) {
  const size_t dot = row.name.rfind('.');
  return "[" + row.name.substr(0, dot) + "]\n" + row.name.substr(dot + 1) + " = " + value + "\n";
}

TEST_F(ConfigPaths, EveryKeyThatIsAPathSaysWhereItStarts) {
  const std::regex names(
      "\\b([Ff]iles?|[Ff]olders?|[Pp]aths?|[Cc]heckpoints?|[Ss]hared object)\\b");
  std::vector<std::string> neither;
  for (const config::ConfigKey& row : config::config_keys()) {
    const bool is_text =
        row.type == config::ConfigType::text || row.type == config::ConfigType::texts;
    if (is_text && row.choices.empty() && row.path == config::PathKind::none &&
        std::regex_search(row.help, names))
      neither.push_back(row.name);
    if (row.path == config::PathKind::none) continue;
    EXPECT_TRUE(is_text) << row.name << " is a path, and no text";
    if (row.type != config::ConfigType::text) continue;
    // The key is set in a file, in a file that it includes, and as a flag.
    const auto value = [&](const ResolvedConfig& resolved) {
      return std::get<std::string>(row.get(resolved.config));
    };
    const std::string here = (folder_ / "work/x/y").string();
    const std::string in_file =
        row.path == config::PathKind::read ? (folder_ / "conf/x/y").string() : "x/y";
    std::string text = line_of(row, "\"./x/y\"");
    if (row.name == "data.statistics")
      text += "dataset = \"arrays\"\nfields = [\"x: from x\"]\ntrain_files = [\"x.npy\"]\n";
    const std::string own = file("own.toml", text);
    const std::string written = value(read(own));
    EXPECT_EQ(written, row.path == config::PathKind::read ? in_file : "./x/y") << row.name;
    fs::create_directories(folder_ / "conf/more");
    const std::string outer = (folder_ / "conf/more/outer.toml").string();
    std::ofstream(outer) << "include = \"../own.toml\"\n";
    EXPECT_EQ(fs::weakly_canonical(value(read(outer))), fs::weakly_canonical(written)) << row.name;
    const std::string flag = value(read(own, {{row.name, "x/y", "--set"}}));
    EXPECT_EQ(flag, row.path == config::PathKind::read ? here : "x/y") << row.name;
    EXPECT_EQ(value(read(own, {{row.name, "", "--set"}})), "") << row.name;
    if (row.path_word.empty()) continue;
    EXPECT_EQ(value(read(file("word.toml", line_of(row, "\"" + row.path_word + "\"")))),
              row.path_word);
  }
  EXPECT_EQ(neither, std::vector<std::string>{}) << "say path(PathKind::...) in their rows";
}

TEST_F(ConfigPaths, WhatARunKeepsReadsBackFromAnywhere) {
  const ResolvedConfig first = read(
      file("run.toml",
           "[data]\ndataset = \"arrays\"\ndir = \"d $$x/[1] #2\"\nfields = [\"x: from x\"]\n"
           "train_files = [\"a.h5\"]\nstatistics = \"s's.json\"\ntransforms = [\"x: select CA of "
           "'p q.pdb', contacts 8\"]\n"),
      {{"run.output_dir", "out$HOME \\ \"q\"", "--output-dir"}});
  EXPECT_EQ(first.config.data.dir, (folder_ / "conf/d $x/[1] #2").string());
  EXPECT_EQ(first.config.data.transforms[0],
            "x: select CA of '" + (folder_ / "conf/p q.pdb").string() + "', contacts 8");
  EXPECT_EQ(first.config.run.output_dir, "out$HOME \\ \"q\"");
  std::ofstream(folder_ / "kept.toml") << resolved_toml(first);
  fs::current_path(folder_);
  const ResolvedConfig second = read("kept.toml");
  for (const config::ConfigKey& row : config::config_keys())
    EXPECT_EQ(row.get(first.config), row.get(second.config)) << row.name;
}

TEST_F(ConfigPaths, AreExpandedInFilesAndTakenAsTheyAreFromFlags) {
  ::setenv("HOME", "/home/anna", 1);
  ::setenv("DATA_SET", "mnist", 1);
  ::unsetenv("NO_SUCH_PLACE");
  const auto dir = [&](const std::string& text) {
    return read(file("run.toml", "[data]\ndir = '" + text + "'\n")).config.data.dir;
  };
  EXPECT_EQ(dir("~/data"), "/home/anna/data");
  EXPECT_EQ(dir("/x/$DATA_SET/${DATA_SET}s/~"), "/x/mnist/mnists/~");
  EXPECT_EQ(dir("/a$/b${"), "/a$/b${");
  EXPECT_EQ(dir("/cost$$X/$$$DATA_SET"), "/cost$X/$mnist");
  EXPECT_EQ(refused([&] { dir("$NO_SUCH_PLACE/x"); }),
            "@/conf/run.toml:2:7: data.dir is \"$NO_SUCH_PLACE/x\", but the environment variable "
            "NO_SUCH_PLACE is not set; $$ stands for the sign");
  for (const char* where : {"--data-dir", "TUTTI_DATA_DIR"}) {
    ConfigSources sources;
    if (where[0] == '-')
      sources.flags = {{"data.dir", "/cost$NO_SUCH_PLACE$$", where}};
    else
      sources.environment = {{where, "/cost$NO_SUCH_PLACE$$"}};
    EXPECT_EQ(read_config(sources).config.data.dir, "/cost$NO_SUCH_PLACE$$");
  }
  EXPECT_EQ(read("", {{"data.dir", "~/x", "--data-dir"}}).config.data.dir, "/home/anna/x");
}

TEST_F(ConfigPaths, AFileAtTheOldPlaceAloneIsNamedWithBoth) {
  std::ofstream(folder_ / "work/stats.json") << "{}";
  const std::string arrays =
      "[data]\ndataset = \"arrays\"\ntrain_files = [\"a.npy\"]\nfields = [\"x: from array\"]\n";
  const std::string run = file("run.toml", arrays + "statistics = \"stats.json\"\n");
  EXPECT_EQ(refused([&] { check_old_places(read(run)); }),
            "@/conf/run.toml:5:14: data.statistics: 'stats.json' starts at the folder of its file, "
            "and nothing lies at @/conf/stats.json; at the working folder, where earlier versions "
            "looked, there is @/work/stats.json: write that path in the file, or move what it "
            "names");
  check_old_places(read(run, {{"data.statistics", "stats.json", "--set"}}));
  file("stats.json", "{}");
  check_old_places(read(run));
  // Files of data without data.dir.
  std::ofstream(folder_ / "work/a.npy") << "x";
  EXPECT_TRUE(
      has_text(refused([&] { check_old_places(read(run)); }), "data.train_files: 'a.npy' starts"));
  EXPECT_EQ(read(run).config.data.dir, folder_ / "conf");
  const config::DataSection here =
      read(run, {{"data.train_files", "a.npy", "--set"}, {"data.test_files", "b.npy", "--set"}})
          .config.data;
  EXPECT_EQ(here.dir, folder_ / "work") << "so that it is kept in the run's config.toml";
  EXPECT_EQ(here.train_files, std::vector<std::string>{"a.npy"});
  EXPECT_EQ(read(run, {{"data.test_files", "b.npy", "--set"}}).config.data.test_files,
            std::vector<std::string>{folder_ / "work/b.npy"});
  EXPECT_EQ(
      refused([&] { require_path("data.statistics", folder_ / "conf/none.json"); }).substr(0, 89),
      "data.statistics = \"@/conf/none.json\": there is no such file or folder: the folder "
      "@/conf ");
}

TEST_F(ConfigPaths, APathThatCannotBeFollowedIsNotCalledAbsent) {
  const fs::path loop = folder_ / "conf/loop.json";
  fs::create_symlink(loop, loop);
  std::ofstream(folder_ / "work/loop.json") << "{}";
  try {
    require_path("data.statistics", loop);
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(std::string(error.what()),
              "data.statistics = \"" + loop.string() + "\": " + file_error(ELOOP));
  }
  check_old_places(read(file("run.toml",
                             "[data]\ndataset = \"arrays\"\ntrain_files = [\"a.npy\"]\nfields = "
                             "[\"x: from array\"]\nstatistics = \"loop.json\"\n")));
}

TEST_F(ConfigPaths, WhatInspectPrintsLeadsToTheFolderWhateverItIsCalled) {
  for (const char* name :
       {"cost$X", "${HOME}", "$$", "a b", "it's", "\"q\"", "[1]*", "#2", "b\\n"}) {
    const fs::path place = folder_ / name;
    fs::create_directory(place);
    for (const char* part : {"lattices-train.bin", "lattices-test.bin"})
      data::write_lattices(place / part, {.seed = 1, .count = 5}, 1);
    const config::DataSection data = read(file("inspected.toml", inspect_data(place))).config.data;
    EXPECT_EQ(data.dir, place);
    EXPECT_EQ(data.dataset, "lattices");
  }
}

TEST_F(ConfigPaths, RecipesReadAlikeFromAnyFolder) {
  int count = 0;
  std::map<std::string, std::string> datasets;
  for (const auto& entry : fs::recursive_directory_iterator(TUTTI_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".toml" || entry.path().parent_path().filename() == "machines")
      continue;
    ++count;
    const auto from = [&](const fs::path& folder) {
      fs::current_path(folder);
      return read(entry.path(), {{"model.library", "/of/ones/own.so", "--set"}});
    };
    const ResolvedConfig here = from(folder_), there = from(TUTTI_SOURCE_DIR);
    EXPECT_EQ(here.warnings, std::vector<std::string>()) << entry.path();
    for (const config::ConfigKey& row : config::config_keys())
      EXPECT_EQ(row.get(here.config), row.get(there.config)) << entry.path() << ' ' << row.name;
    const auto dir = here.origins.find("data.dir");
    EXPECT_TRUE(dir == here.origins.end() || dir->second.starts_with("the folder of "))
        << entry.path() << ": --data-dir says it";
    datasets[entry.path().filename()] = here.config.data.dataset;
  }
  EXPECT_GE(count, 30);
  // Command lines that train by a recipe name the folder of its data.
  std::vector<fs::path> pages = {TUTTI_SOURCE_DIR "/README.md"};
  for (const char* folder : {TUTTI_SOURCE_DIR "/examples", TUTTI_SOURCE_DIR "/docs"})
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.path().string().find("/results") == std::string::npos)
        pages.push_back(entry.path());  // results report runs of their time
  const std::regex command("tutti (?:train|study|eval) ([^ ]*\\.toml)");
  int lines = 0;
  for (const fs::path& page : pages) {
    std::ifstream in(page);
    for (std::string line; std::getline(in, line);) {
      const size_t at = line.find("tutti ");  // the expression is slow on long lines
      std::smatch found;
      if (at == line.npos || !std::regex_search(line, found, command)) continue;
      const auto recipe = datasets.find(fs::path(found[1].str()).filename());
      if (recipe == datasets.end() || recipe->second == "lattices") continue;
      ++lines;
      EXPECT_TRUE(has_text(line, "--data-dir")) << page;
    }
  }
  EXPECT_GE(lines, 40);
}

}  // namespace
}  // namespace tutti::cli
