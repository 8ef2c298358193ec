#pragma once
// Parallel and learning speed-up from run records. A size is a number of ranks and how they share
// samples. For n ranks, base n0 = the ranks of the smallest size with usable runs, q = a quality
// fixed before the study:
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

/// Where an average step's time goes, milliseconds. Unmeasured parts are NaN.
struct StepParts {
  double total = kNotMeasured, compute = kNotMeasured, comm_exposed = kNotMeasured,
         data_wait = kNotMeasured, other = kNotMeasured;
};

/// One run: what collect() found, and below it what evaluate() measures on it.
struct RunSummary {
  RunLog log;      ///< of a run without a readable record only start.ranks and start.seed are set
  int repeat = 0;  ///< 0 when the run was not launched by the study
  std::string failure{};  ///< why it does not count; empty = usable
  bool stopped = false;   ///< of one that does not count: somebody asked it to stop, it may go on
  int earlier_attempts = 0;  ///< unfinished or replaced ones, kept beside it

  double epoch_seconds = kNotMeasured;
  bool first_epoch_only = false;        ///< of its epochs only the first was measured as a whole
  double samples_per_s = kNotMeasured;  ///< steady state
  std::optional<TargetReached> reach{};
  bool cut_off = false;        ///< it ended at its own target before this one, so reach is unknown
  double best = kNotMeasured;  ///< best value of the metric on the set that judges
  double test = kNotMeasured;  ///< that metric on a test set that waited for the end
  double peak_learning_rate = kNotMeasured;  ///< largest that a step's line names
  double critical_batch = kNotMeasured;      ///< samples, at its end (docs/noise.md)
  StepParts step{};
  MachineUse machine{};   ///< beside it, over its whole training; of a replay nothing
  Spread timed_epochs{};  ///< the epochs of which epoch_seconds is the median
  int ranks() const { return log.start.ranks; }
  Size size() const { return {log.start.ranks, log.start.spatial}; }
  bool usable() const { return failure.empty(); }
};

/// The repeats of one rank count at one number of epochs: the median, the smallest and the largest.
struct CurvePoint {
  double epoch = 0;
  double seconds = kNotMeasured;  ///< median time since the first weight update
  double median = kNotMeasured, low = kNotMeasured, high = kNotMeasured;
};

/// Who came late to the gradient exchange, over all runs of a rank count; steps 0: not measured.
struct Lateness {
  int64_t steps = 0;
  double waited_ms = kNotMeasured, waited_for_late_ms = kNotMeasured;  ///< a step and rank, means
  int latest_rank = -1;                                                ///< last in the most steps
  double latest_share = kNotMeasured;                                  ///< of the steps
  double latest_ms = kNotMeasured;  ///< after the earliest rank, median
};

/// What evaluations are compared by.
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
  int cut_off = 0;  ///< usable ones that ended at their own target before this one
  int all_runs() const { return runs + failed + stopped; }
  /// Whether the size reaches the target is not known: no run did, but not all could.
  bool open() const { return reached == 0 && cut_off > 0; }
  int missed() const { return runs - reached - cut_off; }  ///< ran to their end without it
  bool oversubscribed = false;
  bool first_epochs = false;  ///< the times are of first epochs, because there are no others
  int untimed = 0;  ///< usable runs with first_epoch_only, left out because there are others
  int64_t local_batch = 0, global_batch = 0;  ///< 0: not known, no run began
  int threads_per_rank = 1;
  double peak_learning_rate = kNotMeasured;
  Spread critical_batch;
  Spread epoch_seconds, samples_per_s, reach_seconds, epochs_to_target, best, test;
  Spread core_seconds;  ///< to the target: wall time x ranks x threads per rank
  bool parallel_from_throughput =
      false;       ///< no whole epoch was measured: S_par is the ratio of samples/s
  Ratio parallel;  ///< S_par
  double parallel_efficiency = kNotMeasured;
  Ratio learning;  ///< S_learn over the runs that reached q; NaN when none did, here or at n0
  double learning_efficiency = kNotMeasured;
  double epochs_factor = kNotMeasured;  ///< epochs(n0) / epochs(n)
  double remainder = kNotMeasured;
  double rate = kNotMeasured;                        ///< L_rate
  std::vector<double> parallel_runs, learning_runs;  ///< per usable run: mean of n0 / this run * n0
  StepParts step;
  std::vector<CurvePoint> quality;        ///< the metric on the set that judges
  std::vector<CurvePoint> training_loss;  ///< of whole epochs
  Lateness arrivals;
};
using Runs = std::vector<const RunSummary*>;

struct StudyResult {
  std::string title;  ///< model, data set, precision
  std::string mode;   ///< "weak" or "strong", read from the records' batches; "mixed" when neither
                      ///< holds; "one size"
  std::optional<Target> target;
  Measure measure;             ///< the target's, or without one that of the runs
  std::string judge = "test";  ///< or "validation": what evaluations of the runs are of
  /// Whether a run has measured a test set at its end.
  bool tested() const {
    return std::ranges::any_of(rows, [](const ScaleRow& row) { return row.test.count > 0; });
  }
  /// Whether a run has measured its gradient's noise.
  bool noise_measured() const {
    return std::ranges::any_of(rows,
                               [](const ScaleRow& row) { return row.critical_batch.count > 0; });
  }
  /// Whether times are the virtual ones of a machine, and ranks the replicas on it.
  bool replayed() const {
    return std::ranges::any_of(
        runs, [](const RunSummary& run) { return !run.log.start.replayed_on.empty(); });
  }
  /// Reasons that make the times themselves doubtful, as sentences: said before the numbers, and
  /// first of the notes.
  std::vector<std::string> disturbances;
  int base_ranks = 0;              ///< n0; 0 when no run is usable
  std::vector<ScaleRow> rows;      ///< by size
  std::vector<RunSummary> runs;    ///< by size, then repeat
  std::vector<std::string> notes;  ///< what else a reader must know before believing the numbers
};

/// The target's metric; without a target the run's own, which in old records is that of its target
/// or the accuracy.
Measure measure_of(const std::optional<Target>& target, const RunStart& start);
/// "test", or "validation" where the run has such a set.
std::string judge_of(const RunLog& log);
/// "test accuracy": as reports call it.
std::string metric_words(const std::string& metric, const std::string& judge);
/// Core-seconds from the first weight update to the target; NaN when it was not reached.
double core_seconds(const RunSummary& run);
/// Fills in what one run's record says. `measure` is the target's where there is one.
void measure_run(RunSummary& run, const std::optional<Target>& target, const Measure& measure);

/// The whole study. Failed runs are listed and noted but enter no number. `target` null: the one
/// that the records name; when they name none, learning speed-up is left out and `best` is of
/// the metric that the runs name.
StudyResult evaluate(std::vector<RunSummary> runs, std::optional<Target> target);

}  // namespace tutti::study
