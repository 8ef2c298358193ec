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
  template <class... Values>
  void add(const Values&... values) {
    (put(values), ...);
  }

 private:
  void cell(const std::string& words) { text += (text.empty() ? "" : ",") + words; }
  void put(const std::string& words) { cell(trace::csv_cell(words)); }
  void put(double value) { cell(std::isfinite(value) ? fmt::format("{:.9g}", value) : ""); }
  void put(std::integral auto value) { cell(fmt::to_string(value)); }
  void put(const Spread& s) { add(s.mean, s.low, s.high, s.stdev); }
  void put(const Ratio& r) { add(r.value, r.low, r.high); }
  void put(const StepParts& p) { add(p.total, p.compute, p.comm_exposed, p.data_wait, p.other); }
};

/// 0 means unknown.
std::string batch_cell_of(int64_t samples) { return samples ? fmt::to_string(samples) : ""; }

/// Returns a path that no spreadsheet takes for a formula, and that still leads to its file.
std::string path_cell(const std::string& path) {
  return path.find_first_of("=+-@") == 0 ? "./" + path : path;
}

}  // namespace

std::string rows_csv(const StudyResult& result) {
  std::string text =
      "ranks,runs,failed,reached,oversubscribed,local_batch,global_batch,samples_per_s,"
      "samples_per_s_min,samples_per_s_max,samples_per_s_stdev,epoch_s,epoch_s_min,epoch_s_max,"
      "epoch_s_stdev,parallel_speedup,parallel_speedup_low90,parallel_speedup_high90,"
      "parallel_efficiency,target_s,target_s_min,target_s_max,target_s_stdev,target_epochs,"
      "target_epochs_min,target_epochs_max,target_epochs_stdev,learning_speedup,"
      "learning_speedup_low90,learning_speedup_high90,learning_efficiency,epochs_factor,"
      "remainder,gain_per_second,best,best_min,best_max,best_stdev,step_ms,compute_ms,"
      "comm_exposed_ms,data_wait_ms,other_ms,threads_per_rank,peak_learning_rate,core_s,"
      "core_s_min,core_s_max,core_s_stdev,arrival_steps,waited_ms,waited_for_late_ms,latest_rank,"
      "latest_share,latest_ms,test,test_min,test_max,test_stdev,parts\n";
  for (const ScaleRow& row : result.rows) {
    Line line;
    const Lateness& late = row.arrivals;
    line.add(row.ranks, row.runs, row.failed, row.reached, int{row.oversubscribed},
             batch_cell_of(row.local_batch), batch_cell_of(row.global_batch), row.samples_per_s,
             row.epoch_seconds, row.parallel, row.parallel_efficiency, row.reach_seconds,
             row.epochs_to_target, row.learning, row.learning_efficiency, row.epochs_factor,
             row.remainder, row.rate, row.best, row.step, row.threads_per_rank,
             row.peak_learning_rate, row.core_seconds, late.steps, late.waited_ms,
             late.waited_for_late_ms, late.latest_rank, late.latest_share, late.latest_ms, row.test,
             row.size().grid());
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
    const trace::RunStart& start = run.log.start;
    const auto reach = [&](double trace::TargetReached::*member) {
      return run.reach ? (*run.reach).*member : trace::kNotMeasured;
    };
    line.add(run.ranks(), run.repeat, start.seed, int{run.usable()}, run.samples_per_s,
             run.epoch_seconds, reach(&trace::TargetReached::wall_seconds),
             reach(&trace::TargetReached::train_seconds), reach(&trace::TargetReached::epoch),
             run.best, path_cell(relative_path(run.log.path, directory)), run.failure,
             batch_cell_of(start.local_batch), batch_cell_of(start.global_batch),
             start.threads_per_rank, run.peak_learning_rate, core_seconds(run), run.step, run.test,
             run.size().grid());
    text += line.text + '\n';
  }
  return text;
}

}  // namespace tutti::study
