#include "tutti/study/comparison.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

class ComparisonTest : public testing::Test {
 protected:
  /// Writes a study of runs on 1 and 2 ranks: an epoch takes 100 s / ranks^`speed`, and the target
  /// is reached after `epochs` epochs on 1 rank and `epochs_of_two` on 2; 0: never.
  void write_study(const std::string& folder, double seconds_of_two, int epochs,
                   int epochs_of_two) {
    for (const int ranks : {1, 2}) {
      const fs::path run = root_ / folder / "runs" / fmt::format("n{:04}-r1", ranks);
      fs::create_directories(run);
      std::ofstream record(run / trace::kRecordFile);
      const auto line = [&](const std::string& event) {
        record << "{\"schema\":1,\"event\":" << event << "}\n";
      };
      line(fmt::format(
          R"("run_start","model":"m","dataset":"{}","precision":"fp32","machine":"{}","ranks":{},"local_batch":8,"global_batch":{},"target":{{"metric":"accuracy","value":0.9,"higher_is_better":true}})",
          folder.substr(folder.rfind('/') + 1), machine_, ranks, 8 * ranks));
      if (ranks == 2) line(R"("machine","seconds":10,"other_work":0.4,"steal":0)");
      const double seconds = ranks == 1 ? 100 : seconds_of_two;
      const int needed = ranks == 1 ? epochs : epochs_of_two;
      for (int e = 1; e <= 4; ++e) {
        line(fmt::format(R"("epoch","epoch":{},"step":{},"seconds":{},"samples_per_s":{})", e,
                         10 * e, seconds, 100 / seconds));
        line(fmt::format(R"("eval","epoch":{},"step":{},"accuracy":{},"wall_seconds":{})", e,
                         10 * e, needed != 0 && e >= needed ? 0.95 : 0.5, e * seconds));
      }
      line(R"("run_stop","status":"done")");
    }
  }
  ComparisonFlags flags(std::vector<std::string> folders) {
    ComparisonFlags flags;
    for (const std::string& folder : folders) flags.directories.push_back(root_ / folder);
    flags.output_dir = root_ / "all";
    flags.command = "tutti study --compare <a>";
    return flags;
  }
  std::string written(const char* name) const {
    std::ifstream file(root_ / "all" / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Returns what the comparison of these studies prints.
  std::string printed_of(std::vector<std::string> folders) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(compare_studies(flags(std::move(folders))), 0);
    return testing::internal::GetCapturedStdout();
  }
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
  std::string machine_ = "two cores";
};

TEST_F(ComparisonTest, EachStudyKeepsItsOwnSpeedups) {
  write_study("protein", 50, 2, 2);  // the whole gain in speed is a gain in learning
  write_study("cbed", 40, 2, 3);
  write_study("imagenet", 80, 1, 0);
  const std::string printed = printed_of({"protein", "cbed", "imagenet"});
  EXPECT_TRUE(has_text(printed, "cbed: m on cbed, fp32; weak scaling, 8 samples a rank"));
  const Json json = parse_json(written("studies.json"));
  ASSERT_EQ(json["studies"].size(), 3u);
  const auto speedups = [&](size_t study) {
    const Json& row = json["studies"][study]["rows"][1];
    return std::pair(row["parallel_speedup"]["value"].get<double>(),
                     row["learning_speedup"]["value"]);
  };
  EXPECT_EQ(json["studies"][0]["name"], "protein");
  EXPECT_NEAR(speedups(0).first, 2, 1e-12);
  EXPECT_NEAR(speedups(0).second.get<double>(), 2, 1e-12);
  EXPECT_NEAR(speedups(1).first, 2.5, 1e-12);
  EXPECT_NEAR(speedups(1).second.get<double>(), 200.0 / 120, 1e-12);
  EXPECT_NEAR(speedups(2).first, 1.25, 1e-12);
  EXPECT_TRUE(speedups(2).second.is_null());
  // The table and the CSV file have a line for each size of each study.
  const TextTable table = comparison_table(read_studies(flags({"protein", "cbed", "imagenet"})));
  ASSERT_EQ(table.rows.size(), 6u);
  EXPECT_EQ(table.rows[3][0], "cbed");
  EXPECT_EQ(table.rows[3][4], "2.50");
  EXPECT_EQ(table.rows[3][8], "1.67");
  EXPECT_EQ(table.rows[5][6], "not reached");
  std::istringstream lines(written("studies.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(line.starts_with("study,ranks,runs,")) << line;
  for (const char* name : {"protein,1,", "protein,2,", "cbed,1,", "cbed,2,", "imagenet,1,"}) {
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with(name)) << line;
  }
  std::istringstream shown(printed);
  while (std::getline(shown, line)) {
    EXPECT_TRUE(line.size() <= 100 || line.find("studies.html") != line.npos) << line;
  }
}

TEST_F(ComparisonTest, EachDisturbanceIsSaidOnceBeforeTheNumbers) {
  write_study("a", 50, 2, 2);
  write_study("b", 50, 2, 2);
  const std::string printed = printed_of({"a", "b"});
  for (const std::string sentence : {"a: Other work took 40 %", "b: Other work took 40 %"}) {
    EXPECT_LT(printed.find(sentence), printed.find("seconds an epoch")) << printed;
    EXPECT_EQ(printed.find(sentence, printed.find(sentence) + 1), printed.npos) << printed;
  }
  EXPECT_EQ(parse_json(written("studies.json"))["notes"][0].get<std::string>().find("a: Other"),
            0u);
}

TEST_F(ComparisonTest, ThePageNeedsNothingElseAndLinksToTheStudies) {
  write_study("a", 50, 2, 2);
  write_study("b", 50, 2, 2);
  printed_of({"a", "b/"});
  const std::string html = written("studies.html");
  EXPECT_TRUE(has_text(html, "<title>2 scaling studies</title>"));
  EXPECT_TRUE(has_text(html, "href=\"./../b/report.html\""));
  EXPECT_TRUE(has_text(html, "--compare &lt;a&gt;"));
  EXPECT_TRUE(has_text(html, "const Figures"));
  EXPECT_FALSE(has_text(html, "{{"));
  EXPECT_FALSE(has_text(html, "different machines"));
  for (const char* reference : {" src=", "url(http", "@import", "<link"})
    EXPECT_FALSE(has_text(html, reference)) << reference;
}

TEST_F(ComparisonTest, FoldersOfOneNameAreToldApartAndOtherMachinesAreSaid) {
  write_study("one/study", 50, 2, 2);
  machine_ = "four cores";
  write_study("two/study", 50, 2, 2);
  const auto studies = read_studies(flags({"one/study", "two/study"}));
  EXPECT_EQ(studies[0].name, (root_ / "one/study").string());
  EXPECT_EQ(studies[1].name, (root_ / "two/study").string());
  EXPECT_TRUE(has_text(comparison_html(studies, {}), "different machines"));
}

TEST_F(ComparisonTest, WhatCannotBeComparedIsRefused) {
  write_study("a", 50, 2, 2);
  EXPECT_THROW(read_studies(flags({"a"})), ConfigError);
  EXPECT_THROW(read_studies(flags({"a", "a/"})), ConfigError);
  EXPECT_THROW(read_studies(flags({"a", "none"})), IoError);
}

}  // namespace
}  // namespace tutti::study
