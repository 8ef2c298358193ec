#include "tutti/train/loop/trainer_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/device/cpu/process_memory.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/train/settings/pipeline_settings.h"
#include "tutti/train/settings/settings.h"

namespace tutti {

void TrainerRun::open_record() {
  // From here on a signal is a wish on every rank, before the folder holds a run: "nothing has
  // changed" would no longer be so.
  if (spec_.stop_requested) (void)spec_.stop_requested();
  comm_.barrier();
  const RunStart about = start_event();
  comm::decide(comm_, "beginning the record", [&] {
    // Before the record, which takes back what an earlier process wrote of later steps.
    if (went_on_from_) set_aside_after(place_.checkpoints, *went_on_from_, step_);
    if (spec_.run_begins) spec_.run_begins();
    // Where nothing is done, the configuration stays that of what was done.
    reporter_.emplace(place_, about,
                      place_.goes_on && nothing_to_do() ? std::string() : spec_.resolved_config);
    return std::string();
  });
  if (!first()) return;
  if (spec_.staging) reporter_->record().append(*spec_.staging);
  log_places(place_);
  log::info("{} on {}: {} parameters, {}, layout {}", about.model, about.dataset, about.parameters,
            about.precision, network().training.layout);
  if (network().trained_parameters < network().parameters)
    log::info("{} of the parameters are trained, the others are frozen",
              network().trained_parameters);
  log::info("{} replica(s) of {}{} samples on {} rank(s) x {} thread(s), {} buckets by {}",
            about.replicas, accumulate_ > 1 ? fmt::format("{} x ", accumulate_) : "",
            about.local_batch, about.ranks, about.threads_per_rank,
            network().training.buckets.size(), comm_.transport());
  if (grid_.stages() > 1) log::info("{}", pipeline_line(config_));
  if (config_.plan.memory > 0) log::info("{}", memory_text(network().training));
  if (about.data_nodes)
    log::info(
        "data.shuffle = shard: {} node(s) with {} or more training samples each for itself{}: "
        "results depend on the nodes",
        *about.data_nodes, sampler_.least_samples(),
        sampler_.by_files() ? ", the files dealt out to them" : "");
  if (about.oversubscribed)
    log::warn("{} ranks x {} threads share {} cores: speeds will not be those of separate cores",
              comm_.local_size(), about.threads_per_rank, about.cores_per_host);
}

namespace {

void note_memory(const Plan& plan, RunStart& about) {
  if (plan.options.memory.bytes == 0) return;
  const auto bytes = [](size_t n) { return static_cast<int64_t>(n); };
  const PlannedMemory memory = planned_memory(plan);
  about.planned_bytes = bytes(memory.total());
  about.memory_limit_bytes = bytes(plan.options.memory.bytes);
  about.result_bytes = about.result_bytes_if_kept = bytes(memory.results);
  about.results_again = plan.recomputed.results;
  about.flop_again = plan.recomputed.flop;
  if (plan.recomputed.results > 0)
    about.result_bytes_if_kept = bytes(plan.recomputed.arena_bytes) * plan.options.memory.arenas;
}

}  // namespace

/// Of all ranks that share a replica.
double TrainerRun::flop_per_sample() {
  std::array<double, 1> flop{network().training.graph.flop() * grid_.parts()};
  if (grid_.stages() > 1) {
    comm_.sum(flop);
    flop[0] /= grid_.groups();
  }
  return flop[0] / static_cast<double>(batch_.local);
}

RunStart TrainerRun::start_event() {
  RunStart about = spec_.about;
  about.time = unix_now();
  about.model = config_.model.name;
  about.library = config_.model.library;
  about.library_sha256 = config_.model.library_content;
  about.dataset = config_.data.dataset;
  about.precision = to_string(config_.run.precision);
  about.ranks = comm_.size();
  about.replicas = devices_;
  if (grid_.parts() > 1) about.spatial = config_.parallel.spatial;
  about.local_batch = batch_.local;
  about.global_batch = batch_.global;
  about.train_samples = sampler_.steps_per_epoch() * batch_.global;
  if (config_.data.shuffle == Shuffle::shard) about.data_nodes = sampler_.nodes();
  if (spec_.data.validation) about.validation_samples = spec_.data.validation->size();
  about.threads_per_rank = static_cast<int>(config_.run.threads);
  for (int r = 0; r < comm_.size(); ++r)
    if (std::ranges::find(about.hosts, comm_.host(r)) == about.hosts.end())
      about.hosts.push_back(comm_.host(r));
  about.oversubscribed = comm_.local_size() * about.threads_per_rank > about.cores_per_host &&
                         about.cores_per_host > 0;
  about.seed = static_cast<uint64_t>(config_.run.seed);
  about.parameters = network().parameters;
  about.flop_per_sample = flop_per_sample();
  about.synchronisation = config_.sync.scheme;
  about.slowed = slowed_words(config_.run);
  if (spec_.machine) about.replayed_on = spec_.machine->label();
  about.plan_hash = fmt::format("{:016x}", network().training.hash());
  note_memory(network().training, about);
  about.resume_step = step_;
  if (!nothing_to_do()) about.changes = changes_;  // else nothing was measured with them
  about.metric = goal_.metric->name();
  about.higher_is_better = goal_.metric->higher_is_better();
  about.target = goal_.in_record();
  about.units = unit_sentences(model_spec(config_, *spec_.data.train, batch_.local));
  return about;
}

double TrainerRun::mean_over_turns(std::span<const double> local) {
  // The losses of parts add up to that of their replica.
  return sum_over_replicas(comm_, turns_, local, 1)[0] / (replicas_.replicas() * accumulate_);
}

ProgressState TrainerRun::progress(double loss) const {
  const double steps = static_cast<double>(std::max<int64_t>(interval_.steps, 1));
  ProgressState state;
  state.elapsed_s = RunClock::since(run_started_);
  state.first_step = first_step_;
  state.step = step_;
  state.steps = total_steps_;
  const int64_t per_epoch = sampler_.steps_per_epoch();
  state.epoch = (step_ - 1) / per_epoch + 1;
  // A run that ends within an epoch has no number of epochs.
  if (total_steps_ % per_epoch == 0) state.epochs = total_steps_ / per_epoch;
  state.loss = loss;
  if (std::isfinite(quality())) state.quality = to_text(*goal_.metric, quality());
  state.learning_rate = learning_rate(step_ - 1);
  state.samples_per_s = steps * static_cast<double>(batch_.global) / interval_.times.total;
  state.step_ms = interval_.times.total / steps * 1e3;
  state.exposed_communication_ms = interval_.times.comm_exposed / steps * 1e3;
  state.input_stall_ms = interval_.times.data_wait / steps * 1e3;
  return state;
}

void TrainerRun::log_steps() {
  if (interval_.steps == 0) return;
  // The norm of the last step is one of them, and so may its noise be.
  if (network().gradient_norm.valid() || (exchange().noise() && exchange().noise()->any()))
    settle();
  const double steps = static_cast<double>(interval_.steps);
  double each = steps;  // gradients of a replica, in the mean
  if (rounds_->takes_several_steps()) {
    std::array<double, 1> made{static_cast<double>(interval_.gradients)};
    comm_.sum(made);
    each = made[0] / replicas_.replicas();
  }
  const double loss = mean_over_turns(interval_.loss) / each;
  epoch_loss_ += loss * steps;
  epoch_norms_ += interval_.norms;
  const double memory = comm_.most(static_cast<double>(peak_resident_bytes()));
  if (first()) {
    const StepTimes& t = interval_.times;
    StepRecord line{.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1,
                    .step = step_,
                    .loss = loss,
                    .lr = learning_rate(step_ - 1),
                    .samples_per_s = steps * static_cast<double>(batch_.global) / t.total,
                    .step_ms = t.total / steps * 1e3,
                    .compute_ms = t.compute / steps * 1e3,
                    .comm_exposed_ms = t.comm_exposed / steps * 1e3,
                    .data_wait_ms = t.data_wait / steps * 1e3,
                    .other_ms = t.other() / steps * 1e3,
                    .memory_bytes = memory,
                    .grad_norm = interval_.norms.mean()};
    reporter_->add(line);
    logged_loss_ = loss;
    display_.report(progress(loss));
  }
  report_noise();
  if (!rounds_->takes_several_steps())  // nobody is waited for in every step
    stragglers_->report(step_, first() ? &reporter_->record() : nullptr);
  interval_ = StepInterval(turns_.local_count());
}

void TrainerRun::end_epoch() {
  report_stages(epoch_steps_);
  report_compression();
  report_waiting();
  if (first()) {
    log_noise();
    const auto per_epoch = static_cast<double>(sampler_.steps_per_epoch());
    EpochRecord line{
        .epoch = step_ / sampler_.steps_per_epoch(),
        .step = step_,
        .seconds = epoch_times_.total,
        .train_loss = epoch_partial_ ? kNotMeasured : epoch_loss_ / per_epoch,
        .samples_per_s = epoch_partial_
                             ? kNotMeasured
                             : per_epoch * static_cast<double>(batch_.global) / epoch_times_.total,
        .compute_seconds = epoch_times_.compute,
        .comm_exposed_seconds = epoch_times_.comm_exposed,
        .data_wait_seconds = epoch_times_.data_wait,
        .other_seconds = epoch_times_.other(),
        .grad_norm = epoch_partial_ ? kNotMeasured : epoch_norms_.mean(),
        .partial = epoch_partial_};
    if (const auto seconds = rounds_->virtual_seconds()) {
      line.virtual_seconds = *seconds - virtual_before_;
      line.virtual_waiting_seconds = virtual_waited_;
      log::info("on {}: {:.4g} s so far, {:.1f} % of the epoch waiting for others and messages",
                spec_.machine->name, *seconds, 100 * virtual_waited_ / line.virtual_seconds);
    }
    reporter_->add(line);
  }
  epoch_times_ = {};
  epoch_norms_ = {};
  epoch_loss_ = 0;
  epoch_partial_ = false;
  virtual_before_ = rounds_->virtual_seconds().value_or(0);
  virtual_waited_ = 0;
  report_data();
  report_machine(false);
  rounds_->report(step_, first() ? &reporter_->record() : nullptr);
}

void TrainerRun::report_stages(int64_t steps) {
  if (grid_.stages() == 1 || steps == 0) return;
  const auto stages = static_cast<size_t>(grid_.stages());
  std::vector<double> sums(3 * stages);  // of stages: computed, waited, memory
  const auto own = static_cast<size_t>(grid_.stage());
  sums[own] = epoch_times_.compute;
  sums[stages + own] = epoch_times_.comm_exposed;
  sums[2 * stages + own] = static_cast<double>(peak_resident_bytes());
  comm_.sum(sums);
  if (!first()) return;
  StagesRecord line{.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1,
                    .step = step_,
                    .micro_batches = accumulate_,
                    .bubble = pipeline_bubble(grid_.stages(), accumulate_)};
  std::string words;
  for (size_t stage = 0; stage < stages; ++stage) {
    const double of_step = 1e3 / static_cast<double>(grid_.groups() * steps);
    line.compute_ms.push_back(sums[stage] * of_step);
    line.waited_ms.push_back(sums[stages + stage] * of_step);
    line.memory_bytes.push_back(sums[2 * stages + stage] / grid_.groups());
    words += fmt::format("{}stage {} {:.1f} ms and {:.1f} ms, {:.0f} MiB", stage == 0 ? "" : "; ",
                         stage, line.compute_ms.back(), line.waited_ms.back(),
                         line.memory_bytes.back() / (1 << 20));
  }
  log::info("a step's computing, its waiting, and memory so far: {}", words);
  reporter_->record().append(std::move(line));
}

void TrainerRun::report_data() {
  if (!spec_.read_counts) return;
  const auto levels = spec_.read_counts->levels();
  std::vector<double> sums;
  for (const data::LevelCount& level : levels)
    for (const double x :
         {static_cast<double>(level.samples), static_cast<double>(level.bytes), level.seconds})
      sums.push_back(x);
  sums.push_back(static_cast<double>(spec_.read_counts->left_out()));
  comm_.sum(sums);
  DataRecord line{.epoch = (step_ + sampler_.steps_per_epoch() - 1) / sampler_.steps_per_epoch(),
                  .step = step_,
                  .left_out = static_cast<int64_t>(sums.back())};
  data_sums_.resize(sums.size());
  const auto since = [&](size_t i) { return sums[i] - data_sums_[i]; };
  std::string words;
  for (size_t l = 0; l < levels.size(); ++l) {
    line.levels.emplace_back(data::kReadLevels[l]);
    line.samples.push_back(static_cast<int64_t>(since(3 * l)));
    line.bytes.push_back(static_cast<int64_t>(since(3 * l + 1)));
    line.seconds.push_back(since(3 * l + 2));
    words += fmt::format("{}{} {} samples, {:.1f} MiB", l == 0 ? "" : "; ", data::kReadLevels[l],
                         line.samples.back(), since(3 * l + 1) / (1 << 20));
  }
  if (since(sums.size() - 1) > 0) line.reasons = new_reasons();
  data_sums_ = sums;
  if (!first()) return;
  log::info("data since the last such line: {}{}", words,
            line.left_out > 0 ? fmt::format("; left out so far: {}", line.left_out) : "");
  reporter_->record().append(std::move(line));
}

std::vector<std::string> TrainerRun::new_reasons() {
  constexpr int kMostRanks = 64;  // of whom texts are gathered; the log has those of all
  std::vector<std::string> own = spec_.read_counts->reasons(), all;
  own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(reasons_told_));
  reasons_told_ += own.size();
  for (int r = 0; r < std::min(comm_.size(), kMostRanks); ++r) {
    const std::string texts =
        comm::broadcast_text(comm_, fmt::format("{}", fmt::join(own, "\n")), r);
    std::istringstream lines(texts);
    for (std::string text; std::getline(lines, text);)
      if (std::ranges::find(all, text) == all.end()) all.push_back(text);
  }
  return all;
}

void TrainerRun::report_compression() {
  const std::string line = exchange().compression_line(std::exchange(epoch_steps_, 0));
  if (first() && !line.empty()) log::info("{}", line);
}

}  // namespace tutti
