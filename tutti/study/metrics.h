#pragma once
// Computes parallel and learning speed-up from run records. A size is a number of ranks and how
// they share samples. For n ranks, base n0 = the ranks of the smallest size with usable runs, q = a
// quality fixed before the study:
//   T_epoch        median of a run's epochs, training only, the first left out when there are two
//                  or more; a run with its first epoch alone is left out where another has more
//   S_par(n)       = T_epoch(n0) / T_epoch(n) * n0         E_par = S_par / n
//   T_reach(n; q)  wall time from the first weight update until validation first reaches q; never
//                  extrapolated
//   S_learn(n; q)  = T_reach(n0; q) / T_reach(n; q) * n0   E_learn = S_learn / n
//   identity       S_learn = S_par * epochs(n0) / epochs(n) * remainder; the remainder is 1 when
//                  epochs take equal time and evaluation scales as training does
//   L_rate(n)      = [dE/dt](n) / [dE/dt](n0) over the epochs that every run has in common; works
//                  when q is not reached
// Over repeats: ratios of arithmetic means, with 90 % intervals (statistics.h).

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tutti/study/size.h"
#include "tutti/study/statistics.h"
#include "tutti/trace/machine_use.h"
#include "tutti/trace/record.h"

namespace tutti::study {

/// The parts of an average step's time, milliseconds. Unmeasured parts are NaN.
struct StepParts {
  double total = trace::kNotMeasured, compute = trace::kNotMeasured,
         comm_exposed = trace::kNotMeasured, data_wait = trace::kNotMeasured,
         other = trace::kNotMeasured;
};

/// One run: the record that collect() found, and the results of evaluate() for it.
struct RunSummary {
  trace::RunLog log;         ///< without a readable record only start.ranks and start.seed are set
  int repeat = 0;            ///< 0 when the run was not launched by the study
  std::string failure{};     ///< reason why it does not count; empty = usable
  bool stopped = false;      ///< if it does not count: it was asked to stop and may go on
  int earlier_attempts = 0;  ///< unfinished or replaced attempts, kept beside it

  double epoch_seconds = trace::kNotMeasured;
  bool first_epoch_only = false;               ///< only the first epoch was measured as a whole
  double samples_per_s = trace::kNotMeasured;  ///< steady state
  std::optional<trace::TargetReached> reach{};
  bool cut_off = false;  ///< it ended at its own target before this one, so reach is unknown
  double best = trace::kNotMeasured;  ///< best value of the metric on the evaluation set
  double test = trace::kNotMeasured;  ///< the metric on a test set that was used only at the end
  double peak_learning_rate = trace::kNotMeasured;  ///< largest one in a step's line
  double critical_batch =
      trace::kNotMeasured;  ///< in samples, at the end of the run (docs/noise.md)
  StepParts step{};
  trace::MachineUse machine{};  ///< other work during the whole training; empty for a replay
  Spread timed_epochs{};        ///< the epochs whose median is epoch_seconds
  int ranks() const { return log.start.ranks; }
  Size size() const { return {log.start.ranks, log.start.spatial}; }
  bool usable() const { return failure.empty(); }
};

/// The repeats of one rank count at one number of epochs: the median, the smallest and the largest.
struct CurvePoint {
  double epoch = 0;
  double seconds = trace::kNotMeasured;  ///< median time since the first weight update
  double median = trace::kNotMeasured, low = trace::kNotMeasured, high = trace::kNotMeasured;
};

/// Which ranks came late to the gradient exchange, over all runs of a rank count; steps 0: not
/// measured.
struct Lateness {
  int64_t steps = 0;
  double waited_ms = trace::kNotMeasured,
         waited_for_late_ms = trace::kNotMeasured;  ///< means per step and rank
  int latest_rank = -1;                             ///< last in the most steps
  double latest_share = trace::kNotMeasured;        ///< share of the steps
  double latest_ms = trace::kNotMeasured;           ///< median time after the earliest rank
};

/// The metric by which evaluations are compared.
struct Measure {
  std::string metric = "accuracy";
  bool higher_is_better = true;
};

/// All runs of one size.
struct ScaleRow {
  int ranks = 0;
  std::vector<int64_t> spatial = {};
  Size size() const { return {ranks, spatial}; }
  bool is_base = false;                                ///< others are compared with it
  int runs = 0, failed = 0, stopped = 0, reached = 0;  ///< runs = usable ones
  int cut_off = 0;  ///< usable runs that ended at their own target before this one
  int all_runs() const { return runs + failed + stopped; }
  /// Whether it is unknown if the size reaches the target: no run did, but not all could.
  bool open() const { return reached == 0 && cut_off > 0; }
  int missed() const { return runs - reached - cut_off; }  ///< ran to their end without reaching it
  bool oversubscribed = false;
  bool first_epochs = false;  ///< times are those of first epochs, because no others were measured
  int untimed = 0;  ///< usable runs with first_epoch_only, left out because others have more
  int64_t local_batch = 0, global_batch = 0;  ///< 0: unknown, no run began
  int threads_per_rank = 1;
  double peak_learning_rate = trace::kNotMeasured;
  Spread critical_batch;
  Spread epoch_seconds, samples_per_s, reach_seconds, epochs_to_target, best, test;
  Spread core_seconds;  ///< until the target: wall time x ranks x threads per rank
  bool parallel_from_throughput =
      false;       ///< no whole epoch was measured: S_par is the ratio of samples/s
  Ratio parallel;  ///< S_par
  double parallel_efficiency = trace::kNotMeasured;
  Ratio learning;  ///< S_learn over the runs that reached q; NaN if none did at n or n0
  double learning_efficiency = trace::kNotMeasured;
  double epochs_factor = trace::kNotMeasured;  ///< epochs(n0) / epochs(n)
  double remainder = trace::kNotMeasured;
  double rate = trace::kNotMeasured;                 ///< L_rate
  std::vector<double> parallel_runs, learning_runs;  ///< per usable run: mean of n0 / this run * n0
  StepParts step;
  std::vector<CurvePoint> quality;        ///< the metric on the evaluation set
  std::vector<CurvePoint> training_loss;  ///< by whole epochs
  Lateness arrivals;
};
using Runs = std::vector<const RunSummary*>;

struct StudyResult {
  std::string title;  ///< model, data set, precision
  std::string mode;   ///< "weak" or "strong", read from the records' batches; "mixed" when neither
                      ///< holds; "one size"
  std::optional<trace::Target> target;
  Measure measure;             ///< the target's or, without one, the runs'
  std::string judge = "test";  ///< or "validation": the set that evaluations use
  /// Whether a run has measured a test set at its end.
  bool tested() const {
    return std::ranges::any_of(rows, [](const ScaleRow& row) { return row.test.count > 0; });
  }
  /// Whether a run has measured its gradient's noise.
  bool noise_measured() const {
    return std::ranges::any_of(rows,
                               [](const ScaleRow& row) { return row.critical_batch.count > 0; });
  }
  /// Whether times are virtual ones of a machine, and ranks are replicas on it.
  bool replayed() const {
    return std::ranges::any_of(
        runs, [](const RunSummary& run) { return !run.log.start.replayed_on.empty(); });
  }
  /// Reasons to doubt the times themselves, as sentences: printed before the numbers, and first
  /// among the notes.
  std::vector<std::string> disturbances;
  int base_ranks = 0;              ///< n0; 0 if no run is usable
  std::vector<ScaleRow> rows;      ///< by size
  std::vector<RunSummary> runs;    ///< by size, then repeat
  std::vector<std::string> notes;  ///< other facts to know before believing the numbers
};

/// Returns the target's metric or, without a target, the run's own; old records without one have
/// the metric of their target, or the accuracy.
Measure measure_of(const std::optional<trace::Target>& target, const trace::RunStart& start);
/// Returns "test", or "validation" if the run has such a set.
std::string judge_of(const trace::RunLog& log);
/// Returns the name that reports use, "test accuracy".
std::string metric_words(const std::string& metric, const std::string& judge);
/// Returns core-seconds from the first weight update to the target; NaN if it was not reached.
double core_seconds(const RunSummary& run);
/// Fills in the results of one run's record. `measure` is the target's if there is one.
void measure_run(RunSummary& run, const std::optional<trace::Target>& target,
                 const Measure& measure);

/// Evaluates the whole study. Failed runs are listed and noted but enter no number. With `target`
/// null it uses the target that the records name; if they name none, learning speed-up is left out
/// and `best` uses the metric that the runs name.
StudyResult evaluate(std::vector<RunSummary> runs, std::optional<trace::Target> target);

}  // namespace tutti::study
