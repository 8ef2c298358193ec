#include "tutti/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/study/collect.h"
#include "tutti/study/launch.h"
#include "tutti/study/metrics.h"
#include "tutti/study/report.h"

namespace tutti::study {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  if (std::ifstream file(path); file) text << file.rdbuf();
  return text.str();
}

ReportText report_text(const StudyResult& result, const StudyFlags& flags) {
  ReportText text;
  if (!result.title.empty()) text.title = "Scaling of " + result.title;
  text.made = iso_time(unix_now());
  std::string config = flags.config;
  for (const RunSummary& run : result.runs) {
    if (!run.log.start.command.empty()) text.commands.push_back(run.log.start.command);
    if (config.empty()) config = run.log.start.config_path;
  }
  if (!config.empty()) text.configuration = text_of(config);
  return text;
}

ExitCode exit_code(const StudyResult& result, const std::vector<LaunchResult>& launched) {
  const auto stopped = [](const LaunchResult& run) { return run.outcome == Outcome::stopped; };
  if (std::any_of(launched.begin(), launched.end(), stopped)) return ExitCode::requeue;
  if (std::any_of(result.rows.begin(), result.rows.end(),
                  [](const ScaleRow& row) { return row.failed > 0; }))
    return ExitCode::failure;
  const auto missed = [](const ScaleRow& row) { return row.reached < row.runs; };
  if (result.target && std::any_of(result.rows.begin(), result.rows.end(), missed))
    return ExitCode::target_missed;
  return ExitCode::done;
}

}  // namespace

int run_study(const StudyFlags& flags) {
  std::vector<LaunchResult> launched;
  std::vector<RunSummary> runs;
  if (flags.collect_only) {
    runs = collect_directory(flags.output_dir);
  } else {
    const auto planned = plan_runs(flags);
    if (flags.dry_run) {
      for (const PlannedRun& run : planned) fmt::print("{}\n", shell_line(run.command));
      return 0;
    }
    launched =
        launch(planned, {.fresh = flags.fresh, .run_limit_seconds = flags.run_limit_seconds});
    runs = collect(launched);
  }
  const StudyResult result = evaluate(std::move(runs), flags.target);
  std::filesystem::create_directories(flags.output_dir);
  write_reports(result, report_text(result, flags), flags.output_dir);
  fmt::print("{}\nreport: {}/report.html\n", terminal_report(result), flags.output_dir);
  std::fflush(stdout);
  return static_cast<int>(exit_code(result, launched));
}

}  // namespace tutti::study
