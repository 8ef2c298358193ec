#include "tutti/cli/verbs/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/bench/step_bench.h"
#include "tutti/cli/job/job.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/device/cpu/machine_watch.h"
#include "tutti/device/cpu/process_memory.h"
#include "tutti/study/statistics.h"
#include "tutti/sync/server_clock.h"
#include "tutti/sync/virtual_clock.h"
#include "tutti/train/settings/planning_rules.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::cli {
namespace {

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Returns the bytes that a rank of one replica holds while it trains, without the data.
double planned_bytes(const plan::Plan& plan, const plan::Executor& executor,
                     int64_t micro_batches) {
  const plan::Variables& variables = plan.variables;
  const auto slots = static_cast<double>(std::bit_width(static_cast<uint64_t>(micro_batches)));
  return static_cast<double>(variables.parameter_bytes + variables.statistic_bytes +
                             variables.table_bytes +
                             variables.trained_bytes * variables.state_kinds.size()) +
         slots * static_cast<double>(variables.trained_bytes) +
         static_cast<double>(executor.memory_bytes());
}

/// Facts that do not depend on the batch; the first batch fills them.
struct NetworkFacts {
  double parameters = 0, weight_bytes = 0, state_bytes = 0, flop_per_sample = 0;
  std::vector<exchange::Bucket> buckets;
  bool has_tables = false;
};

/// Returns the bytes that this process has, of the device if there is one.
double bytes_in_use(const ComputeBackend& compute) {
  return static_cast<double>(compute.device ? compute.device->counts().bytes
                                            : device::proportional_bytes());
}

/// Examines one batch: its plan, and if that fits the memory, its steps.
BatchAdvice look_at(const AdviceQuestion& question, const ComputeBackend& compute,
                    const data::Dataset& dataset, int64_t batch, NetworkFacts& facts) {
  const auto communicator = comm::make_single_communicator();
  train::NetworkSpec spec = train::network_spec(question.config, dataset, batch);
  spec.tuning_file = tuning_file(question.config.plan.tuning);
  spec.warns = false;
  const double before = bytes_in_use(compute);
  StepBench bench(spec, train::exchange_settings(question.config.comm), compute.backend(),
                  split::PartGrid(), *communicator);
  const plan::Plan& plan = bench.network().training;
  BatchAdvice advice{
      .batch = batch,
      .planned_bytes = planned_bytes(plan, bench.executor(), question.config.batch.accumulate)};
  facts.parameters = static_cast<double>(bench.network().parameters);
  facts.weight_bytes = static_cast<double>(plan.variables.trained_bytes);
  facts.state_bytes =
      static_cast<double>(plan.variables.trained_bytes * plan.variables.state_kinds.size());
  facts.flop_per_sample = bench.flop_per_image();
  facts.buckets = bench.network().buckets.buckets;
  facts.has_tables = bench.network().has_tables;
  if (advice.planned_bytes > static_cast<double>(question.memory_bytes)) return advice;
  std::vector<double> updates;
  bench.step();
  for (int i = 0; i < question.steps; ++i) {
    advice.steps.push_back(bench.step());
    updates.push_back(bench.update_seconds());
  }
  advice.step_seconds = median_of(advice.steps);
  advice.update_seconds = median_of(updates);
  advice.measured_bytes = bytes_in_use(compute) - before;
  return advice;
}

/// Number of steps of all replicas that are simulated, the same for every scheme, so that chance
/// has equal effect.
constexpr int64_t kClockSteps = 50;

double seconds_together(const AdviceQuestion& question, const config::RunConfig& config,
                        const Advice& advice, const NetworkFacts& facts, int replicas) {
  // An epoch is as long as the simulation: a scheme that meets once in each epoch does so once.
  sync::VirtualClock clock(
      {.machine = *question.machine,
       .replicas = replicas,
       .seed = static_cast<uint64_t>(config.run.seed),
       .flop = advice.flop,
       .buckets = facts.buckets,
       .state_bytes = facts.state_bytes,
       .sync = replicas > 1 ? train::meeting_settings(config, kClockSteps) : std::nullopt});
  const std::vector<double> measured(static_cast<size_t>(replicas), advice.compute);
  for (int64_t step = 0; step < kClockSteps; ++step) clock.step(step, measured);
  return clock.seconds();
}

/// Returns the same where servers hold the weights.
double seconds_served(const AdviceQuestion& question, const config::RunConfig& config,
                      const train::ServerSettings& servers, const Advice& advice,
                      const NetworkFacts& facts, int replicas) {
  comm::Machine machine = *question.machine;
  if (std::exchange(machine.measured, false)) machine.step_seconds = advice.compute;
  sync::ServerClock clock({.machine = machine,
                           .workers = servers.together ? replicas : servers.workers(replicas),
                           .group = servers.together ? 1 : servers.group_of(replicas),
                           .seed = static_cast<uint64_t>(config.run.seed),
                           .flop = advice.flop,
                           .buckets = facts.buckets,
                           .servers = servers.servers,
                           .bound = servers.bound,
                           .quorum = servers.together ? replicas : 0});
  const int64_t updates = kClockSteps * (servers.together ? 1 : servers.workers(replicas));
  while (clock.version() < updates) clock.next();
  return clock.seconds();
}

/// Simulates steps of `workers` replicas: returns their samples/s divided by one replica's. Returns
/// nothing if groups do not divide them.
std::optional<double> replayed_speedup(const AdviceQuestion& question,
                                       const config::RunConfig& config, const Advice& advice,
                                       const NetworkFacts& facts, int64_t workers) {
  const int replicas = static_cast<int>(workers);
  const std::optional<train::ServerSettings> servers = train::server_settings(config);
  if (servers && replicas > servers->group && replicas % servers->group != 0) return std::nullopt;
  const double seconds = servers && replicas > 1
                             ? seconds_served(question, config, *servers, advice, facts, replicas)
                             : seconds_together(question, config, advice, facts, replicas);
  return static_cast<double>(workers) * seconds_together(question, config, advice, facts, 1) /
         seconds;
}

void plan_workers(const AdviceQuestion& question, const NetworkFacts& facts, Advice& advice) {
  const comm::Machine& machine = *question.machine;
  // However many workers share a server, its link carries their gradients and weights one after
  // another.
  advice.overhead =
      2 * (machine.between.latency + facts.weight_bytes * machine.between.seconds_per_byte);
  const train::StepCost cost{advice.compute, advice.overhead};
  advice.workers_by_rule = train::workers_for_efficiency(cost, question.efficiency);
  for (const AdvisedScheme& scheme : question.schemes)
    advice.by_clock.push_back({.scheme = scheme.name});
  for (const int64_t workers : question.workers) {
    WorkerAdvice& line = advice.workers.emplace_back(WorkerAdvice{
        .workers = workers,
        .rule_speedup = train::planned_speedup(cost, static_cast<double>(workers)),
        .servers = train::servers_to_hide(facts.weight_bytes, workers,
                                          machine.between.seconds_per_byte, advice.compute)});
    for (size_t s = 0; s < question.schemes.size(); ++s) {
      const auto speedup =
          replayed_speedup(question, question.schemes[s].config, advice, facts, workers);
      line.replayed_speedups.push_back(speedup);
      if (!speedup) continue;
      Advice::ByClock& most = advice.by_clock[s];
      most.ends = *speedup >= question.efficiency * static_cast<double>(workers);
      if (most.ends) most.workers = workers;
    }
  }
}

/// Returns the seconds of a replica's step on the machine, or without one here: as in a replay's
/// clock.
double step_seconds(const AdviceQuestion& question, const Advice& advice) {
  if (question.machine && !question.machine->measured)
    return question.machine->step_seconds > 0 ? question.machine->step_seconds
                                              : advice.flop / question.machine->device_flops;
  const BatchAdvice& own = *std::ranges::find(advice.batches, advice.batch, &BatchAdvice::batch);
  // Micro-batches are computed one after another, and updated once.
  return static_cast<double>(advice.micro_batches) * (own.step_seconds - own.update_seconds) +
         own.update_seconds;
}

}  // namespace

void choose_batch(Advice& advice) {
  constexpr double kSame = 0.9;  // share of the fastest's speed: one slow step makes any interval
                                 // wide
  const auto speeds = [](const BatchAdvice& line) {
    std::vector<double> rates;
    for (const double seconds : line.steps)
      rates.push_back(static_cast<double>(line.batch) / seconds);
    return study::spread(rates);
  };
  advice.best_batch = 0;
  advice.as_fast.clear();
  const auto fastest = std::ranges::max_element(advice.batches, {}, &BatchAdvice::samples_per_s);
  if (fastest == advice.batches.end() || fastest->step_seconds == 0) return;
  for (const BatchAdvice& line : advice.batches) {
    if (line.step_seconds == 0) continue;
    const study::Ratio ratio = study::ratio_of_means(speeds(*fastest), speeds(line));
    // Without an interval, as for a single step, speeds alone decide.
    if (line.samples_per_s() >= kSame * fastest->samples_per_s() && !(ratio.low > 1))
      advice.as_fast.push_back(line.batch);
  }
  advice.best_batch = std::ranges::min(advice.as_fast);
}

Advice advise(const AdviceQuestion& question, const ComputeBackend& compute) {
  config::RunConfig config = question.config;
  config.data.generate_when_read = true;
  const auto dataset = open_configured(config, "train");
  Advice advice{
      .model = config.model.name,
      .batch = config::batch_sizes(config.batch, config::replica_count(config.run, 1)).local,
      .micro_batches = config.batch.accumulate,
      .efficiency = question.efficiency,
      .memory_bytes = static_cast<double>(question.memory_bytes)};
  NetworkFacts facts;
  std::vector<int64_t> batches = question.batches;
  batches.push_back(advice.batch);
  std::ranges::sort(batches);
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  const device::MachineWatch watch;
  for (const int64_t batch : batches) {
    log::info("batch {}: compiling and timing {} steps", batch, question.steps);
    try {
      advice.batches.push_back(look_at(question, compute, *dataset, batch, facts));
    } catch (const DeviceError& error) {
      // The device has no memory for this batch. Smaller ones were measured all the same.
      if (!compute.device || advice.batches.empty()) throw;
      log::warn("batch {}: {}", batch, error.what());
      advice.batches.push_back({.batch = batch});
    }
  }
  advice.machine_use = watch.use();
  choose_batch(advice);
  advice.parameters = facts.parameters;
  advice.weight_bytes = facts.weight_bytes;
  advice.flop = facts.flop_per_sample * static_cast<double>(advice.batch * advice.micro_batches);
  advice.compute = step_seconds(question, advice);
  advice.compute_measured = !question.machine || question.machine->measured;
  if (!question.machine) return advice;
  advice.machine = question.machine->name;
  if (facts.has_tables)
    advice.workers_left_out =
        "the model looks rows up in tables, whose exchange these rules leave out";
  else if (advice.compute > 0)
    plan_workers(question, facts, advice);
  else
    advice.workers_left_out = fmt::format(
        "batch {} does not fit the memory, so how long a step takes is not known; a smaller "
        "batch.local, or more --memory",
        advice.batch);
  return advice;
}

}  // namespace tutti::cli
