#include "tutti/train/loop/trainer_run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/train/loop/resume.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/network/table_files.h"
#include "tutti/train/rounds/replay_clock.h"
#include "tutti/train/rounds/server_orders.h"
#include "tutti/train/settings/data_shards.h"
#include "tutti/train/settings/device_settings.h"
#include "tutti/train/settings/idle_keys.h"
#include "tutti/train/settings/resume_check.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/step/device_waits.h"
#include "tutti/train/step/step_settings.h"

namespace tutti::train {
void TrainerRun::compare_with_before() {
  run_.settings = effective_settings(run_.config, run_.shape.devices, run_.spec.data);
  add_shards(run_.shape.sampler.spec().node_of, run_.shape.sampler.by_files(), run_.settings);
  if (run_.spec.machine &&
      rounds_kind(run_.config, run_.shape.devices, run_.shape.replicas.replicas(), true) ==
          RoundsKind::served_replay)
    run_.settings[kOrderMachine] =
        fmt::format("{} ({:016x}), buckets of {} bytes", run_.spec.machine->name,
                    run_.spec.machine->content, clock_bucket_bytes(run_.config));
  comm::agree(run_.comm, "the configuration", config::shared_lines(run_.settings));
  if (!run_.past.checkpoint) return;
  run_.past.changes = check_resume(run_.past.checkpoint->path, run_.past.checkpoint->info,
                                   run_.settings, run_.spec.resume_anyway);
  const config::RunSettings& before = run_.past.checkpoint->info.settings;
  const std::string there = before.at("run.threads"), here = run_.settings.at("run.threads");
  if (device_of(before) != device_of(run_.settings))
    log::warn_once(
        "run.device was {} and is now {}: other kernels compute, so the last bits will differ",
        device_of(before), device_of(run_.settings));
  else if (there != here && !on_device(run_.config.run))
    log::warn_once(
        "run.threads was {} and is now {}: sums are taken in another order, so the last bits "
        "will differ",
        there, here);
}

plan::Choices TrainerRun::choices_before() const {
  const keep::CheckpointInfo& before = run_.past.checkpoint->info;
  plan::Choices choices =
      plan::Choices::parse(choices_of_device(before.plan_choices, before.settings, run_.config));
  if (!run_.spec.resume_anyway.empty()) choices.make_advice();
  return choices;
}

void TrainerRun::build() {
  check_served_job(run_.config, run_.shape.devices, run_.comm.size(), run_.machine());
  const std::optional<ServerSettings> served = served_settings(run_.config, run_.shape.devices);
  if (served && !run_.spec.machine && run_.first() &&
      rounds_kind(run_.config, run_.shape.devices, run_.shape.replicas.replicas(), false) ==
          RoundsKind::every_step)
    log::info("sync.scheme = \"{}\" is run as step: without --machine no servers are replayed{}",
              run_.config.sync.scheme,
              served->servers > 1 ? ", and sync.servers says nothing" : "");
  if (run_.first())
    warn_of_idle_keys(run_.config,
                      model_spec(run_.config, *run_.spec.data.train, run_.shape.batch.local));
  build_step();
  trainer_.emplace(run_);
  build_rounds();
  evaluation_.emplace(run_);
  const std::vector<keep::KeptState> all = states();
  for (const keep::KeptState& state : all)
    if (state.start) state.start(run_.past.checkpoint ? &*run_.past.checkpoint : nullptr);
  checkpoints_.emplace(run_, all);
  if (run_.config.run.profile) {
    run_.spans.emplace();
    run_.training->executor().set_spans(&*run_.spans);
    if (run_.comm.size() > 1) run_.exchange().set_spans(&*run_.spans);
  }
  log::debug("{}", run_.network().training.to_string());
}

void TrainerRun::build_step() {
  if (!run_.config.comm.shape.empty())
    run_.comm.set_shape(comm::LinkShape::parse(run_.config.comm.shape));
  NetworkSpec spec = network_spec(run_.config, *run_.spec.data.train, run_.shape.batch.local);
  if (run_.past.checkpoint)
    spec.choices = choices_before();
  else if (!run_.config.plan.choices_from.empty())
    spec.choices = plan::Choices::parse(comm::decide(run_.comm, "reading plan.choices_from",
                                                     [&] { return choices_from(run_.config); }),
                                        plan::Choices::Of::another_run);
  spec.tuning_file = run_.spec.tuning_file;
  constexpr int64_t kSteps = 256;
  TrainingStepSpec step = step_spec(run_.config, std::move(spec), run_.shape.replicas,
                                    run_.shape.grid, run_.machine() != nullptr);
  step.seed = static_cast<uint64_t>(run_.config.run.seed);
  step.noise = measured_noise();
  step.steps_compared = static_cast<int>(std::min(run_.config.run.log_every, kSteps));
  run_.training.emplace(step, *run_.spec.backend, run_.comm);
  if (run_.training->runs_ahead() && run_.first())
    log::info("{}", host_waits_text(host_waits(step, run_.network(), run_.spec.data.canvases)));
  if (run_.spec.job && run_.first())
    tell_choices(*run_.spec.job, run_.comm.size(), run_.network().training.options.choices);
  report_.watch_step();
}

NoiseSettings TrainerRun::measured_noise() const {
  const bool measured = run_.shape.batches.replicas() > 1 &&
                        rounds_kind(run_.config, run_.shape.devices, run_.shape.replicas.replicas(),
                                    run_.machine() != nullptr) == RoundsKind::every_step &&
                        run_.shape.grid.peers() == 1 && run_.config.comm.compression == "none";
  const int64_t every = run_.config.run.noise_every;
  const bool asked =
      run_.config.run.noise_layers || (every > 0 && every != config::RunSection{}.noise_every);
  if (asked && (!measured || every == 0) && run_.first())
    log::warn(
        "run.noise_every and run.noise_layers have no effect here: the noise of gradients is "
        "measured where a step has several batches, whose mean all follow (docs/noise.md)");
  return {.every = measured ? every : 0,
          .layers = run_.config.run.noise_layers,
          .micro_batch_samples = run_.shape.batch.local};
}

RoundsSpec TrainerRun::rounds_spec() {
  return {.config = run_.config,
          .backend = *run_.spec.backend,
          .step = *run_.training,
          .workers = run_.comm,
          .job = run_.spec.job,
          .machine = run_.machine(),
          .grid = run_.shape.grid,
          .replicas = run_.shape.replicas,
          .devices = run_.shape.devices,
          .steps_per_epoch = run_.shape.steps_per_epoch(),
          .dependent_batches = run_.spec.data.canvases != nullptr,
          .rate = [this](int64_t step) { return run_.learning_rate(step); },
          .comes = [this](int64_t step, int replica) { trainer_->note_samples(step, replica); }};
}

/// Checks that each rank, which writes its part of a checkpoint, sees the run's folder.
void TrainerRun::require_folder() {
  if (!needs_rank_files(run_)) return;
  comm::on_each(run_.comm, "looking for the run's folder", [&] {
    std::error_code none;
    if (!std::filesystem::is_directory(run_.spec.place.directory, none))
      throw IoError(
          fmt::format("{}: {} does not see the run's folder, where each rank writes its part of a "
                      "checkpoint: run.output_dir must be on a file system that all hosts share",
                      run_.spec.place.directory, run_.comm.who()));
  });
}

void TrainerRun::build_rounds() {
  require_folder();
  if (!run_.past.checkpoint && !run_.config.model.weights.empty())
    give_weights(run_.comm, {run_.config.model.weights, run_.config.model.weights_except},
                 run_.training->weights());
  run_.rounds = make_rounds(rounds_spec());
}

/// Lists whatever has state across steps. The order is the one in which it starts: what comes later
/// may look at what was restored before.
std::vector<keep::KeptState> TrainerRun::states() {
  const auto model = [this](keep::SavedRun& saved) {
    evaluation_->gather();
    saved.model =
        run_.training->weights().model_tensors(evaluation_->weights(), evaluation_->statistics());
  };
  const auto rows = [this](keep::SavedRun& saved) {
    const Weights& weights = run_.training->weights();
    std::ranges::move(weights.row_tensors(), std::back_inserter(saved.own));
    std::ranges::move(table_refs(weights), std::back_inserter(saved.own));
  };
  const auto restore_weights = [this](const keep::Checkpoint* resumed) {
    if (resumed)
      restore(*resumed, run_.shape.with_statistics(), run_.shape.grid.parts(),
              run_.exchange().kept_state(), run_.training->weights());
  };
  const auto restore_exchange = [this](const keep::Checkpoint* resumed) {
    if (!resumed) return;
    run_.exchange().restore(*resumed);
    if (!run_.first() || run_.config.comm.compression != "none") return;
    if (std::ranges::any_of(keep::SavedCompression(*resumed).names(0), comm::is_piece))
      log::warn(
          "what compression had not sent is lost: this run goes on from a compressed one and has "
          "comm.compression = \"none\"");
  };
  const auto go_on = [this](const keep::Checkpoint* resumed) {
    if (!resumed) return;
    go_on_from(*resumed, run_);
    run_.goal.restore(resumed->info.metrics);
  };
  return {
      {.name = "weights", .save = model, .start = restore_weights},
      {.name = "compression", .save = {}, .start = restore_exchange},  // the rounds save it
      {.name = "goal",
       .save = [this](keep::SavedRun& saved) { run_.goal.save(saved.numbers); },
       .start = go_on},
      {.name = "rounds",
       .save = [this](keep::SavedRun& saved) { run_.rounds->save(saved); },
       .start =
           [this](const keep::Checkpoint* resumed) { run_.rounds->start(resumed, run_.step); }},
      {.name = "rows", .save = rows},  // restored with the weights
      {.name = "noise",
       .save = [this](keep::SavedRun& saved) { report_.save_noise(saved.numbers); },
       .start = [this](const keep::Checkpoint* resumed) { report_.start_noise(resumed); }},
      {.name = "batches",
       .save = [this](keep::SavedRun& saved) { trainer_->save(saved); },
       .start = [this](const keep::Checkpoint*) { trainer_->read_from_here(); }},
  };
}

}  // namespace tutti::train
