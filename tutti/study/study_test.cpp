#include "tutti/study/study.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/study/run_folder.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

/// A study over a program that only writes a record: `tutti train CONFIG --ranks n --output-dir DIR
/// ...` as positional words.
class StudyTest : public testing::Test {
 protected:
  StudyTest() {
    std::ofstream(root_ / "program.sh") << R"sh(#!/bin/sh
n=$4 dir=$6
[ -e "$2.fail$n" ] && { echo "no memory on rank 0"; exit 1; }
[ -e "$2.stop" ] && { kill -TERM $PPID; exit 75; }
[ -e "$2.configure" ] && printf '[optimizer]\nmomentum = 0.9  # default\nlr = 0.5  # base.toml:1:1\n' > "$dir/config.toml"
acc=0.95; [ -e "$2.miss$n" ] && acc=0.5
e='"schema":1,"event":'
{
  echo "{$e\"run_start\",\"model\":\"m\",\"ranks\":$n,\"local_batch\":8,\"global_batch\":$((8 * n)),\"target\":{\"metric\":\"accuracy\",\"value\":0.9,\"higher_is_better\":true}}"
  echo "{$e\"epoch\",\"epoch\":1,\"step\":10,\"seconds\":$((120 / n)),\"samples_per_s\":$((10 * n))}"
  echo "{$e\"eval\",\"epoch\":1,\"step\":10,\"accuracy\":$acc,\"wall_seconds\":$((120 / n))}"
  echo "{$e\"run_stop\",\"status\":\"done\"}"
} > "$dir/record.jsonl"
)sh";
    fs::permissions(root_ / "program.sh", fs::perms::owner_all);
    flags_.config = (root_ / "base.toml").string();
    std::ofstream(flags_.config) << "# the base\n";
    flags_.program = (root_ / "program.sh").string();
    flags_.output_dir = (root_ / "out").string();
    flags_.ranks = {1, 2};
    flags_.repeats = 2;
    flags_.local_batch = 8;
  }
  /// The program's $2 is "base.toml" with its directory: marker files beside it steer the program.
  void mark(const std::string& what) { std::ofstream(flags_.config + "." + what) << ""; }
  Json result() const {
    std::ifstream file(root_ / "out/study.json");
    return parse_json(file);
  }
  /// Writes a record whose lines are these events, each without its schema and braces.
  void leave_record(const std::string& folder, const std::vector<std::string>& events) {
    fs::create_directories(root_ / folder);
    std::ofstream record(root_ / folder / trace::kRecordFile);
    for (const std::string& event : events) record << "{\"schema\":1," << event << "}\n";
  }
  /// Returns what a study prints that ends with this code.
  std::string printed_with(int code) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_study(flags_), code);
    return testing::internal::GetCapturedStdout();
  }
  /// Returns the output of --collect if the only run, in `folder`, was stopped early.
  std::string printed_of_a_stopped_run_in(const char* folder) {
    leave_record(folder,
                 {R"("event":"run_start","ranks":1)", R"("event":"run_stop","status":"requeue")"});
    flags_.collect_only = true;
    return printed_with(75);
  }
  /// Makes earlier runs be compared by their threads, which are read from the command that the
  /// study left there.
  void compare_threads() {
    mark("configure");
    static const auto threads_in = [](const std::string& text) -> Configuration {
      const size_t at = text.find("run.threads=");
      return {{"run.threads", at == std::string::npos ? "" : text.substr(at + 12, 1)}};
    };
    flags_.resolve = [](const std::vector<std::string>& sets) {
      std::string all;
      for (const std::string& set : sets) all += set + ' ';
      return threads_in(all);
    };
    flags_.read_resolved = [](const std::string& path) {
      std::ifstream file(fs::path(path).parent_path() / kCommandFile);
      return threads_in({std::istreambuf_iterator<char>(file), {}});
    };
  }
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
  StudyFlags flags_;
};

TEST_F(StudyTest, AWholeStudyFromPlanToReports) {
  EXPECT_EQ(run_study(flags_), 0);
  const auto json = result();
  EXPECT_EQ(json["runs"].size(), 4u);
  EXPECT_EQ(json["rows"][1]["parallel_speedup"]["value"], 2);
  EXPECT_EQ(json["rows"][1]["learning_speedup"]["value"], 2);
  for (const char* name : {"study.csv", "runs.csv", "report.html", "runs/n0002-r2/command.sh"})
    EXPECT_TRUE(fs::exists(root_ / "out" / name)) << name;
  flags_.collect_only = true;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 4u);
}

TEST_F(StudyTest, AFailureIsInTheReportAndTheNextStudyRunsOnlyThatAgain) {
  mark("fail2");
  EXPECT_EQ(run_study(flags_), 1);
  EXPECT_EQ(result()["rows"][1]["failed"], 2);
  EXPECT_TRUE(has_text(result()["runs"][2]["failure"].get<std::string>(), "no memory on rank 0"));
  fs::remove(flags_.config + ".fail2");
  const auto kept = fs::last_write_time(root_ / "out/runs/n0001-r1/record.jsonl");
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(fs::last_write_time(root_ / "out/runs/n0001-r1/record.jsonl"), kept);
  EXPECT_EQ(result()["rows"][1]["failed"], 0);
  EXPECT_EQ(result()["runs"][2]["earlier_attempts"], 1);
  flags_.collect_only = true;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"][2]["earlier_attempts"], 1);
}

TEST_F(StudyTest, AMissedTargetIsAnAnswerUnlessItIsRequired) {
  mark("miss2");
  const std::string printed = printed_with(0);
  for (const char* part : {"was missed by some runs: 2 of 2 on 2 ranks",
                           "--require-target makes it 3", "What to do next", "--epochs N",
                           "schedule.scale_with_batch", "report.html", "runs.csv", "console.log"})
    EXPECT_TRUE(has_text(printed, part)) << part << " is not in\n";
  EXPECT_TRUE(result()["rows"][1]["learning_speedup"]["value"].is_null());
  flags_.require_target = true;
  EXPECT_EQ(run_study(flags_), 3);
}

TEST_F(StudyTest, TheReportShowsTheConfigurationThatTheRunsHad) {
  mark("configure");
  flags_.resolve = [](const auto&) { return Configuration{{"optimizer.lr", "0.5"}}; };
  flags_.read_resolved = [](const std::string& path) -> Configuration {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line))
      if (line.starts_with("lr = "))
        return {{"optimizer.lr", line.substr(5, line.find(' ', 5) - 5)}};
    return {};
  };
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["configuration"]["optimizer.lr"], "0.5");
  std::ifstream page(root_ / "out/report.html");
  const std::string html{std::istreambuf_iterator<char>(page), {}};
  EXPECT_TRUE(has_text(html, "<pre>[optimizer]\nlr = 0.5"));
  EXPECT_FALSE(has_text(html, "momentum = 0.9"));  // a default
  flags_.resolve = [](const auto&) { return Configuration{{"optimizer.lr", "0.7"}}; };
  EXPECT_THROW(run_study(flags_), ConfigError);
}

TEST_F(StudyTest, TwoStudiesAtOnceInOneFolderAreRefused) {
  fs::create_directories(flags_.output_dir);
  const FolderLock other = lock_study(flags_.output_dir, 0);
  EXPECT_THROW(run_study(flags_), ConfigError);
  EXPECT_FALSE(fs::exists(root_ / "out/runs"));
}

TEST_F(StudyTest, AStudyIsRefusedWhereARunLies) {
  fs::create_directories(flags_.output_dir);
  std::ofstream(root_ / "out" / trace::kRecordFile) << "";
  EXPECT_THROW(run_study(flags_), ConfigError);
  EXPECT_FALSE(fs::exists(root_ / "out/runs"));
}

TEST_F(StudyTest, OtherRanksOrRepeatsOnlyAddRuns) {
  EXPECT_EQ(run_study(flags_), 0);
  flags_.ranks = {4};
  flags_.repeats = 1;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["rows"].size(), 3u);
  EXPECT_EQ(result()["runs"].size(), 5u);
}

TEST_F(StudyTest, MoreRanksThanBeforeOnlyAddRunsWhereTheThreadsOfARankStay) {
  compare_threads();
  flags_.cores = 4;
  EXPECT_EQ(run_study(flags_), 0);  // 4 cores / 2 ranks
  flags_.ranks = {4};
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 2u);
  EXPECT_TRUE(has_text(result()["notes"].back().get<std::string>(),
                       "4 earlier runs in this folder are left out, unfinished or with another "
                       "configuration (run.threads: 2 there, 1 now)"))
      << result()["notes"].back();
  flags_.ranks = {8};
  flags_.threads_per_rank = 2;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 6u);
}

TEST_F(StudyTest, FreshLeavesNoRunOfAnEarlierProgramInTheFolder) {
  EXPECT_EQ(run_study(flags_), 0);
  flags_.fresh = true;
  flags_.repeats = 1;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 2u);
  EXPECT_EQ(result()["notes"].back(),
            "2 earlier runs that this study does not repeat were set aside, as --fresh asks. They "
            "enter no number.");
  EXPECT_TRUE(fs::exists(root_ / "out/runs/n0002-r2.attempt-1" / trace::kRecordFile));
  flags_.fresh = false;  // a study that was stopped is started again so
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 2u);
}

TEST_F(StudyTest, WhatFreshStartedAndAStopEndedGoesOnWithoutRunsOfTheEarlierProgram) {
  EXPECT_EQ(run_study(flags_), 0);
  flags_.fresh = true;
  mark("stop");
  EXPECT_EQ(run_study(flags_), 75);
  for (const char* run : {"n0001-r1", "n0001-r2", "n0002-r1", "n0002-r2"})
    EXPECT_FALSE(is_finished((root_ / "out/runs" / run).string())) << run;
  EXPECT_TRUE(is_finished((root_ / "out/runs/n0002-r2.attempt-1").string()));
}

TEST_F(StudyTest, RunsOfAnotherConfigurationInTheFolderAreLeftOutAndTheNotesSaySo) {
  mark("configure");
  std::string rate = "0.5";
  flags_.resolve = [&](const auto&) { return Configuration{{"optimizer.lr", rate}}; };
  flags_.read_resolved = [](const std::string& path) -> Configuration {
    return {{"optimizer.lr", path.find("n0004") == std::string::npos ? "0.5" : "0.7"}};
  };
  EXPECT_EQ(run_study(flags_), 0);
  flags_.ranks = {4};
  rate = "0.7";
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 2u);
  EXPECT_EQ(result()["notes"].back(),
            "4 earlier runs in this folder are left out, unfinished or with another configuration "
            "(optimizer.lr: 0.5 there, 0.7 now): 'tutti study --collect --output-dir " +
                flags_.output_dir + "' shows all.");
}

TEST_F(StudyTest, CollectWithoutAFolderOrOfASingleRunSaysWhatToGive) {
  flags_.collect_only = true;
  const std::string message = message_of<IoError>([&] { run_study(flags_); });
  EXPECT_TRUE(has_text(message, "there is no folder " + flags_.output_dir));
  leave_record("out", {R"("event":"run_start")"});
  EXPECT_THROW(run_study(flags_), ConfigError);
  EXPECT_FALSE(fs::exists(root_ / "out/report.html"));
}

TEST_F(StudyTest, WhereNoStudyLiesNobodyIsToldToStartOneAgain) {
  const std::string printed = printed_of_a_stopped_run_in("out/a");
  EXPECT_FALSE(has_text(printed, "Start the study again"));
  EXPECT_FALSE(has_text(printed, "runs/"));
  EXPECT_TRUE(has_text(printed, "No study lies here"));
}

TEST_F(StudyTest, ARunThatWentOnWithAnotherConfigurationIsInTheNotes) {
  leave_record("out/runs/n0001-r1",
               {R"("event":"run_start","ranks":1)",
                R"("event":"run_start","ranks":1,"changes":["run.epochs: 2 -> 4"])",
                R"("event":"run_stop","status":"done")"});
  flags_.collect_only = true;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_TRUE(has_text(
      result()["notes"].dump(),
      "went on with another configuration (run.epochs: 2 -> 4). What it measured is of both."));
}

TEST_F(StudyTest, CollectTakesOnlyTheRunsOfAStudy) {
  EXPECT_EQ(run_study(flags_), 0);
  fs::copy(root_ / "out/runs/n0001-r1" / trace::kRecordFile, root_ / "out" / trace::kRecordFile);
  fs::create_directories(root_ / "out/runs/other");
  fs::copy(root_ / "out/runs/n0001-r1" / trace::kRecordFile,
           root_ / "out/runs/other" / trace::kRecordFile);
  flags_.collect_only = true;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["runs"].size(), 4u);
}

TEST_F(StudyTest, CollectNamesTheKeysInWhichRunsDiffer) {
  for (const std::string run : {"a", "b", "c"}) {
    leave_record("out/" + run,
                 {fmt::format(R"("event":"run_start","ranks":{})", run == "b" ? 2 : 1),
                  R"("event":"run_stop","status":"done")"});
    std::ofstream(root_ / "out" / run / kResolvedFile) << "";
  }
  flags_.read_resolved = [](const std::string& path) -> Configuration {
    const char run = fs::path(path).parent_path().filename().string().front();
    return {{"run.epochs", run == 'b' ? "2" : "1"},
            {"run.seed", std::string(1, run)},
            {"run.log_level", std::string(1, run)},
            {"batch.local", run == 'b' ? "4" : "8"},
            {"batch.global", run == 'c' ? "8" : "0"}};
  };
  flags_.change_rule = [](const std::string& key) {
    return key == "run.log_level" ? OnChange::no_matter : OnChange::begins_anew;
  };
  flags_.collect_only = true;
  EXPECT_EQ(run_study(flags_), 0);
  EXPECT_EQ(result()["notes"][0],
            "These runs are no study: besides ranks and seed they differ in batch.global (0 in 2 "
            "runs, 8 in 1 run), run.epochs (1 in 2 runs, 2 in 1 run). Speed-ups between them may "
            "come from that.");
}

TEST_F(StudyTest, WhereNoReportCanBeWrittenTheTablesAreShownAndTheReasonIsSaid) {
  fs::create_directories(root_ / "out/study.csv");
  testing::internal::CaptureStdout();
  const std::string message = message_of<IoError>([&] { run_study(flags_); });
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(has_text(printed, "How fast it trains"));
  EXPECT_TRUE(has_text(message, "study.csv: cannot be written: Is a directory; "));
  EXPECT_TRUE(has_text(message, "tutti study --collect --output-dir " + flags_.output_dir + "'"));
}

TEST_F(StudyTest, ARunThatWasStoppedHasNotFailed) {
  const std::string printed = printed_of_a_stopped_run_in("out/runs/n0001-r1");
  EXPECT_FALSE(has_text(printed, "failed"));
  EXPECT_TRUE(
      has_text(printed, "Start the study again with the command of the study, without --collect:"));
  EXPECT_EQ(result()["rows"][0]["stopped"], 1);
}

TEST_F(StudyTest, RunsThatComeAfterAreThoseThatAreNotFinished) {
  std::vector<StudyFlags> studies(3, flags_);
  studies[0].output_dir = (root_ / "first").string();
  studies[2].output_dir = (root_ / "last").string();
  studies[2].repeats = 3;
  count_runs_after(studies);
  EXPECT_EQ(studies[0].runs_after, 4U + 6U);
  EXPECT_EQ(studies[1].runs_after, 6U);
  EXPECT_EQ(studies[2].runs_after, 0U);
  flags_.quiet = true;
  testing::internal::CaptureStdout();
  run_study(flags_);  // the second one
  testing::internal::GetCapturedStdout();
  count_runs_after(studies);
  EXPECT_EQ(studies[0].runs_after, 6U);
  studies[1].fresh = true;
  count_runs_after(studies);
  EXPECT_EQ(studies[0].runs_after, 4U + 6U);
}

TEST_F(StudyTest, ADryRunLaunchesNothing) {
  flags_.dry_run = true;
  const std::string printed = printed_with(0);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 4);
  EXPECT_FALSE(fs::exists(root_ / "out"));
}

}  // namespace
}  // namespace tutti::study
