#include <numeric>

#include "tutti/base/log.h"
#include "tutti/train/loop/trainer_run.h"

namespace tutti {

/// On a machine that is not at hand. Not the plan's own: those are as large as a measurement of the
/// network at hand says.
size_t TrainerRun::clock_bucket_bytes() const {
  return config_.comm.bucket_bytes > 0 ? static_cast<size_t>(config_.comm.bucket_bytes) : 1 << 20;
}

std::vector<Bucket> TrainerRun::clock_buckets() const {
  const Variables& variables = network().training.variables;
  std::vector<GradientEntry> gradients;
  for (const Variable& variable : variables.parameters)
    if (variables.is_trained(variable)) gradients.push_back({variable.name, variable.desc.bytes()});
  return partition_buckets(gradients, clock_bucket_bytes()).buckets;
}

double TrainerRun::clock_state_bytes() const {
  const Variables& variables = network().training.variables;
  return static_cast<double>(variables.trained_bytes * variables.state_kinds.size());
}

ServerClockSpec TrainerRun::server_clock_spec() const {
  ServerClockSpec spec{.machine = *spec_.machine,
                       .workers = served_->workers(replicas_.replicas()),
                       .group = served_->group_of(replicas_.replicas()),
                       .seed = static_cast<uint64_t>(config_.run.seed),
                       .flop = network().training.graph.flop() * grid_.parts() * accumulate_,
                       .buckets = clock_buckets(),
                       .servers = served_->servers,
                       .bound = served_->bound};
  // Real workers meet at lines of the log and checkpoints besides, which are to change no bits.
  spec.round = sampler_.steps_per_epoch() * spec.workers;
  spec.state_bytes = clock_state_bytes();
  if (served_->together) {
    spec.round = 0;
    spec.workers = devices_;
    spec.quorum = replicas_.replicas();
    spec.group = 1;
  }
  return spec;
}

void TrainerRun::build_servers() {
  const double seconds = resumed_ && resumed_->info.metrics.contains(kVirtual)
                             ? resumed_->info.metrics.at(kVirtual)
                             : 0;
  bool known = !resumed_;
  if (one_by_one()) {
    servers_.emplace(*served_, server_clock_spec(), *training_, config_.replay.spill);
    const int64_t epoch = sampler_.steps_per_epoch(), left = epoch - step_ % epoch;
    known = known ||
            servers_->restore(resumed_->state, seconds, step_, left * servers_->clock().workers());
  } else {
    server_clock_.emplace(server_clock_spec());
    if (resumed_ && !(known = import_clock(resumed_->state, *server_clock_)))
      server_clock_->begin(seconds, step_);
  }
  if (!known)
    log::warn_alike(
        "all workers begin at step {} with the servers' weights: the run before had "
        "other workers, or no servers",
        step_);
  if (!first()) return;
  log::info("{} server(s) hold the weights of {} worker(s){}: sync.scheme = \"{}\"",
            served_->servers, server_clock().workers(),
            one_by_one() ? fmt::format(" of {} replica(s), whose gradients are applied one by one",
                                       served_->group_of(replicas_.replicas()))
                         : "",
            config_.sync.scheme);
}

void TrainerRun::follow_clock() {
  if (virtual_) virtual_waited_ += virtual_->step(step_, measured_seconds());
  if (servers_) virtual_waited_ += servers_->take_waited();
  if (!server_clock_) return;
  while (!server_clock_->next().updates) {}
  virtual_waited_ += server_clock_->take_waited();
}

double TrainerRun::virtual_seconds() const {
  return virtual_ ? virtual_->seconds() : server_clock().seconds();
}

void TrainerRun::report_servers() {
  ServersRecord line = rank_servers_ ? rank_servers_line() : clocked_servers_line();
  if (!first()) return;
  if (one_by_one())
    log::info(
        "{} gradients applied, {:.2f} updates after their weights in the mean and {} at most; "
        "{:.1f} MiB sent; workers have weights of the last {} versions",
        line.updates, line.stale_mean, line.stale_most, line.bytes / (1 << 20), line.spread + 1);
  else if (line.dropped > 0)
    log::info(
        "{} of {} gradients came too late for their step, and were dropped", line.dropped,
        line.dropped + std::accumulate(line.staleness.begin(), line.staleness.end(), int64_t{0}));
  reporter_->record().append(std::move(line));
}

ServersRecord TrainerRun::clocked_servers_line() {
  const ServerCounts counts = servers_ ? servers_->take_counts() : server_clock_->take_counts();
  return {.epoch = step_ / sampler_.steps_per_epoch(),
          .step = step_,
          .updates = counts.updates,
          .version = server_clock().version(),
          .dropped = counts.dropped,
          .bytes = counts.bytes,
          .stale_mean = counts.stale_mean(),
          .stale_most = std::ssize(counts.staleness) - 1,
          .staleness = counts.staleness,
          .spread = counts.spread};
}

}  // namespace tutti
