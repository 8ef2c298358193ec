#include "tutti/train/loop/run_shape.h"

#include "tutti/train/settings/data_shards.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {

RunShape::RunShape(const config::RunConfig& config, const data::Dataset& train, bool replay,
                   comm::Communicator& communicator)
    : grid(part_grid(config.parallel, communicator.size(), communicator.rank())),
      devices(static_cast<int>(config::replica_count(config.run, grid.groups()))),
      gradients(static_cast<int>(gradients_of_step(config, devices))),
      replicas(replay ? gradients : devices, grid.groups(), grid.group()),
      workers(workers_of(replicas, grid, communicator.size(), communicator.rank())),
      accumulate(static_cast<int>(config.batch.accumulate)), batches(workers.times(accumulate)),
      batch(config::batch_sizes(config.batch, gradients)),
      sampler({.seed = static_cast<uint64_t>(config.run.seed),
               .size = train.size(),
               .replicas = gradients * accumulate,
               .local_batch = batch.local,
               .node_of = nodes_of_micro_batches(
                   config, [&](int rank) { return communicator.node(rank); }, grid, replicas),
               .file_samples = samples_of_files(config, train),
               .strict = config.data.strict,
               .spacing = train.spacing(),
               .anywhere = config.data.windows == config::TextWindows::random}),
      total_steps(tutti::train::total_steps(config.run, sampler.steps_per_epoch())),
      schedule(learning_rate_schedule(config, sampler.steps_per_epoch(), batch.global)) {}

}  // namespace tutti::train
