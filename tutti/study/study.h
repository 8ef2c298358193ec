#pragma once
// The verb `tutti study`.

#include "tutti/study/sweep.h"

namespace tutti::study {

/// Plans, launches, collects, evaluates; prints the tables on standard output and writes study.csv,
/// runs.csv, study.json and report.html into output_dir. The exit code of the program: 0 when every
/// run is usable and, with a target, every rank count reached it in every run; 3 when a run missed
/// its target; 1 when a run failed; 75 when the study was asked to stop (start it again to go on).
/// Throws ConfigError and IoError.
int run_study(const StudyFlags& flags);

}  // namespace tutti::study
