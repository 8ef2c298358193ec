#pragma once
// What a resumed run goes on from besides its weights: the readings of its clocks, and the
// evaluation that reached its target already.

#include <optional>
#include <string>

#include "tutti/keep/checkpoint.h"
#include "tutti/trace/record.h"

namespace tutti {

/// Readings at the step where a run goes on.
struct EarlierPart {
  /// wall = train + evaluations + checkpoints, as far as all of them are known.
  double wall_seconds = 0, train_seconds = 0, eval_seconds = 0, checkpoint_seconds = 0;
  /// The first evaluation that reached the target, and the best value of all.
  struct Reached {
    double epoch = 0, value = 0, best = 0;
  };
  std::optional<Reached> reached;
  bool tested = false, evaluated = false;  ///< the test set, the judging set was used at this step
};

/// The names under which a checkpoint's metrics keep its readings of the clocks.
inline constexpr const char *kWallSeconds = "wall_seconds", *kTrainSeconds = "train_seconds";

/// A checkpoint cannot know how long its own writing takes. So where the record's last line is of
/// an orderly end at this step, the clocks stood as it says; else they stood as the checkpoint
/// says, and the record tells the length of evaluations and checkpoints up to here. A branch has no
/// record yet (an empty log): there the checkpoint alone counts.
EarlierPart earlier_part(const CheckpointInfo& checkpoint, const RunLog& log,
                         const std::optional<Target>& target);

/// For the other ranks, which need not see the record.
std::string to_text(const EarlierPart& part);
EarlierPart earlier_part_from_text(const std::string& text);

}  // namespace tutti
