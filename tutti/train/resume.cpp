#include "tutti/train/resume.h"

#include <cstring>
#include <iterator>

#include "tutti/base/log.h"
#include "tutti/comm/agree.h"

namespace tutti {

std::optional<Checkpoint> open_resume(comm::Communicator& communicator, const RunPlace& place) {
  if (place.resume.empty()) return std::nullopt;
  std::optional<Checkpoint> checkpoint;
  try {
    checkpoint = open_checkpoint(place.resume);
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

std::vector<NamedTensor> gather_statistics(const Weights& weights, const ReplicaMap& replicas,
                                           comm::Communicator& communicator) {
  const size_t bytes = weights.variables().statistic_bytes;
  const auto most = static_cast<size_t>(replicas.most_per_rank());
  std::vector<std::byte> mine(most * bytes),
      all(mine.size() * static_cast<size_t>(communicator.size()));
  for (int r = 0; r < replicas.local_count(); ++r)
    std::memcpy(mine.data() + static_cast<size_t>(r) * bytes, weights.statistics(r), bytes);
  communicator.allgather(mine, all);
  std::vector<NamedTensor> tensors;
  for (size_t rank = 0; rank + 1 < replicas.first().size(); ++rank)
    for (int replica = replicas.first()[rank]; replica < replicas.first()[rank + 1]; ++replica) {
      const size_t row = rank * most + static_cast<size_t>(replica - replicas.first()[rank]);
      std::ranges::move(weights.export_statistics(all.data() + row * bytes, replica),
                        std::back_inserter(tensors));
    }
  return tensors;
}

void restore(const Checkpoint& checkpoint, const ReplicaMap& replicas,
             std::span<const ArenaRange> kept, Weights& weights) {
  weights.import_model(checkpoint.weights);
  if (checkpoint.info.state_kinds == weights.variables().state_kinds)
    weights.import_state(checkpoint.state, kept);
  else
    log::warn_alike("the state of the optimizer begins at zero: the checkpoint's is of {}",
                    checkpoint.info.optimizer);
  if (checkpoint.info.replicas != replicas.replicas()) return;
  for (int r = 0; r < replicas.local_count(); ++r)
    weights.import_statistics(checkpoint.state, r, replicas.replica(r));
}

}  // namespace tutti
