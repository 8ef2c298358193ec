#pragma once
// RunCheckpoints: writes a run's checkpoints while training goes on; go_on_from() continues from
// one.
//
//   write(): between two steps, the state is copied (keep/tensor_queue.h)
//            beside the next steps, a thread of each rank writes what it has
//   go_on(): when a vote says that all have written, a thread of rank 0 gives the checkpoint its
//            name; when the next vote says that it has, all note it
//
// At most one is under way: the next write() first waits for it, and so does the end of a run.

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "tutti/keep/kept_state.h"
#include "tutti/keep/rank_file.h"
#include "tutti/keep/tensor_queue.h"
#include "tutti/train/loop/running.h"

namespace tutti::train {

/// Returns whether a rank has values that no other rank has. Collective.
bool needs_rank_files(Running& run);

/// Restores the step, metrics, clocks and best checkpoint of the earlier run. The best one counts
/// only if it belongs to this run's past: not to steps that are computed again or to an abandoned
/// course, and not lost since. Collective.
void go_on_from(const keep::Checkpoint& checkpoint, Running& run);

/// Not thread-safe; used by the thread that uses the communicator. What cannot be written only
/// causes a warning, unless the run ends with it: the earlier checkpoints are valid, and the next
/// one may find space.
class RunCheckpoints {
 public:
  /// `run` must outlive this object.
  RunCheckpoints(Running& run, std::vector<keep::KeptState> states);
  /// Drops a checkpoint that is not finished.
  ~RunCheckpoints();

  /// Collective. `best`: it has the best evaluation so far. Returns when the state is copied, or,
  /// if the run ends here, when the checkpoint is complete.
  void write(bool best, bool ends);
  /// Collective; call it after each round: looks after the checkpoint that is under way.
  void go_on();
  /// Finishes it when the run fails. `together`: on all ranks.
  void leave(bool together) noexcept;

 private:
  /// A checkpoint that is being written.
  struct Flight {
    int64_t step = 0;
    double epochs = 0;
    bool best = false;
    LeftCheckpoints left_before = {};
    std::chrono::steady_clock::time_point began = {};
    double stood_still = 0;                                // seconds until the state was copied
    std::vector<std::vector<keep::TensorRef>> files = {};  // this rank's, the weights, the state
    std::optional<keep::CheckpointWriter> writer = {};     // on rank 0
    std::future<uint64_t> written = {};                    // bytes of this rank's files
    std::future<std::string> published = {};               // path, on rank 0
    uint64_t bytes = 0;
    bool ends = false;  // the run ends with it
    bool copied = false;
    bool publishing = false;
  };

  keep::CheckpointInfo info_now(const keep::SavedRun& saved) const;
  /// Begins a checkpoint and copies the state. Throws IoError on all ranks. Collective.
  void begin(keep::SavedRun saved, bool best);
  /// Lists this rank's file, the weights and the state, as far as this rank has a part in them.
  std::vector<std::vector<keep::TensorRef>> files_of(keep::SavedRun saved);
  /// Copies this rank's tensors, or sends them to the rank that writes them.
  void copy(size_t written_here);
  /// Collective. Waits for all ranks, for as long as they live.
  void meet_patiently();
  size_t most_copied() const;
  /// Runs in a thread of its own.
  uint64_t write_files(Flight& flight, const keep::RankFiles& files,
                       const std::filesystem::path& place,
                       const std::vector<std::vector<keep::TensorRef>>& arriving);
  /// Whether this rank has work to do for the phase that goes on, and whether any rank has.
  bool works_here() const;
  bool works_anywhere();
  /// Ends the phase when all have done its work. Collective.
  void end_phase(bool ends);
  void publish();
  void note_published(const std::string& path);
  /// Calls `work`; an error of writing ends the checkpoint, and the run if it `ends` here.
  template <class Work>
  void attempt(bool ends, Work work);
  /// Waits until the checkpoint is complete. Collective.
  void finish(bool ends);

  Running& run_;
  const std::vector<keep::KeptState> states_;
  keep::TensorQueue queue_;
  std::optional<Flight> flight_;  // after queue_: its thread uses it
};

}  // namespace tutti::train
