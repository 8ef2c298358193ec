#pragma once
// Presents a study's result for people and programs. All forms contain the same numbers, notes and
// labels. json_report holds everything that the page draws: page/ turns that JSON into charts and
// has no other source.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"
#include "tutti/study/run_folder.h"

namespace tutti::study {

/// The texts of a report beside the numbers.
struct ReportText {
  std::string title = "Scaling study";
  std::string command{};                ///< command of the study
  std::vector<std::string> commands{};  ///< commands of its runs
  /// The values of the configuration that the runs had, and its lines that differ from the
  /// defaults.
  Configuration settings{};
  std::string configuration{};
  std::string made{};       ///< time of the report
  std::string directory{};  ///< directory of the report: paths are relative to it
};

/// A table as text cells, for the terminal and for HTML.
struct TextTable {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};
TextTable speed_table(const StudyResult& result);     ///< how fast each size runs
TextTable learning_table(const StudyResult& result);  ///< how soon it reaches the target
/// Returns learning speed-up = parallel speed-up x epochs factor x rest.
TextTable identity_table(const StudyResult& result);
TextTable step_table(const StudyResult& result);      ///< milliseconds and shares of a step
TextTable arrivals_table(const StudyResult& result);  ///< late ranks; no rows: not measured
/// Returns where samples came from by epoch, for the first run of each size that recorded it: the
/// first epochs and the last. No rows: no run did.
TextTable samples_table(const StudyResult& result);
TextTable runs_table(const StudyResult& result);  ///< every run, failed ones included

std::string terminal_report(const StudyResult& result);  ///< at most 100 columns
std::string aligned(const TextTable& table);             ///< as terminals show it
/// Returns "- " and the text, broken at spaces into lines of at most `columns`.
std::string wrapped(const std::string& text, size_t columns);
std::string rows_csv(const StudyResult& result);  ///< one line per rank count
/// Returns one line per run; paths are relative to `directory`.
std::string runs_csv(const StudyResult& result, const std::string& directory);
std::string json_report(const StudyResult& result, const ReportText& text);
/// Returns one self-contained file: it needs no network and no other file.
std::string html_report(const StudyResult& result, const ReportText& text);

/// Writes study.csv, runs.csv, study.json and report.html into `directory`. Throws IoError naming
/// the file.
void write_reports(const StudyResult& result, const ReportText& text, const std::string& directory);

/// Writes a file. Throws IoError naming it; `again` is the command that makes it once it can be
/// written.
void write_report_file(const std::string& path, const std::string& text, const std::string& again);

/// Returns `path` as seen from `directory`, for links and tables.
std::string relative_path(const std::string& path, const std::string& directory);

}  // namespace tutti::study
