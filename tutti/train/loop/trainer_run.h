#pragma once
// TrainerRun: what train() (trainer.h) makes: a run and its parts, and the loop that calls them.
// Private to trainer*.cpp.

#include <optional>
#include <string>

#include "tutti/train/loop/evaluation.h"
#include "tutti/train/loop/round_trainer.h"
#include "tutti/train/loop/run_checkpoints.h"
#include "tutti/train/loop/run_report.h"
#include "tutti/train/loop/running.h"

namespace tutti {

class TrainerRun {
 public:
  explicit TrainerRun(const TrainerSpec& spec) : run_(spec), report_(run_) {}
  RunResult run();

 private:
  // trainer_setup.cpp: what the loop needs, new or from a checkpoint
  /// All ranks must have the same configuration and data, and a resumed run what the run before it
  /// had.
  void compare_with_before();
  /// The choices that this run must keep to. Where something else changed they are advice: the bits
  /// differ anyway, and a changed network may not have what the old one used.
  Choices choices_before() const;
  void build();
  /// The network and its exchange.
  void build_step();
  NoiseSettings measured_noise() const;
  void require_folder();
  RoundsSpec rounds_spec();
  /// Weights and how replicas meet, new or as the checkpoint has them.
  void build_rounds();
  void restore_from(const Checkpoint& checkpoint);

  // trainer.cpp
  void loop();
  void end_epoch();
  std::string stopped_early_words() const;
  void stop(RunStatus status, const std::string& reason);

  Running run_;
  RunReport report_;
  std::optional<RoundTrainer> trainer_;
  std::optional<Evaluation> evaluation_;
  std::optional<RunCheckpoints> checkpoints_;
};

}  // namespace tutti
