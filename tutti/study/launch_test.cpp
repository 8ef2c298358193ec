#include "tutti/study/launch.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/study/child.h"
#include "tutti/study/collect.h"
#include "tutti/study/console.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

class LaunchTest : public testing::Test {
 protected:
  /// A run whose "training" is a shell script; $0 is its output directory.
  PlannedRun script(const std::string& text, int ranks = 1) const {
    PlannedRun run;
    run.ranks = ranks;
    run.directory = (root_ / ("n" + std::to_string(ranks))).string();
    run.command = {"/bin/sh", "-c", text, run.directory};
    return run;
  }
  static std::string record(const std::string& status, int ranks = 1,
                            const std::string& error = "") {
    return R"(printf '%s\n' '{"schema":1,"event":"run_start","ranks":)" + std::to_string(ranks) +
           R"(}' '{"schema":1,"event":"run_stop","status":")" + status + R"(","error":")" + error +
           R"("}' > "$0/record.jsonl"; )";
  }
  /// Leaves the files of a run that was killed after its first checkpoint.
  static void leave_unfinished(const PlannedRun& run) {
    fs::create_directories(run.directory + "/checkpoints/step_0000001");
    std::ofstream(run.directory + "/record.jsonl") << R"({"schema":1,"event":"run_start"})" << '\n';
    std::ofstream(run.directory + "/config.toml") << "";
  }
  static OnChange rule_of(const std::string& key) {
    return key == "run.output_dir" ? OnChange::no_matter
           : key == "run.threads"  ? OnChange::may_go_on
                                   : OnChange::begins_anew;
  }
  /// Returns options with which earlier runs had this configuration, and runs now would have that.
  LaunchOptions comparing(const Configuration& found, const Configuration& wanted) const {
    LaunchOptions options = quiet_;
    options.found = [=](const std::string&) { return found; };
    options.wanted = [=](const PlannedRun&) { return wanted; };
    options.rule = rule_of;
    return options;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Returns what is shown of the runs.
  static std::string shown_of(const std::vector<PlannedRun>& runs, LaunchOptions options,
                              std::vector<LaunchResult>* results = nullptr) {
    std::FILE* shown = std::tmpfile();
    options.display = {.out = shown};
    const auto launched = launch(runs, options);
    if (results) *results = launched;
    std::rewind(shown);
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), shown));
    std::fclose(shown);
    return text;
  }
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
  LaunchOptions quiet_{.display = {.quiet = true}};
};

TEST_F(LaunchTest, AFinishedRunKeepsItsOutputAndIsNotRunAgain) {
  const PlannedRun run =
      script("echo hello; echo error >&2; echo x >> \"$0/../count\"; " + record("done"));
  EXPECT_EQ(launch({run}, quiet_).at(0).outcome, Outcome::finished);
  EXPECT_EQ(text_of(run.directory + "/console.log"), "hello\nerror\n");
  EXPECT_EQ(launch({run}, quiet_).at(0).outcome, Outcome::kept);
  EXPECT_EQ(text_of((root_ / "count").string()), "x\n");
  set_aside(run.directory);  // as --fresh does
  const LaunchResult again = launch({run}, quiet_).at(0);
  EXPECT_EQ(again.outcome, Outcome::finished);
  EXPECT_EQ(again.earlier_attempts, 1);
  EXPECT_TRUE(fs::exists(run.directory + ".attempt-1/record.jsonl"));
  EXPECT_EQ(text_of((root_ / "count").string()), "x\nx\n");
}

TEST_F(LaunchTest, ATargetMissedIsAResultNotAFailure) {
  const LaunchResult result = launch({script(record("target_missed") + "exit 3")}, quiet_).at(0);
  EXPECT_EQ(result.outcome, Outcome::finished);
  EXPECT_TRUE(collect({result}).at(0).usable());
}

TEST_F(LaunchTest, AFailedRunIsReportedAndTheNextOneRuns) {
  const auto results = launch(
      {script("echo out of memory; exit 1"), script(record("done", 2), 2), script("kill -9 $$", 3)},
      quiet_);
  EXPECT_EQ(results.at(0).outcome, Outcome::failed);
  EXPECT_TRUE(has_text(results[0].reason, "exit code 1"));
  EXPECT_TRUE(has_text(results[0].reason, "out of memory"));
  EXPECT_EQ(results.at(1).outcome, Outcome::finished);
  EXPECT_TRUE(has_text(results.at(2).reason, "killed by signal 9")) << results[2].reason;
  const auto runs = collect(results);
  EXPECT_FALSE(runs.at(0).usable());
  EXPECT_EQ(runs.at(2).ranks(), 3);
  EXPECT_TRUE(runs.at(1).usable());
}

TEST_F(LaunchTest, AnExitCodeOfZeroWithoutAFinishedRecordIsAFailure) {
  EXPECT_EQ(launch({script("true")}, quiet_).at(0).outcome, Outcome::failed);
  EXPECT_EQ(launch({script(record("requeue"), 2)}, quiet_).at(0).outcome, Outcome::failed);
}

// A shell with `trap '' CHLD` passes that on; the system then keeps no exit codes.
TEST_F(LaunchTest, ARunWhoseExitCodeIsLostHasEnded) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto results = launch({script(record("done")), script("exit 0", 2)}, quiet_);
  std::signal(SIGCHLD, before);
  EXPECT_EQ(results.at(0).outcome, Outcome::finished);
  EXPECT_EQ(results.at(1).outcome, Outcome::failed);
  EXPECT_EQ(results.at(1).reason, "exit code unknown");
}

TEST_F(LaunchTest, AProgramThatIsNotThereIsAnIoError) {
  PlannedRun run = script("");
  run.command = {"/no/such/program"};
  EXPECT_THROW(launch({run}, quiet_), IoError);
}

TEST_F(LaunchTest, AFinishedRunOfAnotherConfigurationIsRefusedWithItsKeysAndTheWaysOut) {
  const PlannedRun run = script("echo > \"$0/config.toml\"; " + record("done"));
  Configuration now = {{"run.epochs", "3"}, {"optimizer.lr", "0.1"}, {"run.output_dir", "\"b\""}};
  LaunchOptions options =
      comparing({{"run.epochs", "3"}, {"optimizer.lr", "0.1"}, {"run.output_dir", "\"a\""}}, {});
  options.wanted = [&](const PlannedRun&) { return now; };
  EXPECT_EQ(launch({run}, options).at(0).outcome, Outcome::finished);
  EXPECT_EQ(launch({run}, options).at(0).outcome, Outcome::kept);  // the folder does not count
  now["run.epochs"] = "5";
  const std::string what = message_of<ConfigError>([&] { launch({run}, options); });
  for (const char* part : {"n1 was finished with another configuration",
                           "run.epochs: 3 there, 5 now", "--fresh", "--output-dir", "--collect"})
    EXPECT_TRUE(has_text(what, part));
  EXPECT_FALSE(has_text(what, "optimizer.lr"));
  set_aside(run.directory);
  EXPECT_EQ(launch({run}, options).at(0).outcome, Outcome::finished);
}

TEST_F(LaunchTest, OtherThreadsOfAFinishedRunAreRefusedWithTheFlagThatKeepsThem) {
  const PlannedRun run = script("echo > \"$0/config.toml\"; " + record("done"));
  const LaunchOptions options = comparing({{"run.threads", "4"}}, {{"run.threads", "2"}});
  EXPECT_EQ(launch({run}, options).at(0).outcome, Outcome::finished);
  EXPECT_TRUE(throws<ConfigError>({"run.threads: 4 there, 2 now", "--threads 4 takes"},
                                  [&] { launch({run}, options); }));
}

TEST_F(LaunchTest, AStoppedOrFailedRunGoesOnFromItsCheckpoint) {
  // The shell's $1 is the argument that the study adds to the command.
  const std::string text =
      "mkdir -p \"$0/checkpoints/step_0000001\"; echo \"$1\" >> \"$0/../args\"; ";
  const auto outcome = [&](const std::string& end) {
    return launch({script(text + end)}, quiet_).at(0);
  };
  EXPECT_EQ(outcome(record("requeue") + "exit 75").outcome, Outcome::failed);
  EXPECT_EQ(outcome(record("failed", 1, "CommError") + "exit 1").earlier_attempts, 0);
  EXPECT_EQ(outcome(record("failed") + "exit 1").earlier_attempts, 0);  // earlier version
  EXPECT_EQ(outcome(record("failed", 1, "NumericError") + "exit 1").earlier_attempts, 0);
  EXPECT_EQ(text_of((root_ / "args").string()), "\n--resume\n--resume\n--resume\n");
}

TEST_F(LaunchTest, ARunWhoseNumbersFailedBeginsAnew) {
  const std::string text =
      "mkdir -p \"$0/checkpoints/step_0000001\"; echo \"$1\" >> \"$0/../args\"; ";
  const PlannedRun run = script(text + record("failed", 1, "NumericError") + "exit 1");
  EXPECT_EQ(launch({run}, quiet_).at(0).earlier_attempts, 0);
  EXPECT_EQ(launch({run}, quiet_).at(0).earlier_attempts, 1);  // the failed attempt lies beside it
  EXPECT_EQ(text_of((root_ / "args").string()), "\n\n");
}

TEST_F(LaunchTest, ARunThatFailedBeforeComesAfterTheOthers) {
  const std::string order = (root_ / "order").string();
  const auto run = [&](int ranks, const std::string& end) {
    return script("echo " + std::to_string(ranks) + " >> \"$0/../order\"; " + end, ranks);
  };
  launch({run(1, record("failed") + "exit 1"), run(2, record("requeue", 2) + "exit 75")}, quiet_);
  const auto results = launch(
      {run(1, record("done")), run(2, record("done", 2)), run(3, record("done", 3))}, quiet_);
  EXPECT_EQ(text_of(order), "1\n2\n2\n3\n1\n");
  ASSERT_EQ(results.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].run.ranks, i + 1);
}

TEST_F(LaunchTest, OneLineForEachRunAndTheEndOfAFailedOnesLog) {
  LaunchOptions options;
  options.target = trace::Target{};
  options.target->value = 0.5;
  const std::string end =
      R"(printf '%s\n' '{"schema":1,"event":"run_start","ranks":1}' )"
      R"('{"schema":1,"event":"eval","epoch":2,"accuracy":0.75,"wall_seconds":8}' )"
      R"('{"schema":1,"event":"run_stop","status":"done"}' > "$0/record.jsonl"; echo banner)";
  std::vector<LaunchResult> results;
  const std::string text =
      shown_of({script(end), script("echo banner; echo 'tutti: no memory'; echo more; exit 1", 2)},
               options, &results);
  EXPECT_TRUE(
      has_text(text, "run 1 of 2   1 rank  repeat 1  target reached after 8.0 s and 2 epochs; "));
  EXPECT_TRUE(has_text(text, " s in all, about 0 s left\n"));
  EXPECT_TRUE(has_text(text, "run 2 of 2  2 ranks  repeat 1  failed: exit code 1: no memory\n"));
  EXPECT_FALSE(has_text(text, "banner"));
  EXPECT_EQ(results[1].reason, "exit code 1: no memory");
}

TEST_F(LaunchTest, TheTimeThatIsLeftIsOfRunsThatAreNotFinished) {
  const PlannedRun first = script("sleep 0.2; " + record("done")),
                   second = script("sleep 0.2; " + record("done", 2), 2),
                   third = script("sleep 0.2; " + record("done", 3), 3);
  EXPECT_FALSE(has_text(shown_of({first}, {}), "left")) << "nothing is left";
  // One run exists already; after each of the other two 1000 or 999 are left, of 0.2 s and a bit on
  // average.
  const std::string text = shown_of({first, second, third}, {.runs_after = 999});
  EXPECT_TRUE(has_text(text, "kept from before"));
  const size_t at = text.find(" min left");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find(" min left", at + 1), std::string::npos) << text;
  EXPECT_FALSE(has_text(shown_of({first, second, third}, {.runs_after = 999}), "left"))
      << "none has run that would tell";
}

TEST_F(LaunchTest, TheTimeLimitEndsARun) {
  LaunchOptions options = quiet_;
  options.run_limit_seconds = patience(0.2);  // the script has to begin
  options.grace_seconds = 0.2;
  const LaunchResult result =
      launch({script("trap '' TERM; while true; do sleep 0.05; done")}, options).at(0);
  EXPECT_EQ(result.outcome, Outcome::failed);
  EXPECT_TRUE(has_text(result.reason, "limit"));
  options.grace_seconds = kHangSeconds;
  const LaunchResult asked =
      launch({script("trap 'echo go on; exit 75' TERM; while true; do sleep 0.05; done")}, options)
          .at(0);
  EXPECT_TRUE(asked.reason.starts_with("it ran into the limit of ") &&
              asked.reason.ends_with(" s, exit code 75"))
      << asked.reason;
}

TEST_F(LaunchTest, AStopSignalReachesTheRunningChildAndStartsNoOther) {
  std::jthread stopper([this] {
    while (!fs::exists(root_ / "n1/ready"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    kill(getpid(), SIGTERM);
  });
  const std::string wait =
      "trap 'echo asked to stop; exit 75' TERM; touch \"$0/ready\"; while true; do sleep 0.02; "
      "done";
  const auto results = launch({script(wait), script(record("done", 2), 2)}, quiet_);
  EXPECT_EQ(results.at(0).outcome, Outcome::stopped);
  EXPECT_EQ(text_of(results[0].run.directory + "/console.log"), "asked to stop\n");
  EXPECT_EQ(results.at(1).outcome, Outcome::stopped);
  EXPECT_FALSE(fs::exists(results[1].run.directory));
}

TEST_F(LaunchTest, AFullDiskForTheConsoleDoesNotEndTheRun) {
  Console console("/dev/full", "");
  testing::internal::CaptureStderr();
  console.take("one\ntw");
  console.take("o\n");
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(console.last_lines(), (std::vector<std::string>{"one", "two"}));
  const size_t first = message.find("/dev/full: cannot be written");
  EXPECT_NE(first, std::string::npos) << message;
  EXPECT_EQ(message.find("/dev/full", first + 1), std::string::npos) << "said once: " << message;
}

TEST_F(LaunchTest, AnUnfinishedRunOfAnotherConfigurationIsSetAsideWithAWarning) {
  const PlannedRun run = script("test -z \"$1\" && " + record("done"));
  leave_unfinished(run);
  const LaunchOptions options = comparing({{"run.seed", "3"}}, {{"run.seed", "5"}});
  testing::internal::CaptureStderr();
  const LaunchResult result = launch({run}, options).at(0);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.outcome, Outcome::finished);
  EXPECT_EQ(result.earlier_attempts, 1);
  EXPECT_TRUE(has_text(message, "run.seed: 3 there, 5 now"));
}

TEST_F(LaunchTest, AnUnfinishedRunWithoutASoundCheckpointIsSetAsideWithAWarning) {
  const PlannedRun run = script("test -z \"$1\" && " + record("done"));
  leave_unfinished(run);
  LaunchOptions options = quiet_;
  options.sound = [&](const std::string& directory) { return directory != run.directory; };
  testing::internal::CaptureStderr();
  const LaunchResult result = launch({run}, options).at(0);
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result.outcome, Outcome::finished);
  EXPECT_EQ(result.earlier_attempts, 1);
  EXPECT_TRUE(fs::exists(run.directory + ".attempt-1/checkpoints/step_0000001"));
  EXPECT_TRUE(has_text(message, "none of the checkpoints"));
}

TEST_F(LaunchTest, AnUnfinishedRunGoesOnWhereTrainingLetsTheKeyChange) {
  const std::string resumed = "test \"$1\" = --resume && ";
  for (const char* key : {"run.threads", "run.output_dir"}) {
    const PlannedRun run = script(resumed + record("done"));
    leave_unfinished(run);
    const LaunchOptions options = comparing({{key, "3"}}, {{key, "5"}});
    testing::internal::CaptureStderr();
    const LaunchResult result = launch({run}, options).at(0);
    const std::string message = testing::internal::GetCapturedStderr();
    EXPECT_EQ(result.outcome, Outcome::finished) << key;
    EXPECT_EQ(result.earlier_attempts, 0) << key;
    EXPECT_EQ(message.find("it goes on") != std::string::npos, key == std::string("run.threads"))
        << message;
  }
}

TEST(StopSignals, AnIgnoredHangupStaysIgnored) {
  const auto before = signal(SIGHUP, SIG_IGN);
  {
    const StopSignals signals;
    raise(SIGHUP);
    EXPECT_EQ(StopSignals::count(), 0);
    raise(SIGTERM);
    EXPECT_EQ(StopSignals::count(), 1);
  }
  EXPECT_EQ(signal(SIGHUP, before), SIG_IGN);
}

TEST_F(LaunchTest, CollectFindsRecordsButNotSetAsideAttempts) {
  launch({script(record("done")), script(record("failed", 2), 2)}, quiet_);
  fs::create_directories(root_ / "n1.attempt-1");
  fs::copy(root_ / "n1/record.jsonl", root_ / "n1.attempt-1/record.jsonl");
  const auto runs = collect_directory(root_.string());
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(runs[0].usable());
  EXPECT_TRUE(has_text(runs[1].failure, "failed"));
  fs::create_directories(root_ / "empty");
  EXPECT_THROW(collect_directory((root_ / "empty").string()), IoError);
}

}  // namespace
}  // namespace tutti::study
