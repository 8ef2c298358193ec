#pragma once
// The state besides weights from which a resumed run continues: the readings of its clocks, and the
// evaluation that has already reached its target.

#include <optional>
#include <string>

#include "tutti/keep/checkpoint.h"
#include "tutti/trace/record.h"

namespace tutti::train {

/// Readings at the step from which a run continues.
struct EarlierPart {
  /// wall = train + evaluations + checkpoints, as far as all of them are known.
  double wall_seconds = 0, train_seconds = 0, eval_seconds = 0, checkpoint_seconds = 0;
  /// The first evaluation that reached the target, and the best value of all.
  struct Reached {
    double epoch = 0, value = 0, best = 0;
  };
  std::optional<Reached> reached = {};
  bool tested = false, evaluated = false;  ///< the test set, the judging set was used here
};

/// The metrics of a checkpoint under which it stores its readings of the clocks.
inline constexpr const char *kWallSeconds = "wall_seconds", *kTrainSeconds = "train_seconds";

/// A checkpoint cannot know how long its own writing takes. So if the record's last line is an
/// orderly end at this step, that line gives the clocks; otherwise the checkpoint gives them, and
/// the record gives the length of evaluations and checkpoints up to here. A branch has no record
/// yet (an empty log): then only the checkpoint counts.
EarlierPart earlier_part(const keep::CheckpointInfo& checkpoint, const trace::RunLog& log,
                         const std::optional<trace::Target>& target);

/// Converts for the other ranks, which need not see the record.
std::string to_text(const EarlierPart& part);
EarlierPart earlier_part_from_text(const std::string& text);

}  // namespace tutti::train
