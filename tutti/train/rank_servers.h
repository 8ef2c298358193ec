#pragma once
// RankServers: servers of weights that are ranks, and the workers of the other ends, as the trainer
// sees them. Training is rounds between which all ranks meet: evaluations, checkpoints and lines of
// the record are made there.
//
//   open(step, end, took); while (auto ticket = next()) make the gradient of its samples;
//   step = close()

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/parallel/server_link.h"
#include "tutti/train/server_update.h"
#include "tutti/train/training_step.h"

namespace tutti {

/// Not thread-safe; of the thread that uses the communicator.
class RankServers {
 public:
  struct Spec {
    ServerSettings settings;
    int group = 1;         ///< ranks that sum their gradients
    int accumulate = 1;    ///< batches of each of them
    bool norms = false;    ///< an update needs norms of whole parameters
    std::function<double(int64_t)> rate;  ///< of a step of the run
  };
  /// Collective, before step.start(), with the weights and states that training begins with. `step`
  /// was made for this group and outlives this, as the other two do.
  RankServers(const Spec& spec, TrainingStep& step, const Backend& backend,
              comm::Communicator& communicator);

  int workers() const { return static_cast<int>(ranks_.workers.size()); }
  /// A round of the steps [first, end). `comes` is told of each ticket of this rank, in their order
  /// and as early as may be: its samples can be read.
  void open(int64_t first, int64_t end, std::function<void(int64_t ticket)> comes);
  /// Sends the gradient of the last ticket, if there was one, and takes the next one with new
  /// weights for it. Nothing where the round has no more. `signal`: not 0 where this rank was asked
  /// to stop, which ends the round with the step that has begun.
  std::optional<int64_t> next(int signal);
  /// Collective. Returns when all gradients have been applied, and the weights and states of all
  /// servers are those of every rank: before this step.
  int64_t close();

  /// Of the last next(): seconds that it waited for others.
  double waited() const { return waited_; }
  /// Seconds in which this rank's server has worked.
  double busy_seconds() const { return loop_ ? loop_->busy_seconds() : 0; }
  /// Collective. Since the last call, over all servers; updates and ages are the first one's.
  ServedCounts take_counts();

 private:
  std::optional<int64_t> take_ticket();
  void note(int64_t ticket);
  void plan_collection();

  TrainingStep& step_;
  comm::Communicator& communicator_;
  const int64_t together_;  // gradients of a step of the run
  ServedRanks ranks_;
  std::vector<ServedPart> parts_;
  std::optional<ServerUpdate> update_;  // where this rank is a server, as is
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<ServerLink> link_;  // of the first rank of a group
  std::unique_ptr<WorkerGroup> group_;
  std::vector<std::unique_ptr<comm::CollectiveOperation>> collection_;
  std::function<void(int64_t)> comes_;
  int64_t noted_ = -1;   // the last ticket that it was told of
  bool making_ = false;  // a gradient is being made
  int64_t end_ = 0;
  double waited_ = 0;
};

}  // namespace tutti
