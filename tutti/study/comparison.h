#pragma once
// Several studies beside each other: their curves of parallel and learning speed-up in one report.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"
#include "tutti/study/notes.h"
#include "tutti/study/report.h"

namespace tutti::study {

struct ComparedStudy {
  std::string name;       ///< the last part of its folder's path; the path where two have the same
  std::string directory;  ///< of the study
  StudyResult result;
};

struct ComparisonFlags {
  std::vector<std::string> directories;  ///< of studies, two or more, none twice
  std::string output_dir = "studies";
  bool json = false;      ///< print studies.json instead of the table
  std::string command{};  ///< how it was started, for the report
  // As StudyFlags'.
  ReadConfiguration read_resolved{};
  ChangeRule change_rule{};
};

/// Each with the target that its records name. ConfigError for fewer than two folders or one that
/// is given twice; IoError where a folder has no record.
std::vector<ComparedStudy> read_studies(const ComparisonFlags& flags);

/// A row for each size of each study.
TextTable comparison_table(const std::vector<ComparedStudy>& studies);
/// studies.json: the content of each study's study.json, with its name.
std::string comparison_json(const std::vector<ComparedStudy>& studies, const ReportText& text);
std::string comparison_csv(const std::vector<ComparedStudy>& studies);
/// One file that needs nothing else, as html_report().
std::string comparison_html(const std::vector<ComparedStudy>& studies, const ReportText& text);

/// Prints the table of those studies that have finished runs already, on standard error: of two or
/// more of them, otherwise nothing.
void show_finished(ComparisonFlags flags);

/// Reads the studies, prints their table and writes studies.html, studies.json and studies.csv into
/// output_dir. Runs nothing. Returns the program's exit code. Throws ConfigError and IoError.
int compare_studies(const ComparisonFlags& flags);

}  // namespace tutti::study
