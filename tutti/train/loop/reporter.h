#pragma once
// Reporter: writes a run's files for people and programs: the record, its tables as CSV,
// TensorBoard's events, and the resolved configuration. It also logs where these are and how to
// continue.

#include <exception>
#include <optional>
#include <string>

#include "tutti/comm/communicator.h"
#include "tutti/keep/run_folder.h"
#include "tutti/trace/csv.h"
#include "tutti/trace/record.h"
#include "tutti/trace/tensorboard.h"

namespace tutti::train {

/// Owned by rank 0; not thread-safe. Every file grows event by event. Throws IoError naming the
/// file.
class Reporter {
 public:
  /// Continues the files of a run that resumes in its folder, or begins them. `about` is the
  /// record's first line; its run_id is the place's. `configuration` is TOML; empty leaves the
  /// folder's file as it is.
  Reporter(const keep::RunPlace& place, trace::RunStart about, const std::string& configuration);

  void add(trace::StepRecord event);
  void add(trace::EpochRecord event);
  void add(trace::EvalRecord event);
  void add(trace::TestRecord event);
  trace::RunRecord& record() { return record_; }

 private:
  template <class Event>
  void add_to_all(Event event);

  trace::RunRecord record_;
  trace::TensorBoardWriter tensorboard_;
  std::optional<trace::CsvFiles> csv_;
};

/// Appends one line to an existing record for a run that ends with this error; called on any rank.
/// `event` describes the run's progress. Never throws.
void append_failure(const keep::RunPlace& place, const comm::Communicator& communicator,
                    const std::exception& error, trace::RunStop event) noexcept;

/// Commands for a person, in the form in which the program was called.
struct NextCommands {
  std::string resume;  ///< "tutti train runs/0001/config.toml --resume"
  std::string eval;    ///< "tutti eval runs/0001/config.toml --weights runs/0001"
};

/// Logs, at the start, the places of results, checkpoints and curves.
void log_places(const keep::RunPlace& place);
/// The weights that exist at the end. `last`, `best`: steps of checkpoints, -1 for none.
struct LeftCheckpoints {
  int64_t last = -1, best = -1;
  double best_value = trace::kNotMeasured;  ///< value of the metric that decides
  std::string best_text{};                  ///< "accuracy 91.20 %"
};
/// Logs the weights and the next commands. `beyond` holds the flags that the command to continue
/// needs if a limit has ended the run.
void log_next(const keep::RunPlace& place, const LeftCheckpoints& left, const NextCommands& next,
              const std::string& beyond);

}  // namespace tutti::train
