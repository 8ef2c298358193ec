#include "tutti/study/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/base/shell.h"
#include "tutti/base/small_text.h"
#include "tutti/study/child.h"
#include "tutti/study/collect.h"
#include "tutti/study/describe.h"
#include "tutti/study/launch.h"
#include "tutti/study/metrics.h"
#include "tutti/study/notes.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

constexpr double kGraceSeconds = 30;  // for a run to write its checkpoint

/// Returns the lines of a resolved configuration that differ from the defaults, with their tables'
/// headings.
std::string chosen_lines(const std::string& path) {
  std::string chosen, heading;
  expect_regular_file(path);
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("[")) heading = line + '\n';
    if (line.find(" = ") == std::string::npos || line.ends_with("# default")) continue;
    chosen += (heading.empty() || chosen.empty() ? "" : "\n") + heading + line + '\n';
    heading.clear();
  }
  return chosen;
}

ReportText report_text(const StudyResult& result, const StudyFlags& flags) {
  ReportText text;
  if (!result.title.empty()) text.title = "Scaling of " + result.title;
  text.made = trace::iso_time(trace::unix_now());
  text.command = flags.command;
  text.directory = flags.output_dir;
  for (const RunSummary& run : result.runs) {
    if (!run.log.start.command.empty()) text.commands.push_back(run.log.start.command);
    // Use the configuration that the first run had, because the file may have changed.
    const fs::path resolved = fs::path(run.log.path).parent_path() / kResolvedFile;
    if (!text.configuration.empty() || !fs::exists(resolved)) continue;
    text.configuration = chosen_lines(resolved.string());
    if (flags.read_resolved) text.settings = flags.read_resolved(resolved.string());
  }
  return text;
}

ExitCode exit_code(const StudyResult& result, const std::vector<LaunchResult>& launched,
                   bool require_target) {
  const auto asked = [](const LaunchResult& run) { return run.outcome == Outcome::stopped; };
  if (std::ranges::any_of(launched, asked)) return ExitCode::requeue;
  const auto some = [&](int ScaleRow::*count) {
    return std::ranges::any_of(result.rows, [=](const ScaleRow& row) { return row.*count > 0; });
  };
  if (some(&ScaleRow::failed)) return ExitCode::failure;
  if (some(&ScaleRow::stopped)) return ExitCode::requeue;
  // A run that ended before the target has not reached it either.
  const bool missed = result.target && std::ranges::any_of(result.rows, [](const ScaleRow& row) {
                        return row.reached < row.runs;
                      });
  return require_target && missed ? ExitCode::target_missed : ExitCode::done;
}

LaunchOptions launch_options(const StudyFlags& flags) {
  LaunchOptions options;
  options.run_limit_seconds = flags.run_limit_seconds;
  options.grace_seconds = kGraceSeconds;
  options.show_output = flags.verbose;
  options.display = {.quiet = flags.quiet, .columns = flags.verbose ? 0 : flags.columns};
  options.target = flags.target;
  options.epochs = flags.epochs;
  options.runs_after = flags.runs_after;
  options.sound = flags.has_sound_checkpoint;
  if (flags.resolve && flags.read_resolved) {
    options.wanted = [&flags](const PlannedRun& run) { return flags.resolve(run.sets); };
    options.found = flags.read_resolved;
    options.rule = flags.change_rule;
  }
  return options;
}

/// Returns a hint how to complete the study; empty if it is complete.
std::string to_finish(ExitCode code, const StudyFlags& flags) {
  if (code != ExitCode::requeue && code != ExitCode::failure) return "";
  if (flags.collect_only && study_runs(flags.output_dir).empty())
    return "Some runs are not finished. No study lies here that would start them again: go on with "
           "each by 'tutti train' with --output-dir and --resume, then collect again.";
  const std::string again = flags.collect_only ? "the command of the study, without --collect"
                            : flags.fresh      ? "the same command without --fresh"
                                               : "the same command";
  if (code == ExitCode::requeue)
    return "Runs were asked to stop. Start the study again with " + again +
           ": finished runs are kept, and a run that was stopped goes on from its checkpoint.";
  return "Some runs failed. Look into their console.log; " + again +
         (flags.collect_only ? "," : "") +
         " runs only those again. They go on from their checkpoints, except where a loss or weight "
         "was no number: such a run begins anew, and fails again unless the configuration is "
         "changed.";
}

/// Returns the sentence about a missed target, and suggestions for the next step.
std::string closing(const StudyResult& result, const Configuration& settings, ExitCode code,
                    const StudyFlags& flags) {
  std::string text;
  if (missed_target(result)) {
    std::vector<std::string> sizes;
    for (const ScaleRow& row : result.rows)
      if (row.missed())
        sizes.push_back(fmt::format("{} of {} on {}", row.missed(), row.runs, row.size().words()));
    text += fmt::format("\nThe target {} was missed by some runs: {}.\n",
                        target_words(*result.target, result.judge), fmt::join(sizes, ", "));
    if (code == ExitCode::done)
      text += "That is a result, so the exit code is 0; --require-target makes it 3.\n";
  }
  std::vector<std::string> next;
  if (const std::string line = to_finish(code, flags); !line.empty()) next.push_back(line);
  for (const std::string& line : advice(result, settings)) next.push_back(line);
  if (next.empty()) return text;
  text += "\nWhat to do next\n";
  for (const std::string& line : next) text += wrapped(line, 98);
  return text;
}

std::string places(const std::string& directory) {
  return fmt::format(
      "\nEverything lies in {}\n"
      "  report.html                      open it in a browser\n"
      "  study.csv, runs.csv, study.json  the same numbers for programs\n{}",
      directory,
      study_runs(directory).empty()
          ? ""
          : "  runs/                            of each run: record.jsonl, console.log, "
            "config.toml\n");
}

/// The runs in the folder that are not part of this study's plan: of an earlier start with other
/// --ranks or --repeats.
struct Earlier {
  std::vector<LaunchResult> kept;  ///< they belong to this study, too
  int left_out = 0;
  std::set<std::string> changes;  ///< reasons why finished ones do not count
  int aside = 0;                  ///< with --fresh: the number of all of them
};

std::vector<RunFolder> folders_beside(const StudyFlags& flags,
                                      const std::vector<PlannedRun>& planned) {
  std::vector<RunFolder> folders = study_runs(flags.output_dir);
  std::erase_if(folders, [&](const RunFolder& folder) {
    return std::ranges::any_of(planned, [&](const PlannedRun& run) {
      return run.size() == folder.size() && run.repeat == folder.repeat;
    });
  });
  return folders;
}

/// Keeps a finished run if it has the configuration of this study.
void look_at(const RunFolder& folder, const StudyFlags& flags, Earlier& earlier) {
  try {
    const LaunchOptions options = launch_options(flags);
    const PlannedRun run = plan_another(flags, folder.size(), folder.repeat);
    const bool finished = is_finished(run.directory);
    const auto changes = finished ? changed(run, options) : std::vector<Difference>{};
    if (finished && changes.empty()) {
      earlier.kept.push_back({run, Outcome::kept, "", count_attempts(run.directory)});
      return;
    }
    for (const Difference& change : changes) earlier.changes.insert(change.text());
  } catch (const ConfigError& error) {  // this study could not have such a run
    log::debug("{}: {}", folder.path, error.what());
  }
  ++earlier.left_out;
}

std::string earlier_runs(int count) {
  return count == 1 ? "1 earlier run" : fmt::format("{} earlier runs", count);
}

void note_earlier(StudyResult& result, const Earlier& earlier, const std::string& directory) {
  if (earlier.aside)
    result.notes.push_back(fmt::format(
        "{} that this study does not repeat {} set aside, as --fresh asks. {} no number.",
        earlier_runs(earlier.aside), earlier.aside == 1 ? "was" : "were",
        earlier.aside == 1 ? "It enters" : "They enter"));
  if (earlier.left_out == 0) return;
  const std::string why =
      earlier.changes.empty() ? "" : fmt::format(" ({})", fmt::join(earlier.changes, "; "));
  result.notes.push_back(fmt::format(
      "{} in this folder {} left out, unfinished or with another configuration{}: "
      "'tutti study --collect --output-dir {}' shows all.",
      earlier_runs(earlier.left_out), earlier.left_out == 1 ? "is" : "are", why, directory));
}

std::vector<RunSummary> run_all(const StudyFlags& flags, const std::vector<PlannedRun>& planned,
                                std::vector<LaunchResult>& launched, Earlier& earlier) {
  std::error_code failed;
  fs::create_directories(flags.output_dir, failed);
  if (failed)
    throw IoError(
        fmt::format("cannot make the folder {} of this study: {}; choose another --output-dir",
                    flags.output_dir, failed.message()));
  const FolderLock lock = lock_study(flags.output_dir, kGraceSeconds);
  if (!flags.quiet)
    fmt::print(stderr, "{} run{} of {} into {}\n", planned.size(), planned.size() == 1 ? "" : "s",
               flags.config, flags.output_dir);
  // Set aside before the first run, so that the next start, without --fresh, does not find them
  // either.
  const auto folders = folders_beside(flags, planned);
  if (flags.fresh) {
    for (const PlannedRun& run : planned) set_aside(run.directory);
    for (const RunFolder& folder : folders) set_aside(folder.path), ++earlier.aside;
  }
  launched = launch(planned, launch_options(flags));
  for (const RunFolder& folder : folders)
    if (!flags.fresh) look_at(folder, flags, earlier);
  const auto& beside = earlier.kept;
  if (!flags.quiet && !beside.empty())
    fmt::print(stderr, "{} finished earlier with this configuration and {} reported, too\n",
               beside.size() == 1 ? "1 more run" : fmt::format("{} more runs", beside.size()),
               beside.size() == 1 ? "is" : "are");
  auto all = launched;
  all.insert(all.end(), beside.begin(), beside.end());
  return collect(all);
}

/// Prints without throwing: a closed reader must not cost the report. The end of the program checks
/// the stream.
void show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

void check_finished(const StudyFlags& flags) {
  refuse_changed(plan_runs(flags), launch_options(flags));
}

void count_runs_after(std::span<StudyFlags> studies) {
  size_t after = 0;
  for (StudyFlags& flags : studies | std::views::reverse) {
    flags.runs_after = after;
    for (const PlannedRun& run : plan_runs(flags))
      if (flags.fresh || !is_finished(run.directory)) ++after;
  }
}

int run_study(const StudyFlags& flags) {
  std::vector<LaunchResult> launched;
  std::vector<RunSummary> runs;
  Earlier earlier;
  if (flags.collect_only) {
    runs = collect_directory(flags.output_dir);
  } else {
    const auto planned = plan_runs(flags);
    refuse_run_of_train(flags.output_dir);
    if (flags.dry_run) {
      for (const PlannedRun& run : planned) fmt::print("{}\n", shell_line(run.command));
      return 0;
    }
    runs = run_all(flags, planned, launched, earlier);
  }
  StudyResult result = evaluate(std::move(runs), flags.target);
  note_configurations(result, flags.read_resolved, flags.change_rule);
  note_earlier(result, earlier, flags.output_dir);
  const ReportText text = report_text(result, flags);
  const ExitCode code = exit_code(result, launched, flags.require_target);
  // Printed before the files: if these cannot be written, the results of hours of work are still
  // printed.
  show(flags.json ? json_report(result, text) : '\n' + terminal_report(result));
  write_reports(result, text, flags.output_dir);
  if (!flags.json) show(closing(result, text.settings, code, flags) + places(flags.output_dir));
  return StopSignals::interrupts() > 1 ? 128 + SIGINT : static_cast<int>(code);
}

}  // namespace tutti::study
