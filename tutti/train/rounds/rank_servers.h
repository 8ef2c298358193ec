#pragma once
// RankServers: servers of weights that are ranks, and the workers at the other end, as the trainer
// sees them. Servers are beside the first workers, or the last ranks of the job and nothing else
// (train/loop/serve_workers.h). Training is rounds between which all ranks meet: evaluations,
// checkpoints and lines of the record are made there.
//
//   open(step, end, comes); while (auto ticket = next(signal)) make the gradient of its samples;
//   step = close(signal)

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/keep/rank_file.h"
#include "tutti/sync/server_link.h"
#include "tutti/trace/record.h"
#include "tutti/train/rounds/server_update.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

struct RankServersSpec {
  ServerSettings settings;
  int workers = 1;                      ///< ranks that make gradients, the first of the job
  int group = 1;                        ///< of them those that sum theirs
  int64_t gradients = 1;                ///< of a step of the run
  int accumulate = 1;                   ///< batches of each
  bool norms = false;                   ///< an update needs norms of whole parameters
  std::function<double(int64_t)> rate;  ///< of a step of the run
};
RankServersSpec rank_servers_spec(const RunConfig& config, const ServerSettings& settings,
                                  int replicas, std::function<double(int64_t)> rate);

/// Not thread-safe; of the thread that uses the communicator.
class RankServers {
 public:
  /// Collective over the job, on workers after step.start(), with the weights and states that the
  /// workers begin with. `step` was made for a group of workers, on a server of the servers' plan;
  /// it outlives this, as the other two do.
  RankServers(const RankServersSpec& spec, TrainingStep& step, const Backend& backend,
              comm::Communicator& job);

  int workers() const { return static_cast<int>(ranks_.workers.size()); }
  /// Gradients of a step of the run: as many as its tickets. Fewer than workers where some are
  /// backups.
  int64_t gradients() const { return spec_.gradients; }
  /// A round of the steps [first, end). `comes` is told of each ticket of this rank, in their order
  /// and as early as may be: its samples can be read.
  void open(int64_t first, int64_t end, std::function<void(int64_t ticket)> comes);
  /// Sends the gradient of the last ticket, if there was one, and takes the next one with new
  /// weights for it. Nothing where the round has no more. `signal`: not 0 where this rank was asked
  /// to stop, which ends the round with the step that has begun.
  std::optional<int64_t> next(int signal);
  /// Collective over the job. Returns when all gradients have been applied, and the weights and
  /// states of all servers are those of every rank: before this step.
  int64_t close(int signal);
  /// What has asked any rank of the job to stop, as of the last close(); 0: nothing.
  int asked() const { return asked_; }
  /// The run is over: ranks that only serve end with this. Of workers.
  void dismiss(RunStatus status);
  /// Of a rank that only serves: the next round, until its end; or how the run has ended, when it
  /// is dismissed. `stop_requested`: the signal that has asked this rank to stop, or 0.
  std::optional<RunStatus> serve(const std::function<int()>& stop_requested);

  /// How many buckets of a gradient are compressed on their way to servers.
  int compressed_buckets() const { return codecs_.encoded_buckets(); }
  /// What this worker has not sent yet, as StepExchange has it. Between rounds.
  std::vector<TensorRef> compression_state();
  /// Collective over the workers: before the first round.
  void restore_compression(comm::Communicator& workers, comm::SavedState& saved);

  /// Steps of the run that the rounds that are closed have come to.
  int64_t steps() const { return counts_.version / updates_; }
  /// Of the last next(): seconds that it waited for others, those of its group among them.
  double waited() const { return waited_; }
  /// Seconds that this thread has worked for this rank's server.
  double busy_seconds() const { return loop_ ? loop_->busy_seconds() : 0; }
  /// Since the last call, of the rounds that are closed: bytes over all servers, and the rest as
  /// the first one has it.
  ServedCounts take_counts() { return std::exchange(counts_, {}); }

 private:
  std::vector<UnsentBucket> unsent();
  void build_server(const Backend& backend);
  void plan_collection();
  void tell_servers(int64_t first, int64_t end, RunStatus status);
  std::optional<int64_t> take_ticket(int& signal);
  void collect_counts(int signal);

  const RankServersSpec spec_;
  TrainingStep& step_;
  comm::Communicator& job_;
  const int64_t updates_;  // of a step of the run
  ServedRanks ranks_;
  std::vector<ServedPart> parts_;
  const ServedCodecs codecs_;
  std::optional<ServerUpdate> update_;  // where this rank is a server, as is
  std::unique_ptr<ServerLoop> loop_;
  std::unique_ptr<ServerLink> link_;    // of the first rank of a group
  std::unique_ptr<WorkerGroup> group_;  // of a worker
  std::vector<std::unique_ptr<comm::CollectiveOperation>> collection_;
  std::function<void(int64_t)> comes_;
  std::vector<double> rates_;  // of a round, where they are told: from this step on
  int64_t rates_from_ = 0;
  int64_t noted_ = -1;   // a ticket behind the one at work of which `comes_` has been told
  bool making_ = false;  // a gradient is being made
  int64_t end_ = 0;
  int asked_ = 0;
  double waited_ = 0;
  ServedCounts counts_;
};

}  // namespace tutti
