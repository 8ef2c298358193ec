#include "tutti/study/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tutti/study/curves.h"
#include "tutti/study/notes.h"

namespace tutti::study {
namespace {

/// Collects a quantity over runs or rows, without unmeasured ones.
template <class Items, class Get>
std::vector<double> measured(const Items& items, Get get) {
  std::vector<double> values;
  for (const auto& item : items)
    if (const double value = get(item); std::isfinite(value)) values.push_back(value);
  return values;
}

/// The first value holds start-up costs (first touch, cold caches, kernel choice); it is left out
/// if there are others.
std::vector<double> without_first(std::vector<double> values) {
  if (values.size() >= 2) values.erase(values.begin());
  return values;
}

template <class Events>
std::vector<double> steady(const Events& events, double Events::value_type::*member) {
  return without_first(measured(events, [member](const auto& event) { return event.*member; }));
}

std::vector<trace::EpochRecord> whole_epochs(const trace::RunLog& log) {
  std::vector<trace::EpochRecord> whole;
  for (const trace::EpochRecord& epoch : log.epochs)
    if (!epoch.partial) whole.push_back(epoch);
  return whole;
}

double mean(const std::vector<double>& values) { return spread(values).mean; }

StepParts step_parts(const trace::RunLog& log) {
  StepParts parts;
  if (!log.steps.empty()) {
    parts.total = mean(steady(log.steps, &trace::StepRecord::step_ms));
    parts.compute = mean(steady(log.steps, &trace::StepRecord::compute_ms));
    parts.comm_exposed = mean(steady(log.steps, &trace::StepRecord::comm_exposed_ms));
    parts.data_wait = mean(steady(log.steps, &trace::StepRecord::data_wait_ms));
    parts.other = mean(steady(log.steps, &trace::StepRecord::other_ms));
    return parts;
  }
  const auto epochs = whole_epochs(log);
  if (epochs.empty() || epochs.back().step <= 0 || epochs.back().epoch <= 0) return parts;
  const double steps_per_epoch =
      static_cast<double>(epochs.back().step) / static_cast<double>(epochs.back().epoch);
  const auto per_step = [&](double trace::EpochRecord::*member) {
    return mean(steady(epochs, member)) * 1e3 / steps_per_epoch;
  };
  return {per_step(&trace::EpochRecord::seconds), per_step(&trace::EpochRecord::compute_seconds),
          per_step(&trace::EpochRecord::comm_exposed_seconds),
          per_step(&trace::EpochRecord::data_wait_seconds),
          per_step(&trace::EpochRecord::other_seconds)};
}

bool same_target(const trace::Target& a, const trace::Target& b) {
  return a.metric == b.metric && a.value == b.value && a.higher_is_better == b.higher_is_better;
}

/// Finds the first evaluation that reached the target, not the one that training noted, because a
/// resumed run may have had another target.
std::optional<trace::TargetReached> find_reach(const trace::RunLog& log,
                                               const trace::Target& target) {
  for (const trace::EvalRecord& eval : log.evals)
    if (target.reached_by(eval.value(target.metric)))  // false for NaN
      return trace::TargetReached{eval.time,         eval.epoch,         eval.step,
                                  eval.wall_seconds, eval.train_seconds, eval.value(target.metric)};
  return std::nullopt;
}

/// Whether its own target ended the run: a resumed run may have gone on from there, or found that
/// it was at its last step anyway.
bool ended_at_own_target(const trace::RunLog& log) {
  if (!log.target_reached || log.evals.empty()) return false;
  if (log.stop && log.stop->status == trace::RunStatus::target_missed) return false;
  return log.target_reached->step == log.evals.back().step;
}

bool oversubscribed(const trace::RunStart& start) {
  if (start.oversubscribed) return true;
  if (start.cores_per_host <= 0) return false;
  const int hosts = std::max<int>(1, static_cast<int>(start.hosts.size()));
  return (start.ranks + hosts - 1) / hosts * start.threads_per_rank > start.cores_per_host;
}

}  // namespace

Measure measure_of(const std::optional<trace::Target>& target, const trace::RunStart& start) {
  if (target) return {target->metric, target->higher_is_better};
  if (!start.metric.empty()) return {start.metric, start.higher_is_better};
  return start.target ? measure_of(start.target, start) : Measure{};
}

std::string judge_of(const trace::RunLog& log) {
  return log.start.validation_samples ? "validation" : "test";
}

std::string metric_words(const std::string& metric, const std::string& judge) {
  return judge + " " + metric;
}

double core_seconds(const RunSummary& run) {
  return run.reach ? run.reach->wall_seconds * run.ranks() * run.log.start.threads_per_rank
                   : trace::kNotMeasured;
}

void measure_run(RunSummary& run, const std::optional<trace::Target>& target,
                 const Measure& measure) {
  const auto epochs = whole_epochs(run.log);
  // Virtual times have neither start-up costs nor outliers, and only some epochs have meetings.
  run.epoch_seconds =
      run.log.start.replayed_on.empty()
          ? median(steady(epochs, &trace::EpochRecord::seconds))
          : mean(measured(epochs, [](const trace::EpochRecord& epoch) { return epoch.seconds; }));
  run.timed_epochs = spread(steady(epochs, &trace::EpochRecord::seconds));
  run.machine = machine_of(run.log);
  run.first_epoch_only =
      epochs.size() == 1 && epochs.front().epoch == 1 && run.log.start.replayed_on.empty();
  // Computed from that time so that both agree; for an even number of epochs the medians would not.
  if (!epochs.empty())
    run.samples_per_s = epochs.front().samples_per_s * epochs.front().seconds / run.epoch_seconds;
  if (std::isnan(run.samples_per_s))
    run.samples_per_s = median(steady(run.log.steps, &trace::StepRecord::samples_per_s));
  run.step = step_parts(run.log);
  const auto rates = measured(run.log.steps, [](const trace::StepRecord& step) { return step.lr; });
  if (!rates.empty()) run.peak_learning_rate = *std::ranges::max_element(rates);
  for (const trace::NoiseRecord& line : run.log.noise)
    if (std::isfinite(line.critical_batch)) run.critical_batch = line.critical_batch;
  if (target) run.reach = find_reach(run.log, *target);
  // Whether it would have reached the target later is unknown.
  run.cut_off = target && !run.reach && ended_at_own_target(run.log);
  const auto values = measured(
      run.log.evals, [&](const trace::EvalRecord& eval) { return eval.value(measure.metric); });
  if (run.log.test) run.test = run.log.test->value(measure.metric);
  if (!values.empty())
    run.best = measure.higher_is_better ? *std::ranges::max_element(values)
                                        : *std::ranges::min_element(values);
}

namespace {

template <class Get>
Spread spread_over(const Runs& runs, Get get) {
  return spread(measured(runs, [&](const RunSummary* run) { return std::invoke(get, *run); }));
}

/// Returns the runs whose times are compared: start-up costs in some of them would look like
/// chance.
Runs timed_runs(const Runs& runs) {
  if (std::ranges::none_of(runs, [](const RunSummary* run) {
        return !run->first_epoch_only && std::isfinite(run->epoch_seconds);
      }))
    return runs;
  Runs timed = runs;
  std::erase_if(timed, std::mem_fn(&RunSummary::first_epoch_only));
  return timed;
}

/// Returns the start of a run that recorded its batch; a run that ended at once did not.
const trace::RunStart& start_of(const Runs& runs) {
  const auto begun = std::ranges::find_if(
      runs, [](const RunSummary* run) { return run->log.start.local_batch > 0; });
  return (begun == runs.end() ? runs.front() : *begun)->log.start;
}

ScaleRow make_row(const Size& size, const Runs& all, const std::string& metric) {
  ScaleRow row;
  row.ranks = size.ranks;
  row.spatial = size.spatial;
  Runs runs;
  for (const RunSummary* run : all) {
    row.oversubscribed |= oversubscribed(run->log.start);
    if (run->usable()) runs.push_back(run);
  }
  row.runs = static_cast<int>(runs.size());
  row.stopped = static_cast<int>(std::ranges::count_if(all, &RunSummary::stopped));
  row.failed = static_cast<int>(all.size() - runs.size()) - row.stopped;
  const trace::RunStart& start = start_of(runs.empty() ? all : runs);
  row.local_batch = start.local_batch;
  row.global_batch = start.global_batch;
  row.threads_per_rank = start.threads_per_rank;
  row.peak_learning_rate = spread_over(runs, &RunSummary::peak_learning_rate).high;
  row.critical_batch = spread_over(runs, &RunSummary::critical_batch);
  const Runs timed = timed_runs(runs);
  row.untimed = static_cast<int>(runs.size() - timed.size());
  row.first_epochs = std::ranges::any_of(timed, &RunSummary::first_epoch_only);
  row.epoch_seconds = spread_over(timed, &RunSummary::epoch_seconds);
  row.samples_per_s = spread_over(timed, &RunSummary::samples_per_s);
  row.reach_seconds = spread_over(runs, [](const RunSummary& run) {
    return run.reach ? run.reach->wall_seconds : trace::kNotMeasured;
  });
  row.core_seconds = spread_over(runs, core_seconds);
  row.epochs_to_target = spread_over(runs, [](const RunSummary& run) {
    return run.reach ? run.reach->epoch : trace::kNotMeasured;
  });
  row.best = spread_over(runs, &RunSummary::best);
  row.test = spread_over(runs, &RunSummary::test);
  row.reached = row.reach_seconds.count;
  row.cut_off = static_cast<int>(std::ranges::count_if(runs, &RunSummary::cut_off));
  const auto part = [&](double StepParts::*member) {
    return spread_over(runs, [&](const RunSummary& run) { return run.step.*member; }).mean;
  };
  row.step = {part(&StepParts::total), part(&StepParts::compute), part(&StepParts::comm_exposed),
              part(&StepParts::data_wait), part(&StepParts::other)};
  row.quality = quality_curve(runs, metric);
  row.training_loss = loss_curve(runs);
  row.arrivals = arrivals_of(runs);
  return row;
}

Ratio scaled(const Ratio& ratio, double factor) {
  return {ratio.value * factor, ratio.low * factor, ratio.high * factor};
}

/// At the base the speed-up is n0 by definition and has no uncertainty.
Ratio speedup(const Spread& base, const Spread& here, int base_ranks, bool is_base) {
  if (is_base && here.count > 0)
    return {double(base_ranks), trace::kNotMeasured, trace::kNotMeasured};
  return scaled(ratio_of_means(base, here), base_ranks);
}

void compare(ScaleRow& row, const ScaleRow& base, const Runs& runs) {
  const bool is_base = row.is_base = row.size() == base.size();
  const double n0 = base.ranks;
  row.parallel_from_throughput = row.epoch_seconds.count == 0 || base.epoch_seconds.count == 0;
  const auto& mine = row.parallel_from_throughput ? row.samples_per_s : row.epoch_seconds;
  const auto& theirs = row.parallel_from_throughput ? base.samples_per_s : base.epoch_seconds;
  // The ratio is inverted: more samples/s is faster, and fewer seconds is.
  row.parallel = row.parallel_from_throughput ? speedup(mine, theirs, base.ranks, is_base)
                                              : speedup(theirs, mine, base.ranks, is_base);
  row.parallel_efficiency = row.parallel.value / row.ranks;
  row.learning = speedup(base.reach_seconds, row.reach_seconds, base.ranks, is_base);
  row.learning_efficiency = row.learning.value / row.ranks;
  row.epochs_factor = base.epochs_to_target.mean / row.epochs_to_target.mean;
  row.remainder = row.learning.value / (row.parallel.value * row.epochs_factor);
  for (const RunSummary* run : timed_runs(runs)) {
    const double parallel = row.parallel_from_throughput
                                ? run->samples_per_s / base.samples_per_s.mean
                                : base.epoch_seconds.mean / run->epoch_seconds;
    if (std::isfinite(parallel)) row.parallel_runs.push_back(parallel * n0);
  }
  for (const RunSummary* run : runs)
    if (run->reach && base.reached)
      row.learning_runs.push_back(base.reach_seconds.mean / run->reach->wall_seconds * n0);
}

struct Point {
  double error, seconds;
};

/// Returns validation error and wall time after `epoch` epochs, interpolated linearly between the
/// evaluations around it.
Point at_epoch(const trace::RunLog& log, double epoch, const std::string& metric) {
  const trace::EvalRecord* before = nullptr;
  for (const trace::EvalRecord& eval : log.evals) {
    if (!std::isfinite(eval.value(metric))) continue;
    if (eval.epoch >= epoch) {
      if (!before || eval.epoch == epoch) return {eval.value(metric), eval.wall_seconds};
      const double part = (epoch - before->epoch) / (eval.epoch - before->epoch);
      return {std::lerp(before->value(metric), eval.value(metric), part),
              std::lerp(before->wall_seconds, eval.wall_seconds, part)};
    }
    before = &eval;
  }
  return {trace::kNotMeasured, trace::kNotMeasured};
}

/// Computes L_rate of every row: error per second over the epochs that all usable runs have in
/// common.
void rates(std::vector<ScaleRow>& rows, const std::map<Size, Runs>& usable,
           const Measure& measure) {
  const std::string& metric = measure.metric;
  double first = 0, last = INFINITY;
  for (const auto& [size, runs] : usable)
    for (const RunSummary* run : runs) {
      const auto epochs = measured(run->log.evals, [&](const trace::EvalRecord& e) {
        return std::isfinite(e.value(metric)) ? e.epoch : trace::kNotMeasured;
      });
      first = std::max(first, epochs.empty() ? INFINITY : epochs.front());
      last = std::min(last, epochs.empty() ? -INFINITY : epochs.back());
    }
  if (!(first < last)) return;
  std::map<Size, double> rate;
  for (const auto& [size, runs] : usable)
    rate[size] = spread_over(runs, [&](const RunSummary& run) {
                   const Point a = at_epoch(run.log, first, metric),
                               b = at_epoch(run.log, last, metric);
                   return (b.error - a.error) /
                          (b.seconds - a.seconds);  // the metric's; the error is its complement
                 }).mean;
  const double direction = measure.higher_is_better ? 1 : -1;
  const double base = rate.begin()->second;  // rate of the smallest size
  if (!(base * direction > 0)) return;       // the base run did not learn: no rate to compare with
  for (ScaleRow& row : rows)
    if (rate.contains(row.size())) row.rate = rate[row.size()] / base;
}

std::string mode_of(std::vector<ScaleRow> rows) {
  std::erase_if(rows, [](const ScaleRow& row) { return row.runs == 0; });
  if (rows.size() < 2) return "one size";
  const auto constant = [&](int64_t ScaleRow::*member) {
    return std::ranges::all_of(
        rows, [&](const ScaleRow& row) { return row.*member == rows.front().*member; });
  };
  if (constant(&ScaleRow::global_batch)) return "strong";
  return constant(&ScaleRow::local_batch) ? "weak" : "mixed";
}

/// Returns the target that most of the records name (they should all name one).
std::optional<trace::Target> target_of(const std::vector<RunSummary>& runs,
                                       std::vector<std::string>& notes) {
  std::optional<trace::Target> target;
  for (const RunSummary& run : runs) {
    if (!run.usable() || !run.log.start.target) continue;
    if (!target) target = run.log.start.target;
    if (!same_target(*target, *run.log.start.target)) {
      notes.push_back(fmt::format("The runs name different targets; {} {} is used for all.",
                                  target->metric, target->value));
      break;
    }
  }
  return target;
}

/// Without a target, returns the metric of the first usable run (they should all have one).
Measure common_measure(const std::optional<trace::Target>& target,
                       const std::vector<RunSummary>& runs, std::vector<std::string>& notes) {
  std::optional<Measure> measure;
  for (const RunSummary& run : runs) {
    if (!run.usable()) continue;
    const Measure own = measure_of(target, run.log.start);
    if (!measure) measure = own;
    if (measure->metric != own.metric) {
      notes.push_back(
          fmt::format("The runs name different metrics; {} is used for all.", measure->metric));
      break;
    }
  }
  return measure.value_or(measure_of(target, trace::RunStart{}));
}

}  // namespace

StudyResult evaluate(std::vector<RunSummary> runs, std::optional<trace::Target> target) {
  StudyResult result;
  result.target = target ? target : target_of(runs, result.notes);
  result.measure = common_measure(result.target, runs, result.notes);
  std::ranges::stable_sort(runs, [](const RunSummary& a, const RunSummary& b) {
    return std::pair(a.size(), a.repeat) < std::pair(b.size(), b.repeat);
  });
  for (RunSummary& run : runs) measure_run(run, result.target, result.measure);
  result.runs = std::move(runs);

  std::map<Size, Runs> all, usable;
  for (const RunSummary& run : result.runs) {
    all[run.size()].push_back(&run);
    if (run.usable()) usable[run.size()].push_back(&run);
  }
  for (const auto& [size, group] : all)
    result.rows.push_back(make_row(size, group, result.measure.metric));
  result.mode = mode_of(result.rows);
  if (usable.empty()) {
    result.notes.push_back("No run is usable: there is nothing to compare.");
  } else {
    result.base_ranks = usable.begin()->first.ranks;
    const trace::RunStart& start = usable.begin()->second.front()->log.start;
    result.judge = judge_of(usable.begin()->second.front()->log);
    result.title = start.model;
    if (!start.dataset.empty()) result.title += " on " + start.dataset;
    if (!start.precision.empty()) result.title += ", " + start.precision;
    const ScaleRow base = *std::ranges::find_if(
        result.rows, [&](const ScaleRow& row) { return row.size() == usable.begin()->first; });
    for (ScaleRow& row : result.rows)
      if (row.runs) compare(row, base, usable[row.size()]);
    rates(result.rows, usable, result.measure);
  }
  add_notes(result);
  return result;
}

}  // namespace tutti::study
