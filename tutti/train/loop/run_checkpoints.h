#pragma once
// RunCheckpoints: how a run becomes a checkpoint, and where one that goes on stands.

#include <string>

#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/evaluation.h"
#include "tutti/train/loop/round_trainer.h"
#include "tutti/train/loop/run_report.h"
#include "tutti/train/loop/running.h"

namespace tutti {

/// The name of a checkpoint's metric: StepExchange::verdict().
inline constexpr const char* kCompressionPays = "compression_pays";

/// Whether a rank keeps what no other rank has. Collective.
bool needs_rank_files(Running& run);

/// Where the run before stood: its step, metrics, clocks and best checkpoint. The best one counts
/// where it is of this run's past: not of steps that are computed again or of a course that was
/// left, and not lost since. Collective.
void go_on_from(const Checkpoint& checkpoint, Running& run);

/// Not thread-safe; used by the thread that uses the communicator.
class RunCheckpoints {
 public:
  /// All outlive it.
  RunCheckpoints(Running& run, Evaluation& evaluation, RoundTrainer& trainer, RunReport& report)
      : run_(run), evaluation_(evaluation), trainer_(trainer), report_(report) {}

  /// Collective. `best`: of the best evaluation so far. Where the run does not end here, one that
  /// cannot be written costs a warning: the earlier ones are valid, and the next may find space.
  void write(bool best, bool ends);

 private:
  struct Written {
    std::string path;
    int64_t bytes = 0;  // of all files
  };
  CheckpointInfo info_now() const;
  /// Each rank its own file, rank 0 those that all have alike; it is there when all are. Throws
  /// IoError on all ranks. Collective.
  Written write_together(bool best);
  /// The tensors that all replicas have alike, as far as this rank has them, made when they are
  /// written; without the info.
  CheckpointContent content_now();
  /// The same in memory, on rank 0 of whole replicas. Collective among those who share one.
  CheckpointContent gathered_content();
  uint64_t write_own(const std::filesystem::path& checkpoint, const RankFiles& files);

  Running& run_;
  Evaluation& evaluation_;
  RoundTrainer& trainer_;
  RunReport& report_;
};

}  // namespace tutti
