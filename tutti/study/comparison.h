#pragma once
// Compares several studies: their curves of parallel and learning speed-up in one report.

#include <string>
#include <vector>

#include "tutti/study/metrics.h"
#include "tutti/study/notes.h"
#include "tutti/study/report.h"

namespace tutti::study {

struct ComparedStudy {
  std::string name;       ///< last part of its folder's path; the whole path if two are equal
  std::string directory;  ///< directory of the study
  StudyResult result;
};

struct ComparisonFlags {
  std::vector<std::string> directories;  ///< directories of two or more different studies
  std::string output_dir = "studies";
  bool json = false;      ///< print studies.json instead of the table
  std::string command{};  ///< command line, for the report
  // See StudyFlags.
  ReadConfiguration read_resolved{};
  ChangeRule change_rule{};
};

/// Reads each study with the target that its records name. Throws ConfigError for fewer than two
/// folders or one that is given twice; IoError if a folder has no record.
std::vector<ComparedStudy> read_studies(const ComparisonFlags& flags);

/// Returns a row for each size of each study.
TextTable comparison_table(const std::vector<ComparedStudy>& studies);
/// Returns studies.json: the content of each study's study.json, with its name.
std::string comparison_json(const std::vector<ComparedStudy>& studies, const ReportText& text);
std::string comparison_csv(const std::vector<ComparedStudy>& studies);
/// Returns one self-contained file, as html_report() does.
std::string comparison_html(const std::vector<ComparedStudy>& studies, const ReportText& text);

/// Prints on standard error the table of the studies that already have finished runs, if there are
/// at least two.
void show_finished(ComparisonFlags flags);

/// Reads the studies, prints their table and writes studies.html, studies.json and studies.csv into
/// output_dir. Runs nothing. Returns the program's exit code. Throws ConfigError and IoError.
int compare_studies(const ComparisonFlags& flags);

}  // namespace tutti::study
