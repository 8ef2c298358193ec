#pragma once
// Shows a study's progress: one line for each run.

#include <cstdio>
#include <optional>
#include <string>

#include "tutti/base/visible.h"
#include "tutti/study/sweep.h"
#include "tutti/trace/record.h"

namespace tutti::study {

/// Reads the state of a run from its record while it grows.
class RecordTail {
 public:
  explicit RecordTail(std::string path) : path_(std::move(path)) {}
  /// Reads lines added since the last call. A cut last line is read once it is whole; a malformed
  /// line is skipped, because the record is checked at the end of the run.
  void read();
  /// Returns "epoch 3 of 16, test accuracy 0.62", by the metric of the run; "starting" before the
  /// first step.
  std::string text(int64_t epochs) const;

 private:
  void take(const std::string& line);
  std::string path_, rest_;
  std::streamoff offset_ = 0;
  double epoch_ = -1, quality_ = trace::kNotMeasured;
  std::string metric_ = "accuracy";
  std::string judge_ = "test";
};

/// Returns "target reached after 41.2 s and 12 epochs", "target not reached, best test accuracy
/// 0.807 in 16 epochs".
std::string result_text(const trace::RunLog& log, const std::optional<trace::Target>& target);

/// Prints one line for each run on `out`: on a terminal updated in place, elsewhere once, when the
/// run has ended. For one thread.
class StudyDisplay {
 public:
  struct Settings {
    bool quiet = false;               ///< show nothing
    int columns = 0;                  ///< columns of the terminal; 0: no terminal
    std::FILE* out = plain_errors();  ///< not owned
  };
  StudyDisplay(Settings settings, const std::vector<PlannedRun>& runs);

  /// Redraws the line of the run with this index (from 0) on a terminal.
  void update(size_t index, const std::string& text);
  /// Prints the final line of a run that has ended or was skipped.
  void finish(size_t index, const std::string& text);
  /// Removes the line that is being updated, so that something else may be printed.
  void clear();

 private:
  std::string label(size_t index) const;
  Settings settings_;
  std::vector<PlannedRun> runs_;
  bool drawn_ = false;
};

}  // namespace tutti::study
