#include "tutti/study/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/shell.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

/// Returns why a run's numbers may not be used; empty if they may.
std::string unfinished(const trace::RunLog& log) {
  if (!log.stop) return "its record has no run_stop: it was killed or still runs";
  if (log.stop->status == trace::RunStatus::done ||
      log.stop->status == trace::RunStatus::target_missed)
    return "";
  if (log.stop->status == trace::RunStatus::requeue) return "stopped early, with a checkpoint";
  return log.stop->reason.empty() ? "its record says that it failed" : log.stop->reason;
}

/// Returns a replay's record as the described machine would have written it: replicas become ranks,
/// and times the virtual ones. Returns other records unchanged.
trace::RunLog as_on_machine(trace::RunLog log) {
  trace::RunStart& start = log.start;
  if (start.replayed_on.empty()) return log;
  start.ranks = start.replicas;
  start.threads_per_rank = 1;
  start.cores_per_host = 0;
  start.oversubscribed = false;
  start.machine = start.replayed_on;
  log.steps.clear();  // their times are of the machine at hand
  log.arrivals.clear();
  log.machine.clear();
  for (trace::EpochRecord& epoch : log.epochs) {
    epoch.seconds = epoch.virtual_seconds;
    epoch.comm_exposed_seconds = epoch.virtual_waiting_seconds;
    epoch.compute_seconds = epoch.virtual_seconds - epoch.virtual_waiting_seconds;
    epoch.data_wait_seconds = epoch.other_seconds = 0;
    epoch.samples_per_s = static_cast<double>(start.train_samples) / epoch.virtual_seconds;
  }
  // If a run ends within its first epoch, the last evaluation gives its speed.
  if (log.epochs.empty() && !log.evals.empty()) {
    const trace::EvalRecord& last = log.evals.back();
    log.steps.push_back({.step = last.step,
                         .samples_per_s = last.epoch * static_cast<double>(start.train_samples) /
                                          last.virtual_seconds});
  }
  for (trace::EvalRecord& eval : log.evals)
    eval.seconds = 0, eval.wall_seconds = eval.train_seconds = eval.virtual_seconds;
  return log;
}

RunSummary read_summary(const std::string& path) {
  RunSummary run;
  try {
    run.log = read_measured(path);
    run.failure = unfinished(run.log);
    run.stopped = run.log.stop && run.log.stop->status == trace::RunStatus::requeue;
  } catch (const IoError& error) {
    run.log.path = path;
    run.failure = error.what();
  }
  return run;
}

std::vector<std::string> records_below(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code unknown;  // paths that cannot be examined are not folders to leave out
    if (at->is_directory(unknown) &&
        at->path().filename().string().find(".attempt-") != std::string::npos)
      at.disable_recursion_pending();
    else if (at->path().filename() == trace::kRecordFile)
      paths.push_back(at->path().string());
  }
  if (failed) throw IoError(fmt::format("{}: {}", directory, failed.message()));
  return paths;
}

/// Lists the records of the runs of the study in `directory`; other runs below its folder are not
/// part of it.
std::vector<std::string> records_of_study(const std::string& directory) {
  std::vector<std::string> paths;
  for (const RunFolder& run : study_runs(directory))
    if (const std::string path = run.path + "/" + trace::kRecordFile; is_there(path))
      paths.push_back(path);
  return paths;
}

}  // namespace

trace::RunLog read_measured(const std::string& path) {
  return as_on_machine(trace::read_run(path));
}

std::vector<RunSummary> collect(const std::vector<LaunchResult>& launched) {
  std::vector<RunSummary> runs;
  for (const LaunchResult& result : launched) {
    const std::string path = result.run.directory + "/" + trace::kRecordFile;
    RunSummary run;
    run.log.path = path;
    if (result.outcome == Outcome::finished || result.outcome == Outcome::kept || is_there(path))
      run = read_summary(path);
    if (result.outcome == Outcome::failed || result.outcome == Outcome::stopped)
      run.failure = result.reason;
    run.stopped = result.outcome == Outcome::stopped;
    if (run.usable() && run.size() != result.run.size())
      run.failure = fmt::format("{} says {} ranks, {} were asked for", path, run.size().text(),
                                result.run.size().text());
    run.log.start.ranks = result.run.ranks;
    run.log.start.spatial = result.run.spatial;
    run.log.start.seed = result.run.seed;
    if (run.log.start.command.empty()) run.log.start.command = shell_line(result.run.command);
    run.repeat = result.run.repeat;
    run.earlier_attempts = result.earlier_attempts;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<RunSummary> collect_directory(const std::string& directory) {
  std::vector<std::string> paths = records_of_study(directory);
  if (paths.empty()) {
    if (!is_there(directory))
      throw IoError(
          fmt::format("there is no folder {}; --collect needs --output-dir FOLDER, the folder in "
                      "which a study or the runs to compare lie",
                      directory));
    if (is_there(directory + "/" + trace::kRecordFile))
      throw ConfigError(
          fmt::format("'{}' holds a single run of 'tutti train' and no study: give --collect the "
                      "folder in which a study or the runs to compare lie",
                      directory));
    paths = records_below(directory);
  }
  if (paths.empty())
    throw IoError(
        fmt::format("{}: no {} below it; where are the runs?", directory, trace::kRecordFile));
  std::ranges::sort(paths);
  std::vector<RunSummary> runs;
  std::map<Size, int> repeats;
  for (const std::string& path : paths) {
    runs.push_back(read_summary(path));
    runs.back().repeat = ++repeats[runs.back().size()];
    runs.back().earlier_attempts = count_attempts(fs::path(path).parent_path().string());
  }
  return runs;
}

}  // namespace tutti::study
