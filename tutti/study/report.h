#pragma once
// A study's result for people and programs. All forms say the same numbers, notes and labels.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"

namespace tutti::study {

/// What a report shows beside the numbers.
struct ReportText {
  std::string title = "Scaling study";
  std::vector<std::string> commands;  ///< how it was made
  std::string configuration;          ///< text of the base configuration; may be empty
  std::string made;                   ///< time and version
};

/// One table as text cells, for the terminal and for HTML.
struct TextTable {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows;
};
TextTable scaling_table(const StudyResult& result);
TextTable identity_table(
    const StudyResult& result);                   ///< S_learn = S_par x epochs factor x remainder
TextTable step_table(const StudyResult& result);  ///< milliseconds and shares of a step
TextTable runs_table(const StudyResult& result);  ///< every run, failed ones too

std::string terminal_report(const StudyResult& result);  ///< at most 120 columns but for long notes
std::string rows_csv(const StudyResult& result);         ///< one line per rank count
std::string runs_csv(const StudyResult& result);         ///< one line per run
std::string json_report(const StudyResult& result, const ReportText& text);
/// One file that needs nothing else: no network, no other file.
std::string html_report(const StudyResult& result, const ReportText& text);

/// study.csv, runs.csv, study.json and report.html into `directory`. Throws IoError naming the
/// file.
void write_reports(const StudyResult& result, const ReportText& text, const std::string& directory);

}  // namespace tutti::study
