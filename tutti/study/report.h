#pragma once
// A study's result for people and programs. All forms say the same numbers, notes and labels.
// json_report holds all that the page draws: page/ turns that JSON into charts and knows nothing
// else.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"
#include "tutti/study/run_folder.h"

namespace tutti::study {

/// What a report shows beside the numbers.
struct ReportText {
  std::string title = "Scaling study";
  std::string command{};                ///< of the study
  std::vector<std::string> commands{};  ///< of its runs
  /// The values of the configuration that the runs had, and the lines of it that are no defaults.
  Configuration settings{};
  std::string configuration{};
  std::string made{};       ///< time
  std::string directory{};  ///< of the report: paths are named relative to it
};

/// One table as text cells, for the terminal and for HTML.
struct TextTable {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};
TextTable speed_table(const StudyResult& result);     ///< how fast each size runs
TextTable learning_table(const StudyResult& result);  ///< how soon it reaches the target
/// Learning speed-up = parallel speed-up x epochs factor x rest.
TextTable identity_table(const StudyResult& result);
TextTable step_table(const StudyResult& result);      ///< milliseconds and shares of a step
TextTable arrivals_table(const StudyResult& result);  ///< who came late; no rows: not measured
/// Where samples came from, epoch by epoch, of the first run of each size that says so: the first
/// epochs and the last; no rows: no run does.
TextTable samples_table(const StudyResult& result);
TextTable runs_table(const StudyResult& result);  ///< every run, failed ones too

std::string terminal_report(const StudyResult& result);  ///< at most 100 columns
std::string aligned(const TextTable& table);             ///< as terminals show it
/// "- " and the text, broken at spaces into lines of at most `columns`.
std::string wrapped(const std::string& text, size_t columns);
std::string rows_csv(const StudyResult& result);  ///< one line per rank count
/// One line per run; `directory`: paths are relative to it.
std::string runs_csv(const StudyResult& result, const std::string& directory);
std::string json_report(const StudyResult& result, const ReportText& text);
/// One file that needs nothing else: no network, no other file.
std::string html_report(const StudyResult& result, const ReportText& text);

/// study.csv, runs.csv, study.json and report.html into `directory`. Throws IoError naming the
/// file.
void write_reports(const StudyResult& result, const ReportText& text, const std::string& directory);

/// Throws IoError naming the file; `again` says what makes it once it can be written.
void write_report_file(const std::string& path, const std::string& text, const std::string& again);

/// `path` as seen from `directory`, for links and tables.
std::string relative_path(const std::string& path, const std::string& directory);

}  // namespace tutti::study
