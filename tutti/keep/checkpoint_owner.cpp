#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/keep/run_folder.h"
#include "tutti/trace/record.h"

namespace tutti::keep {
namespace {

void refuse_lost_checkpoint(const RunPlace& place) {
  const std::filesystem::path record = std::filesystem::path(place.directory) / trace::kRecordFile;
  if (std::error_code none; !std::filesystem::exists(record, none)) return;
  const auto written = trace::read_readable(record.string()).log.checkpoints;
  if (written.empty()) return;
  throw ConfigError(fmt::format(
      "--resume: the run in '{}' has written a checkpoint of step {}, and '{}' holds none: if they "
      "lie on another disk, see that it is there; if they were moved, give their folder as "
      "checkpoint.dir; to begin anew, give --fresh instead of --resume, which sets this run aside",
      place.directory, written.back().step, place.checkpoints));
}

}  // namespace

void check_whose_checkpoint(const RunPlace& place) {
  if (place.resume.empty()) return refuse_lost_checkpoint(place);
  // If a run was set aside, its checkpoint.dir elsewhere may now hold its successor's checkpoints.
  const std::string theirs = open_checkpoint(place.resume).info.run_id;
  if (theirs.empty() || place.run_id.empty() || theirs == place.run_id) return;
  throw ConfigError(fmt::format(
      "--resume: the checkpoints in '{}' are of run {}, but '{}' holds run {}: give the folder of "
      "its own checkpoints as checkpoint.dir, or go on from these with --resume={} and another "
      "--output-dir",
      place.checkpoints, theirs, place.directory, place.run_id, place.checkpoints));
}

}  // namespace tutti::keep
