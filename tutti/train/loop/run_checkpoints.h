#pragma once
// RunCheckpoints: writes a run's checkpoints; go_on_from() continues from one.

#include <string>

#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/evaluation.h"
#include "tutti/train/loop/round_trainer.h"
#include "tutti/train/loop/run_report.h"
#include "tutti/train/loop/running.h"

namespace tutti {

/// The checkpoint metric that holds StepExchange::verdict().
inline constexpr const char* kCompressionPays = "compression_pays";

/// Returns whether a rank has values that no other rank has. Collective.
bool needs_rank_files(Running& run);

/// Restores the step, metrics, clocks and best checkpoint of the earlier run. The best one counts
/// only if it belongs to this run's past: not to steps that are computed again or to an abandoned
/// course, and not lost since. Collective.
void go_on_from(const Checkpoint& checkpoint, Running& run);

/// Not thread-safe; used by the thread that uses the communicator.
class RunCheckpoints {
 public:
  /// All arguments must outlive this object.
  RunCheckpoints(Running& run, Evaluation& evaluation, RoundTrainer& trainer, RunReport& report)
      : run_(run), evaluation_(evaluation), trainer_(trainer), report_(report) {}

  /// Collective. `best`: it has the best evaluation so far. Unless the run ends here, a checkpoint
  /// that cannot be written only causes a warning: the earlier ones are valid, and the next may
  /// find space.
  void write(bool best, bool ends);

 private:
  struct Written {
    std::string path;
    int64_t bytes = 0;  // size of all files
  };
  CheckpointInfo info_now() const;
  /// Each rank writes its own file, and rank 0 the files that all share; the checkpoint is complete
  /// when all are written. Throws IoError on all ranks. Collective.
  Written write_together(bool best);
  /// Returns the tensors that are the same for all replicas, as far as this rank has them, made
  /// when they are written; without the info.
  CheckpointContent content_now();
  /// Returns the same in memory, on rank 0, for whole replicas. Collective among ranks that share
  /// one.
  CheckpointContent gathered_content();
  uint64_t write_own(const std::filesystem::path& checkpoint, const RankFiles& files);

  Running& run_;
  Evaluation& evaluation_;
  RoundTrainer& trainer_;
  RunReport& report_;
};

}  // namespace tutti
