#pragma once
// What a person sees while a study runs: one line for each run.

#include <cstdio>
#include <optional>
#include <string>

#include "tutti/base/visible.h"
#include "tutti/study/sweep.h"
#include "tutti/trace/record.h"

namespace tutti::study {

/// Where a run stands, read from its record while it grows.
class RecordTail {
 public:
  explicit RecordTail(std::string path) : path_(std::move(path)) {}
  /// Reads what was added since the last call. A cut last line is read when it is whole; a line
  /// that makes no sense is passed over: the run's end judges the record.
  void read();
  /// "epoch 3 of 16, test accuracy 0.62", by the metric of the run; "starting" before the first
  /// step.
  std::string text(int64_t epochs) const;

 private:
  void take(const std::string& line);
  std::string path_, rest_;
  std::streamoff offset_ = 0;
  double epoch_ = -1, quality_ = kNotMeasured;
  std::string metric_ = "accuracy";
  std::string judge_ = "test";
};

/// "target reached after 41.2 s and 12 epochs", "target not reached, best test accuracy 0.807 in 16
/// epochs".
std::string result_text(const RunLog& log, const std::optional<Target>& target);

/// One line for each run on `out`: on a terminal updated in place, elsewhere printed once, when the
/// run has ended. For one thread.
class StudyDisplay {
 public:
  struct Settings {
    bool quiet = false;               ///< show nothing
    int columns = 0;                  ///< of the terminal; 0: no terminal
    std::FILE* out = plain_errors();  ///< not owned
  };
  StudyDisplay(Settings settings, const std::vector<PlannedRun>& runs);

  /// The run with this index (from 0) goes on: redraws its line on a terminal.
  void update(size_t index, const std::string& text);
  /// It has ended, or was passed over: the line to keep.
  void finish(size_t index, const std::string& text);
  /// Removes what is being updated, so that something else may be printed.
  void clear();

 private:
  std::string label(size_t index) const;
  Settings settings_;
  std::vector<PlannedRun> runs_;
  bool drawn_ = false;
};

}  // namespace tutti::study
