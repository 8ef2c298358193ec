#pragma once
// Trainer: the training loop. It takes a batch per local replica, runs the plan, exchanges with
// other ranks, updates, records, evaluates, writes checkpoints, and stops when asked to.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/data/store/read_counts.h"
#include "tutti/keep/run_folder.h"
#include "tutti/trace/record.h"
#include "tutti/train/loop/reporter.h"
#include "tutti/train/network/network.h"
#include "tutti/train/settings/run_data.h"

namespace tutti::train {

/// The trainer's inputs. Pointers are borrowed and must outlive it.
struct TrainerSpec {
  config::RunConfig config;     ///< validated; threads chosen
  std::string resolved_config;  ///< TOML text, kept in checkpoints and beside the results
  trace::RunStart about;  ///< machine line, version, command ...; the trainer fills in the rest
  bool terminal = false;  ///< stdout is a terminal: draw a bar
  std::function<int()> stop_requested;  ///< 0: no; else the signal to stop; may be empty
  /// Called on every rank for each checkpoint, on rank 0 by the thread that gave it its name; may
  /// be empty.
  std::function<void()> checkpoint_written;
  /// Called on every rank when a run that was asked to stop has written its checkpoint, before its
  /// record is ended; may be empty.
  std::function<void()> run_is_saved{};
  bool in_batch_job = false;  ///< a scheduler may requeue the run
  /// Called on rank 0 once nothing can refuse the run any more, before its record; may be empty.
  std::function<void()> run_begins{};
  double process_started = 0;              ///< unix time, for the start-up time in the log
  std::filesystem::path tuning_file;       ///< stores kernel choices between runs; empty: none
  keep::RunPlace place;                    ///< the run's folder, locked by the caller
  std::vector<std::string> resume_anyway;  ///< keys that may differ although they are fixed
  NextCommands next;                       ///< for the last lines of the log
  std::optional<comm::Machine> machine{};  ///< machine whose times are recorded, too
  std::optional<trace::StagingRecord> staging{};  ///< files staged before; for the record
  const data::ReadCounts* read_counts = nullptr;  ///< for the data below; null: not reported
  const backend::Backend* backend = nullptr;
  comm::Communicator* communicator = nullptr;
  comm::Communicator* job = nullptr;  ///< the run's ranks and the servers'; null: no servers
  RunData data;
};

/// How a run ended, the same on every rank.
struct RunResult {
  trace::RunStatus status = trace::RunStatus::done;
  int64_t steps = 0;
  std::map<std::string, double> metrics{};  ///< results of the last evaluation
  std::map<std::string, double> test{};     ///< results on the test set, if measured
};

/// Trains. Collective: every rank of the communicator calls it with the same configuration. Throws
/// the typed errors of base/error.h.
RunResult train(const TrainerSpec& spec);

}  // namespace tutti::train
