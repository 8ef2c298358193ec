#include <fmt/format.h>

#include <cmath>
#include <concepts>

#include "tutti/study/report.h"
#include "tutti/trace/csv.h"

namespace tutti::study {
namespace {

/// Cells of one CSV line; an unmeasured number is an empty cell.
struct Line {
  std::string text;
  Line& add(const std::string& cell) { return put(trace::csv_cell(cell)); }
  Line& add(double value) {
    return put(std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string());
  }
  template <std::integral T>
  Line& add(T value) {
    return put(fmt::format("{}", value));
  }
  /// 0 means unknown.
  Line& add_batch(int64_t samples) { return samples ? add(samples) : add(std::string()); }
  Line& add(const Spread& s) { return add(s.mean).add(s.low).add(s.high).add(s.stdev); }
  Line& add(const Ratio& r) { return add(r.value).add(r.low).add(r.high); }

 private:
  Line& put(const std::string& cell) {
    text += (text.empty() ? "" : ",") + cell;
    return *this;
  }
};

/// Returns a path that no spreadsheet takes for a formula, and that still leads to its file.
std::string path_cell(const std::string& path) {
  return path.find_first_of("=+-@") == 0 ? "./" + path : path;
}

}  // namespace

std::string rows_csv(const StudyResult& result) {
  std::string text =
      "ranks,runs,failed,reached,oversubscribed,local_batch,global_batch,samples_per_s,samples_per_"
      "s_min,samples_per_s_max,"
      "samples_per_s_stdev,epoch_s,epoch_s_min,epoch_s_max,epoch_s_stdev,parallel_speedup,parallel_"
      "speedup_low90,"
      "parallel_speedup_high90,parallel_efficiency,target_s,target_s_min,target_s_max,target_s_"
      "stdev,target_epochs,"
      "target_epochs_min,target_epochs_max,target_epochs_stdev,learning_speedup,learning_speedup_"
      "low90,learning_speedup_high90,"
      "learning_efficiency,epochs_factor,remainder,gain_per_second,best,best_min,best_max,best_"
      "stdev,step_ms,compute_ms,"
      "comm_exposed_ms,data_wait_ms,other_ms,threads_per_rank,peak_learning_rate,core_s,core_s_min,"
      "core_s_max,core_s_stdev,arrival_steps,waited_ms,waited_for_late_ms,latest_rank,latest_share,"
      "latest_ms,test,test_min,test_max,test_stdev,parts\n";
  for (const ScaleRow& row : result.rows) {
    Line line;
    line.add(row.ranks)
        .add(row.runs)
        .add(row.failed)
        .add(row.reached)
        .add(int{row.oversubscribed})
        .add_batch(row.local_batch)
        .add_batch(row.global_batch);
    line.add(row.samples_per_s)
        .add(row.epoch_seconds)
        .add(row.parallel)
        .add(row.parallel_efficiency);
    line.add(row.reach_seconds)
        .add(row.epochs_to_target)
        .add(row.learning)
        .add(row.learning_efficiency);
    line.add(row.epochs_factor).add(row.remainder).add(row.rate).add(row.best);
    line.add(row.step.total)
        .add(row.step.compute)
        .add(row.step.comm_exposed)
        .add(row.step.data_wait)
        .add(row.step.other);
    line.add(row.threads_per_rank).add(row.peak_learning_rate).add(row.core_seconds);
    const Lateness& late = row.arrivals;
    line.add(late.steps).add(late.waited_ms).add(late.waited_for_late_ms);
    line.add(late.latest_rank).add(late.latest_share).add(late.latest_ms).add(row.test);
    line.add(row.size().grid());
    text += line.text + '\n';
  }
  return text;
}

std::string runs_csv(const StudyResult& result, const std::string& directory) {
  std::string text =
      "ranks,repeat,seed,usable,samples_per_s,epoch_s,target_s,target_train_s,target_epochs,best,"
      "record,failure,local_batch,global_batch,threads_per_rank,peak_learning_rate,core_s,"
      "step_ms,compute_ms,comm_exposed_ms,data_wait_ms,other_ms,test,parts\n";
  for (const RunSummary& run : result.runs) {
    Line line;
    line.add(run.ranks())
        .add(run.repeat)
        .add(run.log.start.seed)
        .add(int{run.usable()})
        .add(run.samples_per_s)
        .add(run.epoch_seconds);
    line.add(run.reach ? run.reach->wall_seconds : trace::kNotMeasured)
        .add(run.reach ? run.reach->train_seconds : trace::kNotMeasured);
    line.add(run.reach ? run.reach->epoch : trace::kNotMeasured)
        .add(run.best)
        .add(path_cell(relative_path(run.log.path, directory)))
        .add(run.failure);
    const trace::RunStart& start = run.log.start;
    line.add_batch(start.local_batch).add_batch(start.global_batch).add(start.threads_per_rank);
    line.add(run.peak_learning_rate).add(core_seconds(run));
    line.add(run.step.total)
        .add(run.step.compute)
        .add(run.step.comm_exposed)
        .add(run.step.data_wait)
        .add(run.step.other)
        .add(run.test)
        .add(run.size().grid());
    text += line.text + '\n';
  }
  return text;
}

}  // namespace tutti::study
