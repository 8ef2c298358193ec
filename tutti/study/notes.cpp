#include "tutti/study/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/study/describe.h"

namespace tutti::study {
namespace {

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Notes for each kind of disturbance which runs had it, and how much.
void note_machine(StudyResult& result) {
  for (const trace::Disturbance& kind : trace::disturbances()) {
    std::vector<std::string> runs;
    double most = 0;
    int usable = 0;
    for (const RunSummary& run : result.runs) {
      usable += run.usable();
      if (!run.usable() || !(run.machine.*kind.share >= kind.least)) continue;
      most = std::max(most, run.machine.*kind.share);
      runs.push_back(fmt::format("{}{}: {}", run.size().words(),
                                 run.repeat ? fmt::format(", repeat {}", run.repeat) : "",
                                 percent(run.machine.*kind.share)));
    }
    if (runs.empty()) continue;
    const std::string share = (runs.size() > 1 ? "up to " : "") + percent(most);
    result.disturbances.push_back(
        fmt::format("{} while {} of {} trained ({}): these times say little.",
                    fmt::format(fmt::runtime(kind.words), share), runs.size(),
                    counted(usable, "run"), fmt::join(runs, "; ")));
  }
}

/// Whether two runs that should take the same time an epoch differ by more than their epochs do
/// among themselves.
bool times_part(const RunSummary& one, const RunSummary& other) {
  constexpr double kSame = 1.1, kApart = 1.5;  // regardless of how much the epochs of a run differ
  const double a = one.epoch_seconds, b = other.epoch_seconds;
  const double ratio = std::max(a, b) / std::min(a, b);
  if (!(ratio > kSame)) return false;
  const Ratio means = ratio_of_means(one.timed_epochs, other.timed_epochs);
  return ratio > kApart || means.low > 1 || means.high < 1;  // NaN where a run has one epoch
}

/// Names equal runs that took different times.
void note_repeats(StudyResult& result) {
  for (const ScaleRow& row : result.rows) {
    Runs runs;
    for (const RunSummary& run : result.runs)
      if (run.usable() && run.size() == row.size() && std::isfinite(run.epoch_seconds) &&
          (!run.first_epoch_only || row.first_epochs) && run.log.start.replayed_on.empty())
        runs.push_back(&run);
    if (runs.size() < 2) continue;
    const auto [fast, slow] = std::ranges::minmax_element(
        runs, {}, [](const RunSummary* run) { return run->epoch_seconds; });
    if (!times_part(**fast, **slow)) continue;
    std::vector<std::string> times;
    for (const RunSummary* run : runs) times.push_back(number(run->epoch_seconds));
    result.disturbances.push_back(fmt::format(
        "Equal runs on {} took {} s an epoch: more than chance makes of them on a machine that "
        "does nothing else. Look for other work, and repeat them before you compare.",
        row.size().words(), fmt::join(times, ", ")));
  }
}

/// Notes if times are not of the machine at hand.
void note_replays(StudyResult& result) {
  std::set<std::string> machines;
  for (const RunSummary& run : result.runs)
    if (!run.log.start.replayed_on.empty()) machines.insert(run.log.start.replayed_on);
  if (!machines.empty())
    result.notes.push_back(fmt::format(
        "These runs are replays: a rank is a replica, and times are the virtual ones of {} "
        "(docs/replay.md).",
        fmt::join(machines, "; ")));
}

/// Notes which ranks were slowed on purpose.
void note_slowed(StudyResult& result) {
  std::set<std::string> slowed;
  for (const RunSummary& run : result.runs)
    if (!run.log.start.slowed.empty())
      slowed.insert(fmt::format("{}", fmt::join(run.log.start.slowed, ", ")));
  if (!slowed.empty())
    result.notes.push_back(
        fmt::format("Ranks were made slow on purpose (run.slow): {}.", fmt::join(slowed, "; ")));
}

/// Notes if runs that are compared differ in more than their size.
void note_differences(StudyResult& result) {
  const std::pair<const char*, std::function<std::string(const trace::RunStart&)>> facts[] = {
      {"model", [](const trace::RunStart& s) { return s.model; }},
      {"data set", [](const trace::RunStart& s) { return s.dataset; }},
      {"precision", [](const trace::RunStart& s) { return s.precision; }},
      {"threads per rank",
       [](const trace::RunStart& s) { return fmt::to_string(s.threads_per_rank); }},
      {"machine", [](const trace::RunStart& s) { return s.machine; }},
      {"version", [](const trace::RunStart& s) { return s.version + " " + s.git; }},
  };
  for (const auto& [what, get] : facts) {
    std::set<std::string> values;
    for (const RunSummary& run : result.runs)
      if (run.usable()) values.insert(get(run.log.start));
    if (values.size() > 1)
      result.notes.push_back(
          fmt::format("The runs differ in {}: {}.", what, fmt::join(values, "; ")));
  }
  if (result.mode == "mixed")
    result.notes.push_back(
        "Neither the local nor the global batch is the same for all rank counts.");
}

void note_target(StudyResult& result) {
  if (!result.target) {
    result.notes.push_back(
        "No target was given, so there is no learning speed-up. Set run.target before the study.");
    return;
  }
  for (const ScaleRow& row : result.rows) {
    if (row.cut_off)
      result.notes.push_back(fmt::format(
          "On {}, {} of {} had another target and ended there. That says nothing about {}.",
          row.size().words(), counted(row.cut_off, "run"), row.runs,
          target_words(*result.target, result.judge)));
    if (row.missed() == 0) continue;
    if (row.reached == 0)
      result.notes.push_back(fmt::format(
          "On {}, no run reached {} {} (the best run: {:.4g}). Nothing is extrapolated.",
          row.size().words(), metric_words(result.target->metric, result.judge),
          result.target->value, result.target->higher_is_better ? row.best.high : row.best.low));
    else
      result.notes.push_back(fmt::format(
          "On {}, only {} of {} runs reached the target. The time to target is the mean of those, "
          "so the true one is longer.",
          row.size().words(), row.reached, row.runs));
  }
}

/// The first epoch of a run holds start-up costs: notes where no other epoch was measured.
void note_first_epochs(StudyResult& result) {
  std::vector<std::string> only;
  for (const ScaleRow& row : result.rows) {
    if (row.first_epochs) only.push_back(row.size().text());
    if (row.untimed)
      result.notes.push_back(fmt::format(
          "On {}, {} of {} measured its first epoch only. Seconds an epoch and samples/s are those "
          "of the others.",
          row.size().words(), row.untimed, counted(row.runs, "run")));
  }
  if (!only.empty())
    result.notes.push_back(fmt::format(
        "On these numbers of ranks the runs measured their first epoch only: {}. Its time holds "
        "start-up costs, which is why it is left out where there is another.",
        fmt::join(only, ", ")));
}

void note_rows(StudyResult& result) {
  std::vector<std::string> crowded;
  for (const ScaleRow& row : result.rows)
    if (row.oversubscribed) crowded.push_back(row.size().text());
  if (!crowded.empty())
    result.notes.push_back(fmt::format(
        "There were more threads than cores (oversubscribed) on these numbers of ranks: {}. Their "
        "times say nothing about a machine that has the cores; epochs and accuracy stand.",
        fmt::join(crowded, ", ")));
  for (const ScaleRow& row : result.rows)
    if (row.runs && row.parallel_from_throughput)
      result.notes.push_back(fmt::format(
          "On {}, no whole epoch was measured. Its parallel speed-up is the ratio of samples/s.",
          row.size().words()));
  note_first_epochs(result);
  if (std::ranges::any_of(result.rows, [](const ScaleRow& row) { return row.runs == 1; }))
    result.notes.push_back(
        "Where a size has a single run, nothing says how much of a number is chance: there is no "
        "interval. Use --repeats 3 or more.");
  if (result.base_ranks > 1)
    result.notes.push_back(fmt::format(
        "The smallest size has {0} ranks. Its speed-up is {0} by definition.", result.base_ranks));
}

void note_runs(StudyResult& result) {
  for (const RunSummary& run : result.runs) {
    const std::string who = fmt::format("The run on {}{}", run.size().words(),
                                        run.repeat ? fmt::format(", repeat {},", run.repeat) : "");
    if (!run.usable())
      result.notes.push_back(fmt::format("{} {}enters no number: {}", who,
                                         run.stopped ? "" : "failed and ", run.failure));
    if (run.earlier_attempts)
      result.notes.push_back(fmt::format("{} has {} beside it that did not count.", who,
                                         counted(run.earlier_attempts, "earlier attempt")));
    if (run.log.resumes)
      result.notes.push_back(
          fmt::format("{} was resumed {}.", who, counted(run.log.resumes, "time")));
    if (!run.log.changes.empty())
      result.notes.push_back(
          fmt::format("{} went on with another configuration ({}). What it measured is of both.",
                      who, fmt::join(run.log.changes, "; ")));
  }
}

void note_efficiency(StudyResult& result) {
  for (const ScaleRow& row : result.rows)
    if (row.parallel_efficiency > 1.02)
      result.notes.push_back(fmt::format(
          "On {}, the parallel efficiency is {:.0f} %. More than 100 % is chance, or the smaller "
          "share of each rank fits into its caches.",
          row.size().words(), 100 * row.parallel_efficiency));
}

/// Keys that a study sets for each run; note_differences() already compares "threads per rank".
bool varies(const std::string& key) {
  return key == "run.seed" || key == "run.output_dir" || key == "run.threads";
}

/// Between sizes one of the batches grows (StudyResult::mode names it), ranks may share samples,
/// and a replay's size is its number of replicas.
bool varies_with_size(const std::string& key) {
  return key == "batch.local" || key == "batch.global" || key == "parallel.spatial" ||
         key == "run.replicas";
}

/// Returns the configuration and size of each usable run; skips runs without a configuration.
std::vector<std::pair<Size, Configuration>> configurations(StudyResult& result,
                                                           const ReadConfiguration& read) {
  std::vector<std::pair<Size, Configuration>> found;
  for (const RunSummary& run : result.runs) {
    const auto path = std::filesystem::path(run.log.path).parent_path() / kResolvedFile;
    if (!run.usable() || !is_there(path.string())) continue;
    try {
      found.emplace_back(run.size(), read(path.string()));
    } catch (const Error& error) {
      result.notes.push_back(fmt::format("{} is not compared with those of other runs: {}",
                                         path.string(), error.what()));
    }
  }
  return found;
}

/// Returns text like "run.epochs (1 in 2 runs, 3 in 1 run)".
std::string values_words(const std::string& key,
                         const std::vector<std::pair<Size, Configuration>>& runs) {
  std::map<std::string, int> values;
  for (const auto& [size, configuration] : runs) {
    const auto at = configuration.find(key);
    ++values[at == configuration.end() ? "absent" : at->second];
  }
  std::vector<std::string> words;
  for (const auto& [value, count] : values)
    words.push_back(fmt::format("{} in {}", value, counted(count, "run")));
  return fmt::format("{} ({})", key, fmt::join(words, ", "));
}

}  // namespace

void note_configurations(StudyResult& result, const ReadConfiguration& read,
                         const ChangeRule& rule) {
  if (!read) return;
  const auto runs = configurations(result, read);
  std::map<Size, const Configuration*> first;  // first configuration of each size
  std::set<std::string> keys;
  for (const auto& [size, configuration] : runs) {
    first.emplace(size, &configuration);
    for (const Difference& found : differences(runs.front().second, configuration, rule))
      if (!varies(found.key) && !varies_with_size(found.key)) keys.insert(found.key);
    for (const Difference& found : differences(*first[size], configuration, rule))
      if (varies_with_size(found.key)) keys.insert(found.key);
  }
  if (keys.empty()) return;
  std::vector<std::string> words;
  for (const std::string& key : keys) words.push_back(values_words(key, runs));
  result.notes.insert(
      result.notes.begin(),
      fmt::format("These runs are no study: besides ranks and seed they differ in {}. Speed-ups "
                  "between them may come from that.",
                  fmt::join(words, ", ")));
}

std::string ranks_words(int ranks) { return counted(ranks, "rank"); }

trace::MachineUse machine_of(const trace::RunLog& log) {
  trace::MachineUse use{.seconds = 0};
  const auto mean_of = [&](double trace::MachineRecord::*share) {
    double sum = 0, seconds = 0;
    for (const trace::MachineRecord& line : log.machine)
      if (std::isfinite(line.*share)) {
        sum += line.seconds * line.*share;
        seconds += line.seconds;
      }
    return seconds > 0 ? sum / seconds : trace::kNotMeasured;
  };
  for (const trace::MachineRecord& line : log.machine) use.seconds += line.seconds;
  use.other_work = mean_of(&trace::MachineRecord::other_work);
  use.steal = mean_of(&trace::MachineRecord::steal);
  use.throttled = mean_of(&trace::MachineRecord::throttled);
  return use;
}

std::vector<std::string> all_notes(const StudyResult& result) {
  std::vector<std::string> all = result.disturbances;
  all.insert(all.end(), result.notes.begin(), result.notes.end());
  return all;
}

void add_notes(StudyResult& result) {
  note_machine(result);
  note_repeats(result);
  note_replays(result);
  note_slowed(result);
  note_target(result);
  note_rows(result);
  note_efficiency(result);
  note_runs(result);
  note_differences(result);
}

}  // namespace tutti::study
