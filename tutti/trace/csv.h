#pragma once
// The run record's tables as CSV: a header line, then one line per event. An unmeasured number is
// an empty cell.

#include <string>

#include "tutti/trace/record.h"

namespace tutti {

std::string steps_csv(const RunLog& log);
std::string epochs_csv(const RunLog& log);
std::string evals_csv(
    const RunLog& log);  ///< each name in EvalRecord::metrics is a column of its own

/// Writes steps.csv, epochs.csv and evals.csv into `directory`, which must exist. Throws IoError
/// naming the file.
void write_csv(const RunLog& log, const std::string& directory);

}  // namespace tutti
