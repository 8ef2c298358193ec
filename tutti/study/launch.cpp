#include "tutti/study/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/log.h"
#include "tutti/base/own_file.h"
#include "tutti/base/shell.h"
#include "tutti/study/child.h"
#include "tutti/study/collect.h"
#include "tutti/study/console.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kInterruptGrace{5};

struct Ended {
  int status = 0;
  double seconds = 0;
  bool timed_out = false, stopped = false;
};

/// Waits for the child. Passes its output and stop signals on and enforces the time limit. Calls
/// `tick` several times a second.
Ended follow(Child& child, Console& console, const LaunchOptions& options,
             const std::function<void(double seconds)>& tick) {
  Ended end;
  const auto start = Clock::now();
  Clock::time_point kill_at = Clock::time_point::max();
  const auto grace = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options.grace_seconds));
  bool open = true;
  std::array<char, 4096> bytes;
  for (bool alive = true; alive || open;) {
    pollfd wait{open ? child.output() : -1, POLLIN, 0};
    // After the child's end, further output comes from a grandchild that outlived it: take what is
    // there, but do not wait for more.
    const int ready = poll(&wait, 1, alive ? 100 : 0);
    if (ready > 0) {
      const ssize_t count = read(child.output(), bytes.data(), bytes.size());
      if (count > 0) console.take({bytes.data(), static_cast<size_t>(count)});
      if (count == 0) open = false;
    } else if (!alive) {
      break;
    }
    alive = alive && !child.ended(end.status);
    const auto now = Clock::now();
    end.seconds = std::chrono::duration<double>(now - start).count();
    if (StopSignals::count() > 0 && !end.stopped) {
      end.stopped = true;
      child.ask_to_stop();
      kill_at = now + grace;
    }
    if (StopSignals::count() > 1) {  // asked twice: end at once
      // The ranks of a killed run would go on, so interrupt it instead.
      child.interrupt();
      kill_at = std::min(kill_at, now + kInterruptGrace);
    }
    if (options.run_limit_seconds > 0 && end.seconds > options.run_limit_seconds &&
        !end.timed_out) {
      end.timed_out = true;
      child.ask_to_stop();
      kill_at = std::min(kill_at, now + grace);
    }
    if (now >= kill_at) child.kill_group();
    if (alive) tick(end.seconds);
  }
  console.end();
  return end;
}

std::string listed(const std::vector<Difference>& keys) {
  std::vector<std::string> texts;
  for (const Difference& key : keys) texts.push_back(key.text());
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// Only the study chooses run.threads, from the cores that it may use, so a difference does not
/// come from a user: the job was requeued to another node.
std::string threads_advice(const std::vector<Difference>& keys) {
  for (const Difference& key : keys)
    if (key.key == "run.threads")
      return fmt::format("--threads {} takes as many threads a rank as then; ", key.there);
  return "";
}

void show_failure(const LaunchResult& result, const Console& console) {
  std::fputs(fmt::format("  its log {} ends with:\n", console.path()).c_str(), stderr);
  for (const std::string& line : console.last_lines())
    std::fputs(fmt::format("    {}\n", line).c_str(), stderr);
  std::fflush(stderr);
  log::debug("{}: {}", result.run.directory, result.reason);
}

/// Returns the order in which runs are started, as indices: those that failed before come last.
std::vector<size_t> turns(const std::vector<PlannedRun>& runs) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_partition(order, [&](size_t i) { return !has_failed(runs[i].directory); });
  return order;
}

class Launcher {
 public:
  Launcher(const std::vector<PlannedRun>& runs, const LaunchOptions& options)
      : runs_(runs), options_(options), display_(options.display, runs),
        left_(options.runs_after +
              static_cast<size_t>(std::ranges::count_if(
                  runs, [](const PlannedRun& run) { return !is_finished(run.directory); }))) {}

  LaunchResult handle(size_t index) {
    const PlannedRun& run = runs_[index];
    LaunchResult result{run};
    if (StopSignals::count() > 0) {
      result.outcome = Outcome::stopped;
      result.reason = "not started: the study was asked to stop";
      result.earlier_attempts = count_attempts(run.directory);
    } else if (is_finished(run.directory)) {
      result.outcome = Outcome::kept;
      result.earlier_attempts = count_attempts(run.directory);
      display_.finish(index, "kept from before: " + result_of(run));
    } else {
      run_now(index, result);
    }
    return result;
  }

 private:
  std::string result_of(const PlannedRun& run) const {
    return result_text(read_measured(run.directory + "/" + trace::kRecordFile), options_.target);
  }

  /// Whether the run in the folder is continued; reports it if that may surprise.
  bool goes_on(const PlannedRun& run) const {
    if (!is_resumable(run.directory)) return false;
    const auto keys = changed(run, options_);
    const bool same_results = std::ranges::none_of(
        keys, [](const Difference& key) { return key.rule == OnChange::begins_anew; });
    if (!keys.empty())
      log::warn("{}: the unfinished run there had another configuration ({}); {}", run.directory,
                listed(keys),
                same_results ? "it goes on, and what it measures is of both"
                             : "it is set aside, and the run begins anew");
    if (!same_results) return false;
    // Training would refuse to start from the beginning here, at every start of the study.
    const bool sound = !options_.sound || options_.sound(run.directory);
    if (!sound)
      log::warn(
          "{}: none of the checkpoints of the unfinished run there is valid; it is set aside, and "
          "the run begins anew",
          run.directory);
    return sound;
  }

  /// Prepares the folder and returns the command to run there.
  std::vector<std::string> prepare(const PlannedRun& run) const {
    std::vector<std::string> command = run.command;
    if (goes_on(run))
      command.push_back("--resume");
    else
      set_aside(run.directory);
    std::error_code failed;
    fs::create_directories(run.directory, failed);
    if (failed)
      throw IoError(
          fmt::format("{}: cannot create the directory: {}", run.directory, failed.message()));
    output_stream(run.directory + "/" + kCommandFile) << shell_line(command) << '\n';
    return command;
  }

  /// Estimates the time of the remaining runs from the mean of those before.
  std::string left_text() const {
    if (left_ == 0) return "";
    const double seconds = seconds_ / static_cast<double>(ran_) * static_cast<double>(left_);
    constexpr double kMinute = 60, kHour = 3600;
    return seconds < 2 * kMinute ? fmt::format(", about {:.0f} s left", seconds)
           : seconds < 2 * kHour ? fmt::format(", about {:.0f} min left", seconds / kMinute)
                                 : fmt::format(", about {:.1f} h left", seconds / kHour);
  }

  void run_now(size_t index, LaunchResult& result) {
    const PlannedRun& run = runs_[index];
    const auto command = prepare(run);
    result.earlier_attempts = count_attempts(run.directory);
    log::debug("{}", shell_line(command));
    Console console(run.directory + "/" + kConsoleFile,
                    options_.show_output
                        ? fmt::format("{} ranks, repeat {}", run.size().text(), run.repeat)
                        : "");
    Child child(command);
    RecordTail record(run.directory + "/" + trace::kRecordFile);
    const Ended end = follow(child, console, options_, [&](double seconds) {
      record.read();
      display_.update(index, fmt::format("{}, {:.0f} s", record.text(options_.epochs), seconds));
    });
    judge(end, console, result);
    const std::string took = fmt::format("{:.1f} s in all", end.seconds);
    --left_;
    switch (result.outcome) {
      case Outcome::finished:
        seconds_ += end.seconds;
        ++ran_;
        display_.finish(index, result_of(run) + "; " + took + left_text());
        break;
      case Outcome::stopped: display_.finish(index, result.reason + "; " + took); break;
      default: display_.finish(index, "failed: " + result.reason); show_failure(result, console);
    }
  }

  void judge(const Ended& end, const Console& console, LaunchResult& result) const {
    if (is_finished(result.run.directory)) {
      result.outcome = Outcome::finished;
    } else if (end.stopped) {
      result.outcome = Outcome::stopped;
      result.reason = "stopped: the study was asked to stop";
    } else {
      result.outcome = Outcome::failed;
      if (end.timed_out)
        result.reason = fmt::format("it ran into the limit of {} s, ", options_.run_limit_seconds);
      result.reason += describe_status(end.status);
      // The last line after a stop signal is not the reason of the end.
      if (!end.timed_out && !console.cause().empty()) result.reason += ": " + console.cause();
    }
  }

  const std::vector<PlannedRun>& runs_;
  const LaunchOptions& options_;
  StudyDisplay display_;
  size_t left_ = 0, ran_ = 0;  // runs to start, and runs finished in this start
  double seconds_ = 0;         // time of the finished ones
};

}  // namespace

std::vector<LaunchResult> launch(const std::vector<PlannedRun>& runs,
                                 const LaunchOptions& options) {
  refuse_changed(runs, options);
  const StopSignals signals;
  Launcher launcher(runs, options);
  std::vector<LaunchResult> results(runs.size());
  for (const size_t index : turns(runs)) results[index] = launcher.handle(index);
  return results;
}

void refuse_changed(const std::vector<PlannedRun>& runs, const LaunchOptions& options) {
  std::string first, advice;
  int others = -1;
  for (const PlannedRun& run : runs) {
    if (!is_finished(run.directory)) continue;
    const auto keys = changed(run, options);
    if (keys.empty()) continue;
    if (++others > 0) continue;
    first =
        fmt::format("{} was finished with another configuration ({})", run.directory, listed(keys));
    advice = threads_advice(keys);
  }
  if (others < 0) return;
  throw ConfigError(
      fmt::format("{}{}. {}--fresh runs everything again and keeps the earlier runs aside; another "
                  "--output-dir leaves them alone; --collect reports them as they are",
                  first, others ? fmt::format(", and so were {} more", others) : "", advice));
}

std::vector<Difference> changed(const PlannedRun& run, const LaunchOptions& options) {
  const std::string path = run.directory + "/" + kResolvedFile;
  if (!options.wanted || !options.found) return {};
  if (!is_there(path)) return {{kResolvedFile, "absent", "wanted"}};
  return differences(options.found(path), options.wanted(run), options.rule);
}

}  // namespace tutti::study
