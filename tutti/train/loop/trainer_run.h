#pragma once
// TrainerRun: the implementation of train() (trainer.h): a run with its parts, and the loop that
// calls them; and serve_workers(). Private to the sources of train().

#include <optional>
#include <string>

#include "tutti/train/loop/evaluation.h"
#include "tutti/train/loop/round_trainer.h"
#include "tutti/train/loop/run_checkpoints.h"
#include "tutti/train/loop/run_report.h"
#include "tutti/train/loop/running.h"

namespace tutti::train {

class TrainerRun {
 public:
  explicit TrainerRun(const TrainerSpec& spec) : run_(spec), report_(run_) {}
  RunResult run();

 private:
  // In trainer_setup.cpp: sets up the loop, new or from a checkpoint.
  /// Checks that all ranks have the same configuration and data, and that a resumed run has
  /// those of the earlier run.
  void compare_with_before();
  /// Returns the choices that this run must keep. If other settings changed they are only advice:
  /// the bits differ anyway, and a changed network may lack what the old one used.
  plan::Choices choices_before() const;
  void build();
  /// Builds the network and its exchange.
  void build_step();
  NoiseSettings measured_noise() const;
  void require_folder();
  RoundsSpec rounds_spec();
  /// Sets up the way in which replicas meet.
  void build_rounds();
  std::vector<keep::KeptState> states();

  // In trainer.cpp.
  void loop();
  void end_epoch();
  std::string stopped_early_words() const;
  void stop(trace::RunStatus status, const std::string& reason);

  Running run_;
  RunReport report_;
  std::optional<RoundTrainer> trainer_;
  std::optional<Evaluation> evaluation_;
  std::optional<RunCheckpoints> checkpoints_;
};

/// Runs instead of train() on a rank that only serves weights (sync.server_ranks): serves the
/// workers' rounds until they dismiss it. `spec.communicator` contains only the servers, `spec.job`
/// first the workers and then the servers.
RunResult serve_workers(const TrainerSpec& spec);

}  // namespace tutti::train
