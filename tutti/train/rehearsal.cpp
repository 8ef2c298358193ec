#include "tutti/train/rehearsal.h"

#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/data/sampler.h"
#include "tutti/train/data_shards.h"
#include "tutti/train/given_weights.h"
#include "tutti/train/network.h"
#include "tutti/train/settings.h"

namespace tutti {

Rehearsal rehearse(const RehearsalSpec& spec) {
  const RunConfig& config = spec.config;
  Rehearsal run;
  const PartGrid grid = part_grid(config.parallel, spec.ranks, 0);
  run.replicas = static_cast<int>(replica_count(config.run, grid.groups()));
  run.batch = batch_sizes(config.batch, run.replicas);
  const ReplicaMap replicas(run.replicas, grid.groups(), 0);
  const data::Sampler sampler(
      {.seed = static_cast<uint64_t>(config.run.seed),
       .size = spec.data.train->size(),
       .replicas = run.replicas * static_cast<int>(config.batch.accumulate),
       .local_batch = run.batch.local,
       .node_of = nodes_of_turns(
           config, [&](int rank) { return rank / spec.ranks_per_node; }, grid, replicas),
       .strict = config.data.strict});
  run.steps_per_epoch = sampler.steps_per_epoch();
  run.steps = total_steps(config.run, run.steps_per_epoch);
  const LearningRateSchedule schedule(
      learning_rate_settings(config, run.steps_per_epoch, run.batch.global));
  (void)schedule.rate(0);

  NetworkSpec network = network_spec(config, *spec.data.train, run.batch.local);
  network.measure = false;
  network.training.split.grid = grid;
  const auto alone = comm::make_single_communicator();
  const std::unique_ptr<Network> compiled = compile_network(network, spec.backend, *alone);
  if (!spec.resumes && !config.model.weights.empty()) {
    Weights weights(compiled->training.variables, 1);
    read_given({config.model.weights, config.model.weights_except}, weights);
  }
  run.parameters = compiled->training.graph.parameter_count();

  (void)goal_of(config, network.training.model);
  (void)sample_writer(config, *spec.data.train, compiled->batch());
  for (const data::Dataset* set : {spec.data.validation, spec.data.test})
    if (set) (void)sample_writer(config, *set, compiled->evaluation.batch());
  return run;
}

}  // namespace tutti
