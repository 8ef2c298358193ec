#pragma once
// The run record: the one format that training writes and studies read. JSON Lines, one event a
// line, every line with "schema", "event" and "time" (unix seconds). docs/record.md lists all
// fields; the structs below are the same list. Units: seconds unless the name ends in _ms; bytes;
// samples/s over the whole job. A number that was not measured is NaN (null in the file).
// Members without a default value are braced so that designated initialisers cause no warnings.
// Epochs count from 1; steps are the number of weight updates done so far.

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tutti::trace {

inline constexpr int kRecordSchema = 1;
inline constexpr const char* kRecordFile =
    "record.jsonl";  ///< its name in a run's output directory
/// Name of a study's lock, which stays in its folder: no other run may begin beside its runs.
inline constexpr const char* kStudyLockFile = ".study.lock";
inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

/// The quality that a run should reach, fixed before it starts.
struct Target {
  std::string metric = "accuracy";  ///< "accuracy", "loss" or a key of EvalRecord::metrics
  double value = 0;
  bool higher_is_better = true;
  bool reached_by(double measured) const {
    return higher_is_better ? measured >= value : measured <= value;
  }
};

/// Event "run_start": who runs what, and where. Written before the first step, and again when a run
/// resumes.
struct RunStart {
  static constexpr std::string_view kEvent = "run_start";
  double time = 0;
  std::string run_id{},
      time_iso{};  ///< time_iso: UTC, 2024-05-01T12:00:00Z; filled from `time` when empty
  std::string model{}, dataset{}, precision{};
  int ranks = 1, replicas = 1;
  int64_t local_batch = 0,
          global_batch = 0;  ///< samples per replica and step; samples per weight update of the job
  int64_t train_samples = 0;                    ///< samples per epoch
  std::optional<int64_t> validation_samples{};  ///< none: evaluations use the test set
  std::vector<int64_t> spatial{};       ///< ranks that share each sample, per spatial dimension
  std::optional<int64_t> data_nodes{};  ///< nodes with samples of their own; none: all share all
  int threads_per_rank = 1;
  std::string progress{};  ///< how operations between ranks move forward, for example "1 thread on
                           ///< core 5"; empty for one rank
  std::vector<std::string> hosts{};
  int cores_per_host = 0;       ///< physical cores the job may use on one host; 0 = unknown
  bool oversubscribed = false;  ///< ranks on a host x threads_per_rank > cores_per_host
  uint64_t seed = 0;
  int64_t parameters = 0;
  double flop_per_sample = kNotMeasured;  ///< forward + backward
  std::string synchronisation{};          ///< how replicas stay together: "step", "local:8"
  std::vector<std::string> slowed{};      ///< ranks slowed on purpose: "rank 1 by 3", "all by
                                          ///< chance, sigma 0.2"
  std::string replayed_on{};  ///< the machine whose clock gives virtual_seconds; empty: none
  std::string plan_hash{}, version{}, git{}, machine{}, config_path{}, command{};
  /// For rank 0's plan: the bytes that it holds, its limit (plan.memory), and the bytes of results
  /// with and without recomputation. None: no limit, but for the bytes that it holds of a device.
  std::optional<int64_t> planned_bytes{}, memory_limit_bytes{}, result_bytes{},
      result_bytes_if_kept{};
  std::optional<int64_t> results_again{};   ///< results computed again to fit
  double flop_again = kNotMeasured;         ///< arithmetic of that, per pass of one rank
  std::string library{}, library_sha256{};  ///< model.library and its content; empty: none
  std::string compiler{}, mpi{}, onednn{};  ///< used to build and run the program
  std::string device = "cpu";               ///< computes the steps: "cpu", "cuda", "emulated"
  /// The device's product and the versions of its driver, runtime and libraries; empty for the
  /// CPU.
  std::string device_name{}, device_driver{}, device_runtime{}, device_libraries{};
  std::optional<int64_t> device_memory_bytes{};  ///< memory of the whole device
  std::string binding{};                         ///< rank 0's: "bound to 1 of 2 cores", "not bound"
  int64_t resume_step =
      0;  ///< 0 = from the start; events of later steps written before this line are void
  std::vector<std::string>
      changes{};         ///< differences of a resumed run from the one before: "run.epochs: 2 -> 4"
  std::string metric{};  ///< used to compare evaluations; empty: an old record without it
  bool higher_is_better = true;  ///< for that metric
  std::optional<Target> target{};
  std::vector<std::string> units{};  ///< sentences: the units of predictions and errors
};

/// Event "step": averages over the steps since the last such line. The four parts add up to
/// step_ms.
struct StepRecord {
  static constexpr std::string_view kEvent = "step";
  double time = 0;
  int64_t epoch = 0, step = 0;
  double loss = kNotMeasured, lr = kNotMeasured;
  double samples_per_s = kNotMeasured, step_ms = kNotMeasured;
  double compute_ms = kNotMeasured, comm_exposed_ms = kNotMeasured, data_wait_ms = kNotMeasured,
         other_ms = kNotMeasured;
  double memory_bytes = kNotMeasured;  ///< largest over ranks
  double grad_norm = kNotMeasured;     ///< before clipping, where gradients are clipped
};

/// Event "arrivals": which ranks came late to the exchange in the steps since the last such line,
/// measured before the exchange makes all ranks wait. The three lists correspond: the ranks that
/// were last most often (8 at most), in how many steps, and how long after the earliest rank.
struct ArrivalsRecord {
  static constexpr std::string_view kEvent = "arrivals";
  double time = 0;
  int64_t step = 0, steps = 0;  ///< steps: number of compared steps
  std::vector<int> ranks{};
  std::vector<int64_t> last{};
  std::vector<double> late_ms{};  ///< median over the steps
  double clock_error_ms = 0;      ///< between nodes; 0 on one node
  double waited_ms = 0;           ///< per step in waits for gradients, mean over steps and ranks
  double waited_for_late_ms = 0;  ///< part of it before the last rank had started the exchange
  int straggler = -1;             ///< the rank that is late persistently; -1: none
};

/// Event "staging": the data set's files were copied to the nodes before the run reads them. This
/// happens between the start of the process and the first step, so a time to the target that begins
/// with the process, as MLPerf HPC's does, contains it.
struct StagingRecord {
  static constexpr std::string_view kEvent = "staging";
  double time = 0;
  int64_t files = 0, bytes = 0;                ///< on all nodes
  int64_t copied_files = 0, copied_bytes = 0;  ///< copied now; the others were present already
  int64_t linked_files = 0;       ///< belong to other nodes' shares, with data.shuffle = "shard"
  double seconds = kNotMeasured;  ///< until the last rank was done
};

/// Event "data": where samples came from since the last such line, summed over ranks. The lists
/// correspond. Reader threads are some batches ahead of the step.
struct DataRecord {
  static constexpr std::string_view kEvent = "data";
  double time = 0;
  int64_t epoch = 0, step = 0;
  std::vector<std::string> levels{};  ///< "memory", "node", "peers", "files"
  std::vector<int64_t> samples{}, bytes{};
  std::vector<double> seconds{};       ///< in reader threads
  int64_t left_out = 0;                ///< bad samples so far, summed over the ranks that read them
  std::vector<std::string> reasons{};  ///< for bad samples since the last line
};

/// Event "sync": how replicas that train apart have met since the last such line.
struct SyncRecord {
  static constexpr std::string_view kEvent = "sync";
  double time = 0;
  int64_t epoch = 0, step = 0;
  int64_t meetings = 0;
  int64_t bytes = 0;            ///< sent by all ranks
  double seconds = 0;           ///< at rank 0, including its waits for others
  double moved = kNotMeasured;  ///< how far the last meeting moved weights, relative to them
};

/// Event "stages": how the stages of a pipeline have spent the steps since the last such line, mean
/// over replicas.
struct StagesRecord {
  static constexpr std::string_view kEvent = "stages";
  double time = 0;
  int64_t epoch = 0, step = 0;
  int64_t micro_batches = 0;  ///< per step
  double bubble =
      kNotMeasured;  ///< (S - 1) / (M + S - 1): share of a step if stages are equally fast
  std::vector<double> compute_ms{}, waited_ms{};  ///< by stage, per step
  std::vector<double>
      memory_bytes{};  ///< by stage: the largest resident size of its process so far
};

/// Event "servers": the work of servers since the last such line.
struct ServersRecord {
  static constexpr std::string_view kEvent = "servers";
  double time = 0;
  int64_t epoch = 0, step = 0;
  int64_t updates = 0, version = 0;  ///< updates of the weights since then, and in all
  int64_t dropped = 0;               ///< gradients that came too late for a quorum
  double bytes = 0;                  ///< sent between workers and servers
  double stale_mean = kNotMeasured;  ///< updates between a gradient's weights and its own update
  int64_t stale_most = 0;
  std::vector<int64_t> staleness{};  ///< [n]: gradients applied n updates after their weights
  int64_t spread = 0;                ///< most versions that the weights of a worker were behind
};

/// Event "noise": the gradient's noise scale (docs/noise.md) over the steps since the last such
/// line.
struct NoiseRecord {
  static constexpr std::string_view kEvent = "noise";
  double time = 0;
  int64_t epoch = 0, step = 0;
  int64_t measured = 0;                 ///< steps
  double small_squares = kNotMeasured,  ///< squared norms: of the gradient of one batch,
      large_squares = kNotMeasured;     ///< and of the mean over all batches of a step
  double signal = kNotMeasured, noise = kNotMeasured;  ///< |G|^2 and tr(Sigma) that follow from it
  double critical_batch = kNotMeasured;    ///< in samples, from averages over all steps so far
  std::map<std::string, double> layers{};  ///< with run.noise_layers: critical batch by parameter
};

/// Event "machine": the other work on the machine since the last such line (trace/machine_use.h),
/// over the processors that the ranks may use on all nodes.
struct MachineRecord {
  static constexpr std::string_view kEvent = "machine";
  double time = 0;
  int64_t epoch = 0, step = 0;
  double seconds = kNotMeasured;  ///< since the last such line, or since the training began
  double other_work = kNotMeasured, steal = kNotMeasured, throttled = kNotMeasured;  ///< shares
  double load = kNotMeasured;  ///< rank 0's node's load average of the last minute
};

/// Event "epoch": one pass over the training data. `seconds` is training only: no evaluation, no
/// checkpoint.
struct EpochRecord {
  static constexpr std::string_view kEvent = "epoch";
  double time = 0;
  int64_t epoch = 0, step = 0;
  double seconds = kNotMeasured, train_loss = kNotMeasured, samples_per_s = kNotMeasured;
  double compute_seconds = kNotMeasured, comm_exposed_seconds = kNotMeasured,
         data_wait_seconds = kNotMeasured, other_seconds = kNotMeasured;
  double grad_norm = kNotMeasured;             ///< mean over its steps
  double virtual_seconds = kNotMeasured,       ///< for this epoch on RunStart::replayed_on
      virtual_waiting_seconds = kNotMeasured;  ///< part of these: waits for others and messages
  bool partial = false;  ///< the run resumed inside this epoch, so `seconds` is not a whole epoch
};

/// Event "eval": one pass over the validation set or, without one, over the test set. Both clocks
/// start at the first weight update and go on over a resume.
struct EvalRecord {
  static constexpr std::string_view kEvent = "eval";
  double time = 0;
  double epoch =
      0;  ///< epochs trained so far, with a fraction inside an epoch; 0 before the first update
  int64_t step = 0, samples = 0;
  double accuracy = kNotMeasured, loss = kNotMeasured;
  std::map<std::string, double> metrics{};  ///< further metrics by name, for example "mae"
  double seconds = kNotMeasured;            ///< duration of this evaluation
  double wall_seconds =
      0;  ///< since the first weight update, this and all earlier evaluations included
  double train_seconds = 0;                     ///< the same without evaluations and checkpoints
  double virtual_seconds = kNotMeasured;        ///< the same on RunStart::replayed_on
  double value(std::string_view metric) const;  ///< NaN when it was not measured
  void set(const std::string& metric, double value);
};

/// Event "test": the test set after the end of training, if a validation set was evaluated during
/// the run. `step` is the last step; the rest is as in EvalRecord.
struct TestRecord : EvalRecord {
  static constexpr std::string_view kEvent = "test";
  int64_t weights_step = 0;  ///< step of the measured weights
};

struct CheckpointRecord {
  static constexpr std::string_view kEvent = "checkpoint";
  double time = 0;
  double epoch = 0;
  int64_t step = 0;
  std::string path{};
  int64_t bytes = 0;
  double seconds = kNotMeasured;         ///< that training stood still
  double until_complete = kNotMeasured;  ///< from the beginning until it was complete
};

/// Event "target_reached": the first evaluation that reached the target. Clocks as in EvalRecord.
struct TargetReached {
  static constexpr std::string_view kEvent = "target_reached";
  double time = 0;
  double epoch = 0;
  int64_t step = 0;
  double wall_seconds = 0, train_seconds = 0, value = kNotMeasured;
};

enum class RunStatus { done, target_missed, requeue, failed };
std::string_view name(RunStatus status);

/// Event "run_stop", the last line of a run that ended in any orderly way. A run whose record lacks
/// it was killed.
struct RunStop {
  static constexpr std::string_view kEvent = "run_stop";
  double time = 0;
  RunStatus status = RunStatus::done;
  std::string reason{};
  std::string error{};  ///< the error's type, for example NumericError (base/error.h)
  double epochs = 0;
  int64_t steps = 0, samples = 0;
  double wall_seconds = 0, train_seconds = 0, eval_seconds = 0, checkpoint_seconds = 0;
  /// The most memory that this process had of the device, and the device's energy where it is
  /// known.
  std::optional<int64_t> device_peak_bytes{}, device_joules{};
};

/// One line of a record; kEvent is its name there.
using RunEvent =
    std::variant<RunStart, StepRecord, ArrivalsRecord, StagingRecord, DataRecord, SyncRecord,
                 StagesRecord, ServersRecord, NoiseRecord, MachineRecord, EpochRecord, EvalRecord,
                 TestRecord, CheckpointRecord, TargetReached, RunStop>;

/// The writer. One process (rank 0) owns it; not thread-safe. Each append is one write(2) of one
/// whole line, so a reader sees whole lines and a killed process loses nothing. Throws IoError
/// naming the file, for example if the disk is full, or if its path no longer leads to the file.
class RunRecord {
 public:
  /// create: empties the file; resume: appends, cutting a line that a kill left half written.
  enum class Open { create, resume };
  explicit RunRecord(std::string path, Open mode = Open::create);
  ~RunRecord();
  RunRecord(RunRecord&& other) noexcept;
  RunRecord& operator=(RunRecord&& other) noexcept;

  /// A `time` of 0 is replaced by now. A RunStop also syncs the file to disk.
  void append(RunEvent event);

  const std::string& path() const { return path_; }
  /// Throws IoError, as each append does, if the path no longer leads to the file.
  void require_place() const;

  /// Appends one line for a run that ends by an error, from any process, if the record exists.
  /// Never throws, because the error matters more than its line.
  static void append_failure(const std::string& path, RunStop event) noexcept;

 private:
  std::string path_;
  int file_ = -1;
};

/// A record read back.
struct RunLog {
  std::string path{};
  RunStart
      start;  ///< first run_start, with target and metric of the last, which a resume may change
  std::vector<StepRecord> steps;
  std::vector<ArrivalsRecord> arrivals;
  std::optional<StagingRecord> staging;  ///< from the last start
  std::vector<DataRecord> data;
  std::vector<SyncRecord> sync;
  std::vector<StagesRecord> stages;
  std::vector<ServersRecord> servers;
  std::vector<NoiseRecord> noise;
  std::vector<MachineRecord> machine;
  std::vector<EpochRecord> epochs;
  std::vector<EvalRecord> evals;
  std::optional<TestRecord> test;  ///< from the last end
  std::vector<CheckpointRecord> checkpoints;
  std::optional<TargetReached> target_reached;  ///< the last; a run that went on has several
  std::optional<RunStop> stop;                  ///< none: still running, or killed
  int resumes = 0;
  std::vector<std::string> changes;  ///< from all resumes
  bool truncated = false;  ///< a cut line was left out: the last, or the one before a failure
};

/// Reads a record. Skips unknown fields and events, and sets `truncated` for a line cut at the end,
/// or before the run_stop of a failure (a full disk may be its cause). Throws IoError with
/// file:line for any other malformed line, a missing run_start or a newer schema.
RunLog read_run(const std::string& path);
/// The readable lines of a record that read_run() refuses, without the damaged ones.
struct Readable {
  RunLog log;
  int passed_over = 0;
};
/// Throws IoError only if the file cannot be opened.
Readable read_readable(const std::string& path);
/// Returns the run_id of a record's first line; empty if there is no such file or the line has
/// none.
std::string read_run_id(const std::string& path);
/// Returns a name for a new run: its start and a random part, "20240501-120000-7f3a9c".
std::string make_run_id(double unix_seconds);

/// Returns Unix time as 2024-05-01T12:00:00Z.
std::string iso_time(double unix_seconds);
double unix_now();

}  // namespace tutti::trace
