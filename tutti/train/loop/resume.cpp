#include "tutti/train/loop/resume.h"

#include <algorithm>
#include <sstream>

#include "tutti/base/log.h"
#include "tutti/base/name_pattern.h"
#include "tutti/base/number.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/network/optimizer.h"
#include "tutti/train/network/table_files.h"

namespace tutti::train {

namespace {

std::vector<std::string> without_average(std::vector<std::string> kinds) {
  std::erase(kinds, kAverageState);
  return kinds;
}

void warn_of_new(const std::vector<std::string>& parameters) {
  if (!parameters.empty())
    log::warn_once("the optimizer's state begins at zero for what was frozen until now: {}",
                   list_of_names(parameters));
}

}  // namespace

std::optional<keep::Checkpoint> open_resume(comm::Communicator& communicator,
                                            const keep::RunPlace& place) {
  if (place.resume.empty()) return std::nullopt;
  std::optional<keep::Checkpoint> checkpoint;
  try {
    checkpoint = keep::open_checkpoint(place.resume);
  } catch (const IntactFileError&) {
    throw;
  } catch (const IoError& error) {
    throw IoError(fmt::format(
        "{}; rank 0 reads this checkpoint: run.output_dir must be on a file system that all hosts "
        "share",
        error.what()));
  }
  if (checkpoint->checksum != place.checksum)
    throw IoError(fmt::format(
        "{}: this rank reads another checkpoint there (checksum {}) than rank 0 (checksum {}): "
        "run.output_dir must be on a file system that all hosts share",
        place.resume, checkpoint->checksum, place.checksum));
  comm::agree(
      communicator, "the checkpoint to resume from",
      fmt::format("step = {}\nchecksum = {}\n", checkpoint->info.step, checkpoint->checksum));
  log::info("resuming from '{}' at step {}", place.resume, checkpoint->info.step);
  return checkpoint;
}

namespace {

/// Reads from a key with one number how many ranks had a share of each replica.
int64_t ranks_by(const keep::CheckpointInfo& checkpoint, const char* key) {
  const auto stored = checkpoint.settings.find(key);
  int64_t ranks = 1;
  if (stored != checkpoint.settings.end()) read_number(stored->second, ranks);
  return ranks;
}

/// Returns the number of ranks that had the layers of a replica.
int stages_of(const keep::CheckpointInfo& checkpoint) {
  return static_cast<int>(ranks_by(checkpoint, "parallel.pipeline"));
}

/// Returns the number of ranks that shared a replica's samples or layers, each with its own
/// statistics (PartGrid::parts).
int64_t parts_of(const keep::CheckpointInfo& checkpoint) {
  const auto stored = checkpoint.settings.find("parallel.spatial");
  int64_t parts = ranks_by(checkpoint, "parallel.tensor");
  if (stored == checkpoint.settings.end()) return parts;
  std::istringstream list(stored->second);
  for (char before = 0; list >> before && before != ']';)
    if (int64_t along = 1; list >> along) parts *= along;
  return parts;
}

}  // namespace

void restore_rows(const keep::Checkpoint& checkpoint, const exchange::ReplicaMap& replicas,
                  Weights& weights) {
  if (!weights.has_rows()) return;
  keep::RankFileReader files(checkpoint);
  const int stages = stages_of(checkpoint.info);
  const exchange::ReplicaMap before(replicas.replicas(), files.ranks() / stages, 0);
  for (int local = 0; local < replicas.local_count(); ++local) {
    const int replica = replicas.replica(local);
    if (checkpoint.rank_files.count == 0) {
      weights.import_named_statistics(checkpoint.state, local, replica);
      continue;
    }
    const int owner = before.owner(replica);
    const int row = replica - before.first()[static_cast<size_t>(owner)];
    if (stages == 1) {
      const keep::SafetensorsFile* const file = &files.file(owner);
      weights.import_rows({&file, 1}, local, row);
      continue;
    }
    std::vector<keep::SafetensorsFile> opened;
    std::vector<const keep::SafetensorsFile*> of_stages;
    for (int stage = 0; stage < stages; ++stage)
      opened.push_back(
          keep::open_rank_file(checkpoint.path, checkpoint.rank_files, owner * stages + stage));
    for (const keep::SafetensorsFile& file : opened) of_stages.push_back(&file);
    weights.import_rows(of_stages, local, row);
  }
}

namespace {

/// Whether the checkpoint's replicas had weights of their own: each a row in the ranks' files.
bool holds_apart(const keep::Checkpoint& checkpoint, const plan::Variables& variables) {
  if (checkpoint.rank_files.count == 0) return false;
  keep::RankFileReader files(checkpoint);
  const keep::SafetensorsFile& rows = files.file(0);
  return std::ranges::any_of(variables.parameters, [&](const plan::Variable& parameter) {
    return rows.find("replicas/" + parameter.name) != nullptr;
  });
}

/// For replicas that train apart. If their number differs from the checkpoint's, all begin with the
/// model file's weights and new states.
void restore_apart(const keep::Checkpoint& checkpoint, const exchange::ReplicaMap& replicas,
                   Weights& weights) {
  const bool same = checkpoint.info.replicas == replicas.replicas() &&
                    checkpoint.info.state_kinds == weights.variables().state_kinds;
  if (same && holds_apart(checkpoint, weights.variables()))
    return restore_rows(checkpoint, replicas, weights);
  if (same) {  // the replicas were identical until now
    const ArenaRange all{0, weights.variables().trained_bytes};
    warn_of_new(weights.import_state(checkpoint.state, {&all, 1}));
    weights.make_same();
    return;
  }
  log::warn_once(
      "the replicas begin alike, with new states of the optimizer: the checkpoint is of {} "
      "replicas and of {}",
      checkpoint.info.replicas, checkpoint.info.optimizer);
}

}  // namespace

void restore(const keep::Checkpoint& checkpoint, const exchange::ReplicaMap& workers, int parts,
             std::span<const ArenaRange> kept, Weights& weights) {
  weights.import_model(checkpoint.weights);
  read_tables(checkpoint.weights, checkpoint.path, weights);
  const std::vector<std::string>& there = checkpoint.info.state_kinds;
  if (weights.apart()) {
    restore_apart(checkpoint, workers, weights);
    return;
  }
  if (std::ranges::find(there, kAverageState) != there.end()) {
    if (weights.average()) weights.import_average(checkpoint.weights, kept);
    const auto frozen = checkpoint.info.settings.find("model.freeze");
    weights.import_raw(checkpoint.state,
                       frozen == checkpoint.info.settings.end() ||
                           frozen->second == config::to_toml(std::vector<std::string>()));
  }
  if (without_average(there) == without_average(weights.variables().state_kinds))
    warn_of_new(weights.import_state(checkpoint.state, kept));
  else
    log::warn_once("the state of the optimizer begins at zero: the checkpoint's is of {}",
                   checkpoint.info.optimizer);
  // Otherwise they begin with their mean, which the model file holds.
  if (parts_of(checkpoint.info) == parts && checkpoint.info.replicas * parts == workers.replicas())
    restore_rows(checkpoint, workers, weights);
}

}  // namespace tutti::train
