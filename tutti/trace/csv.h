#pragma once
// Writes the run record's tables as CSV: a header line, then one line per event. An unmeasured
// number is an empty cell.

#include <fstream>
#include <set>
#include <string>

#include "tutti/trace/record.h"

namespace tutti::trace {

/// Returns a text as one cell: on one line, quoted if necessary, and after an apostrophe if it
/// begins like a formula, which a spreadsheet would compute.
std::string csv_cell(const std::string& text);
std::string steps_csv(const RunLog& log);
std::string epochs_csv(const RunLog& log);
std::string evals_csv(
    const RunLog& log);  ///< each name in EvalRecord::metrics is a column of its own

/// Writes steps.csv, epochs.csv and evals.csv into `directory`, which must exist. Throws IoError
/// naming the file.
void write_csv(const RunLog& log, const std::string& directory);

/// Writes the same files while the run goes on, so that a killed run leaves its lines. Not
/// thread-safe. Throws IoError naming the file.
class CsvFiles {
 public:
  /// `before`: the record of the run that is resumed; otherwise empty.
  CsvFiles(const RunLog& before, const std::string& directory);

  void add(const StepRecord& event);
  void add(const EpochRecord& event);
  /// The first evaluation decides which metrics are columns.
  void add(const EvalRecord& event);

 private:
  struct File {
    std::string path;
    std::ofstream stream;
    void append(const std::string& text);
  };
  File steps_, epochs_, evals_;
  std::set<std::string> metrics_;
  bool no_evals_;
};

}  // namespace tutti::trace
