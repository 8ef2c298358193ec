#pragma once
// Trainer: the loop. Takes a batch per local replica, runs the plan, meets the other ranks in the
// exchange, updates, records, evaluates, writes checkpoints, and stops when asked to.

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

namespace tutti {

/// What the trainer needs from outside. Pointers are borrowed and must outlive it.
struct TrainerSpec {
  RunConfig config;             ///< validated; threads chosen
  std::string resolved_config;  ///< TOML text, kept in checkpoints and beside the results
  RunStart about;  ///< machine line, version, command ...; the trainer fills what it knows itself
  bool terminal = false;                     ///< stdout is a terminal: draw a bar
  std::function<int()> stop_requested;       ///< 0 = no, else the signal that asked; may be empty
  std::function<void()> checkpoint_written;  ///< called on every rank; may be empty
  /// Called on every rank when a run that was asked to stop has written its checkpoint, before its
  /// record says so; may be empty.
  std::function<void()> run_is_saved{};
  bool in_batch_job = false;  ///< a scheduler may queue the run again
  /// Called on rank 0 when nothing refuses the run any more, before its record; may be empty.
  std::function<void()> run_begins{};
  double process_started = 0;              ///< unix time, for the start-up time in the log
  std::filesystem::path tuning_file;       ///< kernel choices kept between runs; empty: none
  RunPlace place;                          ///< the run's folder, held by the caller
  std::vector<std::string> resume_anyway;  ///< keys that may differ although they are fixed
  NextCommands next;                       ///< for the last lines of the log
  std::optional<comm::Machine> machine{};  ///< whose time the record also tells; none: no other's
  std::optional<StagingRecord> staging{};  ///< what was staged before; for the record
  const data::ReadCounts* read_counts = nullptr;  ///< of the data below; null: are not reported
  const Backend* backend = nullptr;
  comm::Communicator* communicator = nullptr;
  comm::Communicator* job = nullptr;  ///< its ranks and those of servers; null: there are none
  RunData data;
};

/// How a run ended, the same on every rank.
struct RunResult {
  RunStatus status = RunStatus::done;
  int64_t steps = 0;
  std::map<std::string, double> metrics{};  ///< of the last evaluation
  std::map<std::string, double> test{};     ///< of the test set, where it waited for the end
};

/// Collective: every rank of the communicator calls it with the same configuration. Throws the
/// typed errors of base/error.h.
RunResult train(const TrainerSpec& spec);

}  // namespace tutti
