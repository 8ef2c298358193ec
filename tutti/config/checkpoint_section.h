#pragma once
// The keys of [checkpoint]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <string>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct CheckpointSection {
  int64_t every_steps = 0;   ///< 0: not by steps
  int64_t every_epochs = 1;  ///< 0: not by epochs
  int64_t keep = 2;          ///< 0: all
  int64_t memory = 0;        ///< bytes for copies that wait to be written; 0: as much as is free
  bool best = true;          ///< also keep the checkpoint with the best evaluation
  std::string dir{};         ///< empty: output_dir/checkpoints
  std::string resume{};      ///< empty: start anew; "latest": newest valid one in dir; else a
                             ///< checkpoint or a folder of them

  template <class Keys>
  static void keys(Keys& t) {
    using S = CheckpointSection;

    t.key(&S::every_steps, "every_steps", "Steps between checkpoints. 0: not by steps")
        .at_least(0)
        .may_change();
    t.key(&S::every_epochs, "every_epochs", "Epochs between checkpoints. 0: not by epochs")
        .at_least(0)
        .may_change();
    t.key(&S::keep, "keep", "How many of the newest to keep. 0: all")
        .between(0, 1 << 24)
        .no_matter();
    t.key(&S::best, "best",
          "Also write one after each evaluation that is better than all before it, and keep the "
          "last of these as best beside the others")
        .may_change();
    t.key(
         &S::memory, "memory",
         "What a rank may hold of a copy of its state, which is written while training goes on; "
         "training stands still until all of the state is in it or written. 0: as much as the "
         "state takes, at most a quarter of the node's free memory for each of its ranks, or, with "
         "plan.memory on a CPU, what that leaves")
        .unit("bytes")
        .at_least(0)
        .no_matter();
    t.key(&S::dir, "dir",
          "Their folder; {output_dir}/NAME lies in the run's. Empty: checkpoints in run.output_dir")
        .path(PathKind::written)
        .no_matter();
    t.key(&S::resume, "resume",
          "Continue from \"latest\" (the newest valid one in checkpoint.dir), from a run's folder "
          "or from one checkpoint. Empty: a new run")
        .path(PathKind::read, "latest")
        .no_matter();
  }
};

}  // namespace tutti::config
