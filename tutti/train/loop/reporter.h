#pragma once
// Reporter: what a run leaves in its folder for people and programs: the record, its tables as CSV,
// TensorBoard's events, and the resolved configuration. And the lines that say where all that is
// and how to go on.

#include <exception>
#include <optional>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/keep/run_folder.h"
#include "tutti/trace/csv.h"
#include "tutti/trace/record.h"
#include "tutti/trace/tensorboard.h"

namespace tutti {

/// Rank 0 owns it; not thread-safe. Every file grows event by event. Throws IoError naming the
/// file.
class Reporter {
 public:
  /// Continues the files of a run that goes on in its folder, else begins them. `about` is the
  /// record's first line; its run_id is the place's. `configuration`: TOML; empty leaves the
  /// folder's as it is.
  Reporter(const RunPlace& place, RunStart about, const std::string& configuration);

  void add(StepRecord event);
  void add(EpochRecord event);
  void add(EvalRecord event);
  void add(TestRecord event);
  RunRecord& record() { return record_; }

 private:
  RunRecord record_;
  TensorBoardWriter tensorboard_;
  std::optional<CsvFiles> csv_;
};

/// From any rank, for a run that ends by this error: one line more where there is a record.
/// `event`: how far the run had come. Never throws.
void append_failure(const RunPlace& place, const comm::Communicator& communicator,
                    const std::exception& error, RunStop event) noexcept;

/// Commands for a person, as the program was called.
struct NextCommands {
  std::string resume;  ///< "tutti train runs/0001/config.toml --resume"
  std::string eval;    ///< "tutti eval runs/0001/config.toml --weights runs/0001"
};

/// At the start: where results, checkpoints and curves will be.
void log_places(const RunPlace& place);
/// At the end: which weights there are, and what to do next. `last`, `best`: steps of checkpoints,
/// -1 for none.
struct LeftCheckpoints {
  int64_t last = -1, best = -1;
  double best_value = kNotMeasured;  ///< of the metric that decides
  std::string best_text{};           ///< "accuracy 91.20 %"
};
/// `beyond`: the flags that the command to go on needs, because a limit has ended the run.
void log_next(const RunPlace& place, const LeftCheckpoints& left, const NextCommands& next,
              const std::string& beyond);

}  // namespace tutti
