#include "tutti/train/loop/rehearsal.h"

#include <algorithm>

#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/data/pipeline/pipeline.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/network/network.h"
#include "tutti/train/settings/data_shards.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/idle_keys.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/sync_scheme.h"
#include "tutti/train/step/step_settings.h"

namespace tutti::train {
namespace {

/// Passes the first samples of a part of the data through the readers' processing, without random
/// choices: values, labels, shapes. Returns how many.
int64_t read_some(const RehearsalSpec& spec, const data::Dataset& set,
                  const std::vector<data::BatchField>& batch) {
  const data::SampleWriter writer = sample_writer(spec.config, set, batch);
  const int64_t count = std::min(set.size(), kRehearsedSamples);
  data::Pipeline pipeline(
      set, writer,
      std::make_unique<data::EvaluationOrder>(data::Range{0, count}, batch.front().desc.shape[0]),
      {.slots = 2, .timeout_seconds = spec.read_timeout_s});
  while (pipeline.remaining() > 0) pipeline.next();
  return count;
}

}  // namespace

int replicas_of_job(const config::RunConfig& config, int ranks, const comm::Machine* machine) {
  const int workers = worker_ranks(config, ranks);
  const split::PartGrid grid = part_grid(config.parallel, workers, 0);
  const int64_t replicas = config::replica_count(config.run, grid.groups());
  grid.require_own_ranks(replicas);
  check_served_job(config, replicas, workers, machine);
  return static_cast<int>(replicas);
}

Rehearsal rehearse(const RehearsalSpec& spec) {
  const config::RunConfig& config = spec.config;
  Rehearsal run;
  run.replicas = replicas_of_job(config, spec.ranks, spec.machine);
  const int ranks = worker_ranks(config, spec.ranks);
  const split::PartGrid grid = part_grid(config.parallel, ranks, 0);
  const int gradients = static_cast<int>(gradients_of_step(config, run.replicas));
  run.batch = config::batch_sizes(config.batch, gradients);
  const bool has_clock = spec.machine != nullptr;
  const exchange::ReplicaMap replicas(has_clock ? gradients : run.replicas, grid.groups(), 0);
  const data::Sampler sampler(
      {.seed = static_cast<uint64_t>(config.run.seed),
       .size = spec.data.train->size(),
       .replicas = gradients * static_cast<int>(config.batch.accumulate),
       .local_batch = run.batch.local,
       .node_of = nodes_of_micro_batches(
           config, [&](int rank) { return rank / spec.ranks_per_node; }, grid, replicas),
       .file_samples = samples_of_files(config, *spec.data.train),
       .strict = config.data.strict,
       .spacing = spec.data.train->spacing(),
       .anywhere = config.data.windows == config::TextWindows::random});
  run.steps_per_epoch = sampler.steps_per_epoch();
  run.steps = total_steps(config.run, run.steps_per_epoch);
  const LearningRateSchedule schedule =
      learning_rate_schedule(config, run.steps_per_epoch, run.batch.global);
  (void)schedule.rate(0);

  NetworkSpec network = network_spec(config, *spec.data.train, run.batch.local);
  network.plan.measure = false;
  network.warns = spec.first;
  const NetworkSpec of_step =
      network_of_step(step_spec(config, std::move(network), replicas, grid, has_clock), ranks, 0);
  const auto alone = comm::make_single_communicator();
  const std::unique_ptr<Network> compiled = compile_network(of_step, spec.backend, *alone);
  if (meeting_settings(config, run.steps_per_epoch) || applied_one_by_one(config, run.replicas) ||
      (!has_clock && served_by_ranks(config, run.replicas)))
    refuse_tables_apart(*compiled);
  if (!spec.resumes && !config.model.weights.empty()) {
    Weights weights(compiled->training.variables, 1);
    read_given({config.model.weights, config.model.weights_except}, weights);
  }
  run.parameters = compiled->parameters;

  (void)goal_of(config, of_step.training.model);
  if (!spec.first) return run;
  warn_of_idle_keys(config, of_step.training.model);
  run.samples_read = read_some(spec, *spec.data.train, compiled->batch());
  for (const data::Dataset* set : {spec.data.validation, spec.data.test})
    if (set) run.samples_read += read_some(spec, *set, compiled->evaluation.batch());
  return run;
}

}  // namespace tutti::train
