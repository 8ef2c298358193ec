#include "tutti/train/loop/run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/process_memory.h"
#include "tutti/device/device.h"
#include "tutti/exchange/average.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/pipeline_check.h"
#include "tutti/train/settings/slow_rank.h"
#include "tutti/train/settings/specs.h"
#include "tutti/train/settings/units.h"

namespace tutti::train {
namespace {

void note_memory(const plan::Plan& plan, trace::RunStart& about) {
  if (plan.options.memory.bytes == 0) return;
  const auto bytes = [](size_t n) { return static_cast<int64_t>(n); };
  const plan::PlannedMemory memory = plan::planned_memory(plan);
  about.planned_bytes = bytes(memory.total());
  about.memory_limit_bytes = bytes(plan.options.memory.bytes);
  about.result_bytes = about.result_bytes_if_kept = bytes(memory.results);
  about.results_again = plan.recomputed.results;
  about.flop_again = plan.recomputed.flop;
  if (plan.recomputed.results > 0)
    about.result_bytes_if_kept = bytes(plan.recomputed.arena_bytes) * plan.options.memory.arenas;
}

void note_device(const device::Device& device, const plan::Plan& plan, trace::RunStart& about) {
  const device::DeviceFacts& facts = device.facts();
  about.device = facts.kind;
  about.device_name = facts.name;
  about.device_driver = facts.driver;
  about.device_runtime = facts.runtime;
  about.device_libraries = facts.libraries;
  about.device_memory_bytes = static_cast<int64_t>(facts.memory_bytes);
  about.planned_bytes = static_cast<int64_t>(plan::planned_memory(plan).total());
}

}  // namespace

void RunReport::watch_step() {
  stragglers_.emplace(run_.exchange().communicator(), run_.exchange().arrivals());
}

void RunReport::start() {
  watch_.emplace();
  run_.epoch.partial = run_.step % run_.shape.steps_per_epoch() != 0;
  run_.epoch.virtual_begun = run_.rounds->virtual_seconds().value_or(0);
  started_ = RunClock::Clock::now();
  startup_seconds_ = trace::unix_now() - run_.spec.process_started;
  log::info("{:.2f} s from start to the first step", startup_seconds_);
}

void RunReport::show_step() {
  if (!run_.spec.terminal || !run_.first() || run_.rounds->takes_several_steps()) return;
  // With several ranks per replica this one may have no loss, or only a share.
  const double mean = run_.interval.mean_loss();
  run_.display.step(
      progress(run_.shape.grid.peers() == 1 && !std::isnan(mean) ? mean : logged_loss_));
}

void RunReport::open_record() {
  // From here on a signal requests a stop on every rank; this comes before the folder holds a run,
  // so that "nothing has changed" still holds until then.
  if (run_.spec.stop_requested) (void)run_.spec.stop_requested();
  run_.comm.barrier();
  const trace::RunStart about = start_event();
  comm::decide(run_.comm, "beginning the record", [&] {
    // This precedes the record, which discards an earlier process's entries for later steps.
    if (run_.past.went_on_from)
      keep::set_aside_after(run_.spec.place.checkpoints, *run_.past.went_on_from, run_.step);
    if (run_.spec.run_begins) run_.spec.run_begins();
    // If nothing is left to do, the configuration stays that of the run so far.
    run_.reporter.emplace(run_.spec.place, about,
                          run_.spec.place.goes_on && run_.nothing_to_do()
                              ? std::string()
                              : run_.spec.resolved_config);
    return std::string();
  });
  if (!run_.first()) return;
  if (run_.spec.staging) run_.reporter->record().append(*run_.spec.staging);
  log_places(run_.spec.place);
  log::info("{} on {}: {} parameters, {}, layout {}", about.model, about.dataset, about.parameters,
            about.precision, run_.network().training.layout);
  if (run_.network().trained_parameters < run_.network().parameters)
    log::info("{} of the parameters are trained, the others are frozen",
              run_.network().trained_parameters);
  log::info("{} replica(s) of {}{} samples on {} rank(s) x {} thread(s), {} buckets by {}",
            about.replicas,
            run_.shape.accumulate > 1 ? fmt::format("{} x ", run_.shape.accumulate) : "",
            about.local_batch, about.ranks, about.threads_per_rank,
            run_.network().training.buckets.size(), run_.comm.transport());
  if (run_.shape.grid.stages() > 1) log::info("{}", pipeline_line(run_.config));
  if (run_.config.plan.memory > 0) log::info("{}", plan::memory_text(run_.network().training));
  if (about.data_nodes)
    log::info(
        "data.shuffle = shard: {} node(s) with {} or more training samples each for itself{}: "
        "results depend on the nodes",
        *about.data_nodes, run_.shape.sampler.least_samples(),
        run_.shape.sampler.by_files() ? ", the files dealt out to them" : "");
  if (about.oversubscribed)
    log::warn("{} ranks x {} threads share {} cores: speeds will not be those of separate cores",
              run_.comm.local_size(), about.threads_per_rank, about.cores_per_host);
}

/// Sums over all ranks that share a replica.
double RunReport::flop_per_sample() {
  std::array<double, 1> flop{run_.network().training.graph.flop() * run_.shape.grid.parts()};
  if (run_.shape.grid.stages() > 1) {
    run_.comm.sum(flop);
    flop[0] /= run_.shape.grid.groups();
  }
  return flop[0] / static_cast<double>(run_.shape.batch.local);
}

trace::RunStart RunReport::start_event() {
  trace::RunStart about = run_.spec.about;
  about.time = trace::unix_now();
  about.model = run_.config.model.name;
  about.library = run_.config.model.library;
  about.library_sha256 = run_.config.model.library_content;
  about.dataset = run_.config.data.dataset;
  about.precision = to_string(run_.config.run.precision);
  about.ranks = run_.comm.size();
  about.replicas = run_.shape.devices;
  if (run_.shape.grid.parts() > 1) about.spatial = run_.config.parallel.spatial;
  about.local_batch = run_.shape.batch.local;
  about.global_batch = run_.shape.batch.global;
  about.train_samples = run_.shape.steps_per_epoch() * run_.shape.batch.global;
  if (run_.config.data.shuffle == config::Shuffle::shard)
    about.data_nodes = run_.shape.sampler.nodes();
  if (run_.spec.data.validation) about.validation_samples = run_.spec.data.validation->size();
  about.threads_per_rank = static_cast<int>(run_.config.run.threads);
  for (int r = 0; r < run_.comm.size(); ++r)
    if (std::ranges::find(about.hosts, run_.comm.host(r)) == about.hosts.end())
      about.hosts.push_back(run_.comm.host(r));
  about.oversubscribed = run_.comm.local_size() * about.threads_per_rank > about.cores_per_host &&
                         about.cores_per_host > 0;
  about.seed = static_cast<uint64_t>(run_.config.run.seed);
  about.parameters = run_.network().parameters;
  about.flop_per_sample = flop_per_sample();
  about.synchronisation = run_.config.sync.scheme;
  about.slowed = slowed_words(run_.config.run);
  if (run_.spec.machine) about.replayed_on = run_.spec.machine->label();
  about.plan_hash = fmt::format("{:016x}", run_.network().training.hash());
  note_memory(run_.network().training, about);
  if (const device::Device* const device = run_.spec.backend->device())
    note_device(*device, run_.network().training, about);
  about.resume_step = run_.step;
  if (!run_.nothing_to_do())
    about.changes = run_.past.changes;  // otherwise nothing was measured with them
  about.metric = run_.goal.goal.metric->name();
  about.higher_is_better = run_.goal.goal.metric->higher_is_better();
  about.target = run_.goal.goal.in_record();
  about.units =
      unit_sentences(model_spec(run_.config, *run_.spec.data.train, run_.shape.batch.local));
  return about;
}

double RunReport::mean_over_batches(std::span<const double> local) {
  // The losses of parts add up to the replica's loss.
  return exchange::sum_over_replicas(run_.comm, run_.shape.batches, local, 1)[0] /
         (run_.shape.replicas.replicas() * run_.shape.accumulate);
}

ProgressState RunReport::progress(double loss) const {
  const double steps = static_cast<double>(std::max<int64_t>(run_.interval.steps, 1));
  ProgressState state;
  state.elapsed_s = RunClock::since(started_);
  state.first_step = run_.first_step;
  state.step = run_.step;
  state.steps = run_.shape.total_steps;
  const int64_t per_epoch = run_.shape.steps_per_epoch();
  state.epoch = (run_.step - 1) / per_epoch + 1;
  // A run that ends within an epoch has no whole number of epochs.
  if (run_.shape.total_steps % per_epoch == 0) state.epochs = run_.shape.total_steps / per_epoch;
  state.loss = loss;
  if (std::isfinite(run_.goal.quality()))
    state.quality = to_text(*run_.goal.goal.metric, run_.goal.quality());
  state.learning_rate = run_.learning_rate(run_.step - 1);
  state.samples_per_s =
      steps * static_cast<double>(run_.shape.batch.global) / run_.interval.times.total;
  state.step_ms = run_.interval.times.total / steps * 1e3;
  state.exposed_communication_ms = run_.interval.times.comm_exposed / steps * 1e3;
  state.input_stall_ms = run_.interval.times.data_wait / steps * 1e3;
  return state;
}

void RunReport::log_steps() {
  if (run_.interval.steps == 0) return;
  // The whole update completes the last step's norm, and perhaps its noise.
  if (run_.network().gradient_norm.valid() ||
      (run_.exchange().noise() && run_.exchange().noise()->any()))
    run_.finish_update();
  const double steps = static_cast<double>(run_.interval.steps);
  double each = steps;  // gradients per replica, on average
  if (run_.rounds->takes_several_steps()) {
    std::array<double, 1> made{static_cast<double>(run_.interval.gradients)};
    run_.comm.sum(made);
    each = made[0] / run_.shape.replicas.replicas();
  }
  const double loss = mean_over_batches(run_.interval.loss) / each;
  run_.epoch.loss += loss * steps;
  run_.epoch.norms += run_.interval.norms;
  const double memory = run_.comm.most(static_cast<double>(device::peak_resident_bytes()));
  if (run_.first()) {
    const StepTimes& t = run_.interval.times;
    trace::StepRecord line{
        .epoch = (run_.step - 1) / run_.shape.steps_per_epoch() + 1,
        .step = run_.step,
        .loss = loss,
        .lr = run_.learning_rate(run_.step - 1),
        .samples_per_s = steps * static_cast<double>(run_.shape.batch.global) / t.total,
        .step_ms = t.total / steps * 1e3,
        .compute_ms = t.compute / steps * 1e3,
        .comm_exposed_ms = t.comm_exposed / steps * 1e3,
        .data_wait_ms = t.data_wait / steps * 1e3,
        .other_ms = t.other() / steps * 1e3,
        .memory_bytes = memory,
        .grad_norm = run_.interval.norms.mean()};
    run_.reporter->add(line);
    logged_loss_ = loss;
    run_.display.report(progress(loss));
  }
  report_noise();
  if (!run_.rounds->takes_several_steps())  // otherwise ranks do not wait in every step
    stragglers_->report(run_.step, run_.first() ? &run_.reporter->record() : nullptr);
  run_.interval = StepInterval(run_.shape.batches.local_count());
}

void RunReport::end_epoch() {
  report_stages();
  report_compression();
  if (run_.first()) {
    log_noise();
    const auto per_epoch = static_cast<double>(run_.shape.steps_per_epoch());
    trace::EpochRecord line{
        .epoch = run_.step / run_.shape.steps_per_epoch(),
        .step = run_.step,
        .seconds = run_.epoch.times.total,
        .train_loss = run_.epoch.partial ? trace::kNotMeasured : run_.epoch.loss / per_epoch,
        .samples_per_s =
            run_.epoch.partial
                ? trace::kNotMeasured
                : per_epoch * static_cast<double>(run_.shape.batch.global) / run_.epoch.times.total,
        .compute_seconds = run_.epoch.times.compute,
        .comm_exposed_seconds = run_.epoch.times.comm_exposed,
        .data_wait_seconds = run_.epoch.times.data_wait,
        .other_seconds = run_.epoch.times.other(),
        .grad_norm = run_.epoch.partial ? trace::kNotMeasured : run_.epoch.norms.mean(),
        .partial = run_.epoch.partial};
    if (const auto seconds = run_.rounds->virtual_seconds()) {
      line.virtual_seconds = *seconds - run_.epoch.virtual_begun;
      line.virtual_waiting_seconds = run_.epoch.virtual_waited;
      log::info("on {}: {:.4g} s so far, {:.1f} % of the epoch waiting for others and messages",
                run_.spec.machine->name, *seconds,
                100 * run_.epoch.virtual_waited / line.virtual_seconds);
    }
    run_.reporter->add(line);
  }
  run_.epoch = {.virtual_begun = run_.rounds->virtual_seconds().value_or(0)};
  report_data();
  report_machine(false);
  run_.rounds->report(run_.step, run_.first() ? &run_.reporter->record() : nullptr);
}

}  // namespace tutti::train
