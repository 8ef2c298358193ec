#include "tutti/trace/record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/trace/csv.h"

namespace tutti::trace {
namespace {

class RecordTest : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return (directory_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }
  std::string error_of(const std::string& name) const {
    return message_of<IoError>([&] { read_run(file(name)); });
  }
  const ScratchDirectory scratch_;
  const std::filesystem::path directory_ = scratch_.path();
};

const char* kStart = R"({"schema":1,"event":"run_start","time":1,"run_id":"r","ranks":2})"
                     "\n";

TEST_F(RecordTest, EveryEventComesBackAsItWasWritten) {
  {
    RunRecord record(file("r.jsonl"));
    record.append(RunStart{.time = 86400,
                           .run_id = "abc",
                           .model = "resnet44",
                           .ranks = 4,
                           .validation_samples = 500,
                           .data_nodes = 2,
                           .hosts = {"n1", "n2"},
                           .seed = 0xFFFFFFFFFFFFFFFFull,
                           .flop_per_sample = 3e8,
                           .device = "cuda",
                           .device_name = "H100",
                           .device_memory_bytes = int64_t{80} << 30,
                           .metric = "mae",
                           .higher_is_better = false,
                           .target = Target{"mae", 0.124, false}});
    record.append(
        StepRecord{.epoch = 1, .step = 10, .loss = 2.3025850929940457, .comm_exposed_ms = 0.5});
    record.append(ArrivalsRecord{.step = 10,
                                 .steps = 9,
                                 .ranks = {3, 0},
                                 .last = {8, 1},
                                 .late_ms = {12.25, 0.5},
                                 .clock_error_ms = 0.125,
                                 .waited_ms = 2.5,
                                 .waited_for_late_ms = 2.25,
                                 .straggler = 3});
    record.append(MachineRecord{
        .epoch = 1, .step = 20, .seconds = 13, .other_work = 0.4, .steal = 0.1, .load = 2.5});
    record.append(EpochRecord{.epoch = 1, .step = 20, .seconds = 12.5, .partial = true});
    record.append(EvalRecord{.epoch = 1.5,
                             .step = 30,
                             .accuracy = 0.75,
                             .metrics = {{"mae", 0.1}},
                             .wall_seconds = 20,
                             .train_seconds = 18});
    TestRecord test;
    test.step = 30;
    test.weights_step = 20;
    test.accuracy = 0.5;
    test.metrics["top5"] = 0.75;
    record.append(test);
    record.append(CheckpointRecord{
        .epoch = 1, .step = 20, .path = "step_000020", .bytes = 1 << 20, .seconds = 0.25});
    record.append(TargetReached{
        .epoch = 1.5, .step = 30, .wall_seconds = 20, .train_seconds = 18, .value = 0.1});
    record.append(RunStop{.status = RunStatus::requeue,
                          .reason = "SIGTERM",
                          .error = "IoError",
                          .epochs = 1.5,
                          .steps = 30,
                          .device_joules = 1234});
  }
  const RunLog log = read_run(file("r.jsonl"));
  EXPECT_EQ(log.start.time_iso, "1970-01-02T00:00:00Z");
  EXPECT_EQ(log.start.model, "resnet44");
  EXPECT_EQ(log.start.hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(log.start.seed, 0xFFFFFFFFFFFFFFFFull);
  EXPECT_EQ(log.start.metric, "mae");
  EXPECT_FALSE(log.start.higher_is_better);
  ASSERT_TRUE(log.start.target);
  EXPECT_EQ(log.start.target->metric, "mae");
  EXPECT_TRUE(log.start.target->reached_by(0.12));
  EXPECT_FALSE(log.start.target->reached_by(0.13));
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].loss, 2.3025850929940457);
  EXPECT_TRUE(std::isnan(log.steps[0].lr));
  EXPECT_GT(log.steps[0].time, 1e9);
  ASSERT_EQ(log.arrivals.size(), 1u);
  EXPECT_EQ(log.arrivals[0].ranks, (std::vector<int>{3, 0}));
  EXPECT_EQ(log.arrivals[0].last, (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(log.arrivals[0].late_ms, (std::vector<double>{12.25, 0.5}));
  EXPECT_EQ(log.arrivals[0].clock_error_ms, 0.125);
  EXPECT_EQ(log.arrivals[0].waited_ms, 2.5);
  EXPECT_EQ(log.arrivals[0].waited_for_late_ms, 2.25);
  EXPECT_EQ(log.arrivals[0].straggler, 3);
  ASSERT_EQ(log.machine.size(), 1u);
  EXPECT_EQ(log.machine[0].seconds, 13);
  EXPECT_EQ(log.machine[0].other_work, 0.4);
  EXPECT_EQ(log.machine[0].steal, 0.1);
  EXPECT_TRUE(std::isnan(log.machine[0].throttled));
  EXPECT_EQ(log.machine[0].load, 2.5);
  ASSERT_EQ(log.epochs.size(), 1u);
  EXPECT_TRUE(log.epochs[0].partial);
  EXPECT_EQ(log.epochs[0].seconds, 12.5);
  ASSERT_EQ(log.evals.size(), 1u);
  EXPECT_EQ(log.evals[0].value("accuracy"), 0.75);
  EXPECT_EQ(log.evals[0].value("mae"), 0.1);
  EXPECT_TRUE(std::isnan(log.evals[0].value("iou")));
  ASSERT_TRUE(log.test);
  EXPECT_EQ(log.test->weights_step, 20);
  EXPECT_EQ(log.test->accuracy, 0.5);
  EXPECT_EQ(log.test->value("top5"), 0.75);
  EXPECT_EQ(log.start.validation_samples, 500);
  EXPECT_EQ(log.start.data_nodes, 2);
  EXPECT_EQ(log.checkpoints.at(0).bytes, 1 << 20);
  EXPECT_EQ(log.target_reached->train_seconds, 18);
  ASSERT_TRUE(log.stop);
  EXPECT_EQ(log.stop->status, RunStatus::requeue);
  EXPECT_EQ(log.stop->reason, "SIGTERM");
  EXPECT_EQ(log.stop->error, "IoError");
  EXPECT_EQ(log.stop->device_joules, 1234);
  EXPECT_FALSE(log.stop->device_peak_bytes);
  EXPECT_EQ(log.start.device, "cuda");
  EXPECT_EQ(log.start.device_name, "H100");
  EXPECT_EQ(log.start.device_memory_bytes, int64_t{80} << 30);
  EXPECT_FALSE(log.truncated);
}

TEST_F(RecordTest, InfiniteAndNanBecomeNull) {
  {
    RunRecord record(file("r.jsonl"));
    record.append(RunStart{});
    record.append(StepRecord{.step = 1, .loss = INFINITY});
  }
  std::stringstream text;
  text << std::ifstream(file("r.jsonl")).rdbuf();
  EXPECT_TRUE(has_text(text.str(), "\"loss\":null"));
  EXPECT_TRUE(std::isnan(read_run(file("r.jsonl")).steps.at(0).loss));
}

TEST_F(RecordTest, UnknownFieldsAndEventsArePassedOver) {
  write("r.jsonl", std::string(kStart) + R"({"schema":1,"event":"power","watt":3})" + "\n" +
                       R"({"schema":1,"event":"step","step":5,"colour":"red"})" + "\n");
  EXPECT_EQ(read_run(file("r.jsonl")).steps.at(0).step, 5);
}

TEST_F(RecordTest, ACutLastLineIsLeftOutAndNoted) {
  write("r.jsonl", std::string(kStart) + R"({"schema":1,"event":"step","st)");
  const RunLog log = read_run(file("r.jsonl"));
  EXPECT_TRUE(log.truncated);
  EXPECT_TRUE(log.steps.empty());
  EXPECT_FALSE(log.stop);
}

TEST_F(RecordTest, ErrorsNameFileAndLine) {
  write("broken.jsonl", std::string(kStart) + "{\"schema\":1,\n" + kStart);
  EXPECT_TRUE(has_text(error_of("broken.jsonl"), "broken.jsonl:2: not JSON"));
  write("type.jsonl", std::string(kStart) + R"({"schema":1,"event":"step","step":"five"})" + "\n");
  EXPECT_TRUE(has_text(error_of("type.jsonl"), "type.jsonl:2:"));
  write("status.jsonl",
        std::string(kStart) + R"({"schema":1,"event":"run_stop","status":"great"})" + "\n");
  EXPECT_TRUE(has_text(error_of("status.jsonl"), "unknown status 'great'"));
  write("newer.jsonl", std::string(R"({"schema":2,"event":"run_start"})") + "\n");
  EXPECT_TRUE(has_text(error_of("newer.jsonl"), "newer"));
  write("nostart.jsonl", std::string(R"({"schema":1,"event":"step","step":1})") + "\n");
  EXPECT_TRUE(has_text(error_of("nostart.jsonl"), ":1: event 'step' before run_start"));
  write("empty.jsonl", "");
  EXPECT_TRUE(has_text(error_of("empty.jsonl"), "no run_start"));
  EXPECT_TRUE(has_text(error_of("absent.jsonl"), "absent.jsonl"));
}

TEST_F(RecordTest, ResumeCutsTheHalfLineAndVoidsWhatIsComputedAgain) {
  {
    RunRecord record(file("r.jsonl"));
    record.append(RunStart{.run_id = "first"});
    for (const int64_t step : {10, 20, 30}) record.append(StepRecord{.step = step, .loss = 1});
    record.append(TargetReached{.step = 30});
    record.append(RunStop{.status = RunStatus::requeue});
  }
  std::ofstream(file("r.jsonl"), std::ios::app) << R"({"schema":1,"event":"st)";
  {
    RunRecord record(file("r.jsonl"), RunRecord::Open::resume);
    record.append(RunStart{.run_id = "second", .resume_step = 20});
    record.append(StepRecord{.step = 30, .loss = 2});
    record.append(RunStop{.status = RunStatus::done});
  }
  const RunLog log = read_run(file("r.jsonl"));
  EXPECT_EQ(log.resumes, 1);
  EXPECT_EQ(log.start.run_id, "first");
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[2].loss, 2);
  EXPECT_FALSE(log.target_reached);
  EXPECT_EQ(log.stop->status, RunStatus::done);
}

TEST_F(RecordTest, AResumeWithAnotherTargetHasThatOne) {
  const Target first{"accuracy", 0.5, true}, second{"accuracy", 0.9, true};
  {
    RunRecord record(file("r.jsonl"));
    record.append(RunStart{.target = first});
    record.append(TargetReached{.step = 10});
    record.append(RunStart{.resume_step = 10, .target = second});
    record.append(TargetReached{.step = 30});
  }
  const RunLog log = read_run(file("r.jsonl"));
  EXPECT_EQ(log.start.target->value, 0.9);
  EXPECT_EQ(log.target_reached->step, 30);
}

TEST_F(RecordTest, DamagedLinesDoNotCostTheOthers) {
  const auto step = [](int number) {
    return fmt::format("{{\"schema\":1,\"event\":\"step\",\"step\":{}}}\n", number);
  };
  write("r.jsonl", "damaged\n" + step(1) + "{\"schema\":1,\n" + step(2) + step(3) +
                       R"({"schema":1,"event":"run_start","resume_step":2})" + "\n" + step(3) +
                       R"({"schema":1,"event":"step","step":"four"})" + "\n");
  EXPECT_THROW(read_run(file("r.jsonl")), IoError);
  const Readable found = read_readable(file("r.jsonl"));
  EXPECT_EQ(found.passed_over, 3);
  ASSERT_EQ(found.log.steps.size(), 3u);
  for (const size_t i : {0, 1, 2}) EXPECT_EQ(found.log.steps[i].step, static_cast<int64_t>(i + 1));
  EXPECT_THROW(read_readable(file("absent.jsonl")), IoError);
}

TEST_F(RecordTest, AFullDiskIsAnIoErrorThatNamesTheFile) {
  RunRecord record("/dev/full", RunRecord::Open::create);
  EXPECT_TRUE(throws<IoError>({"/dev/full"}, [&] { record.append(StepRecord{}); }));
  EXPECT_THROW(RunRecord("/no/such/directory/r.jsonl"), IoError);
}

TEST_F(RecordTest, GoesOnWhileItsPathCannotBeLookedAt) {
  const auto folder = directory_ / "run";
  std::filesystem::create_directory(folder);
  RunRecord record(folder / "r.jsonl");
  std::filesystem::rename(folder, directory_ / "kept");
  std::filesystem::create_symlink(folder, folder);  // ELOOP, like ESTALE of a server that is away
  record.append(StepRecord{.step = 7});
  std::string line;
  std::getline(std::ifstream(directory_ / "kept/r.jsonl"), line);
  EXPECT_TRUE(has_text(line, "\"step\":7"));
}

TEST_F(RecordTest, ARemovedMovedOrReplacedFolderIsAnIoError) {
  const auto folder = directory_ / "run";
  const auto says_so = [&](RunRecord& record) {
    return throws<IoError>({"run/r.jsonl: is not there any more"},
                           [&] { record.append(StepRecord{}); });
  };
  for (const char* what : {"removed", "moved", "replaced"}) {
    std::filesystem::create_directory(folder);
    RunRecord record(folder / "r.jsonl");
    EXPECT_FALSE(says_so(record));
    std::filesystem::rename(folder, directory_ / what);
    if (what == std::string("removed")) std::filesystem::remove_all(directory_ / what);
    if (what == std::string("replaced")) {
      std::filesystem::create_directory(folder);
      write("run/r.jsonl", kStart);
    }
    EXPECT_TRUE(says_so(record)) << what;
  }
}

TEST_F(RecordTest, CsvHasOneColumnPerFieldAndEmptyCellsForUnmeasured) {
  RunLog log;
  log.epochs.push_back({.time = 1, .epoch = 1, .step = 20, .seconds = 2.5});
  EXPECT_EQ(epochs_csv(log),
            "time,epoch,step,seconds,train_loss,samples_per_s,compute_seconds,comm_exposed_seconds,"
            "data_wait_seconds,"
            "other_seconds,grad_norm,virtual_seconds,virtual_waiting_seconds,partial\n"
            "1.000,1,20,2.5,,,,,,,,,,0\n");
  EvalRecord first{.time = 1, .epoch = 1, .accuracy = 0.5}, second{.time = 2, .epoch = 2};
  second.metrics["mae"] = 0.25;
  log.evals = {first, second};
  EXPECT_EQ(evals_csv(log),
            "time,epoch,step,samples,accuracy,loss,seconds,wall_seconds,train_seconds,"
            "virtual_seconds,mae\n"
            "1.000,1,0,0,0.5,,,0,0,,\n2.000,2,0,0,,,,0,0,,0.25\n");
  write_csv(log, directory_.string());
  EXPECT_TRUE(std::filesystem::exists(file("steps.csv")));
  EXPECT_THROW(write_csv(log, file("nowhere")), IoError);
}

TEST_F(RecordTest, CsvGrowsWithTheRunAndGoesOnAfterAResume) {
  const auto text = [&](const char* name) {
    std::ifstream stream(file(name));
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  RunLog log;
  log.steps = {{.time = 1, .epoch = 1, .step = 1, .loss = 2}};
  {
    CsvFiles csv({}, directory_.string());
    EXPECT_EQ(text("steps.csv"), steps_csv({}));
    csv.add(log.steps[0]);
    EXPECT_EQ(text("steps.csv"), steps_csv(log)) << "before the run has ended";
    EvalRecord eval{.time = 2, .epoch = 1, .accuracy = 0.5};
    eval.metrics["mae"] = 0.25;
    csv.add(eval);
    log.evals = {eval};
    EXPECT_EQ(text("evals.csv"), evals_csv(log));
  }
  CsvFiles resumed(log, directory_.string());
  log.steps.push_back({.time = 3, .epoch = 1, .step = 2, .loss = 1});
  log.evals.push_back({.time = 4, .epoch = 2});
  resumed.add(log.steps.back());
  resumed.add(log.evals.back());
  EXPECT_EQ(text("steps.csv"), steps_csv(log));
  EXPECT_EQ(text("evals.csv"), evals_csv(log));
}

TEST_F(RecordTest, AFailureAfterAHalfLineOfAFullDiskStandsOnALineOfItsOwn) {
  write("f.jsonl", std::string(kStart) + R"({"schema":1,"event":"st)");
  RunRecord::append_failure(file("f.jsonl"), {.reason = "no space", .steps = 7});
  const RunLog log = read_run(file("f.jsonl"));
  EXPECT_TRUE(log.truncated);
  ASSERT_TRUE(log.stop);
  EXPECT_EQ(log.stop->reason, "no space");
  RunRecord(file("f.jsonl"), RunRecord::Open::resume).append(RunStart{.resume_step = 5});
  EXPECT_EQ(read_run(file("f.jsonl")).resumes, 1);

  // Only a failure explains a half line; anything else after it is damage.
  write("g.jsonl", std::string(kStart) + "{\"schema\"\n" + kStart);
  EXPECT_TRUE(has_text(error_of("g.jsonl"), "g.jsonl:2: not JSON"));
}

TEST_F(RecordTest, AFailureIsTheLastLineAndItsFirstCauseCounts) {
  RunRecord::append_failure(file("none.jsonl"), {.reason = "no such file: no harm"});
  EXPECT_FALSE(std::filesystem::exists(file("none.jsonl")));
  RunRecord record(file("f.jsonl"));
  record.append(RunStart{.run_id = "20240501-120000-7f3a9c"});
  EXPECT_EQ(read_run_id(file("f.jsonl")), "20240501-120000-7f3a9c");
  EXPECT_EQ(read_run_id(file("none.jsonl")), "");
  RunRecord::append_failure(file("f.jsonl"), {.reason = "the loss is NaN", .steps = 7});
  RunRecord::append_failure(file("f.jsonl"), {.reason = "another rank has given up"});
  const RunLog log = read_run(file("f.jsonl"));
  ASSERT_TRUE(log.stop);
  EXPECT_EQ(log.stop->status, RunStatus::failed);
  EXPECT_EQ(log.stop->reason, "the loss is NaN");
  EXPECT_EQ(log.stop->steps, 7);
  EXPECT_NE(make_run_id(0), make_run_id(0));
}

}  // namespace
}  // namespace tutti::trace
