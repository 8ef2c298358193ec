#pragma once
// RankServers: servers of weights that are ranks, and their workers, as used by the trainer. The
// servers are the ranks of the first workers, or the last ranks of the job, which then only serve
// (train/loop/serve_workers.cpp). Training consists of rounds between which all ranks meet:
// evaluations, checkpoints and lines of the record are made there.
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

namespace tutti::train {

struct RankServersSpec {
  ServerSettings settings;
  int workers = 1;                      ///< ranks that make gradients, the first ones of the job
  int group = 1;                        ///< how many of them sum their gradients
  int64_t gradients = 1;                ///< per step of the run
  int accumulate = 1;                   ///< micro-batches per gradient
  bool norms = false;                   ///< an update needs norms of whole parameters
  std::function<double(int64_t)> rate;  ///< learning rate of a step of the run
};
RankServersSpec rank_servers_spec(const config::RunConfig& config, const ServerSettings& settings,
                                  int replicas, std::function<double(int64_t)> rate);

/// Not thread-safe; used by the thread that uses the communicator.
class RankServers {
 public:
  /// Collective over the job, on workers after step.start(), with the workers' first weights and
  /// states. `step` was made for a group of workers, or on a server for the servers' plan; it must
  /// outlive this object, and so must `backend` and `job`.
  RankServers(const RankServersSpec& spec, TrainingStep& step, const backend::Backend& backend,
              comm::Communicator& job);

  int workers() const { return static_cast<int>(ranks_.workers.size()); }
  /// Gradients per step of the run, equal to its tickets. Fewer than workers if some are backups.
  int64_t gradients() const { return spec_.gradients; }
  /// Begins a round of the steps [first, end). `comes` is called for each ticket of this rank, in
  /// their order and as early as possible, so that its samples can be read.
  void open(int64_t first, int64_t end, std::function<void(int64_t ticket)> comes);
  /// Sends the gradient of the last ticket, if there was one, and takes the next ticket with new
  /// weights. Returns nothing if the round has no more. `signal`: not 0 if this rank was asked to
  /// stop, which ends the round with the current step.
  std::optional<int64_t> next(int signal);
  /// Collective over the job. Returns when all gradients have been applied, and every rank has the
  /// weights and states of all servers; returns the first step of the next round.
  int64_t close(int signal);
  /// Returns the signal that has asked any rank of the job to stop, as of the last close(); 0:
  /// none.
  int asked() const { return asked_; }
  /// Called on workers when the run is over: ranks that only serve then end.
  void dismiss(trace::RunStatus status);
  /// On a rank that only serves: serves the next round until its end; returns the run's status when
  /// it is dismissed. `stop_requested` returns the signal that has asked this rank to stop, or 0.
  std::optional<trace::RunStatus> serve(const std::function<int()>& stop_requested);

  /// Returns the number of a gradient's buckets that are compressed when sent to servers.
  int compressed_buckets() const { return codecs_.encoded_buckets(); }
  /// Returns this worker's residuals, in the form that StepExchange uses. Call it between rounds.
  std::vector<keep::TensorRef> compression_state();
  /// Collective over the workers. Call it before the first round.
  void restore_compression(comm::Communicator& workers, comm::SavedState& saved);

  /// Steps of the run completed by the closed rounds.
  int64_t steps() const { return counts_.version / updates_; }
  /// Returns the seconds that the last next() waited for others, including those of its group.
  double waited() const { return waited_; }
  /// Returns the seconds that this thread has worked for this rank's server.
  double busy_seconds() const { return loop_ ? loop_->busy_seconds() : 0; }
  /// Returns counts since the last call, for closed rounds: bytes summed over all servers, the rest
  /// from the first server.
  sync::ServedCounts take_counts() { return std::exchange(counts_, {}); }

 private:
  std::vector<keep::UnsentBucket> unsent();
  void build_server(const backend::Backend& backend);
  void plan_collection();
  void tell_servers(int64_t first, int64_t end, trace::RunStatus status);
  std::optional<int64_t> take_ticket(int& signal);
  void collect_counts(int signal);

  const RankServersSpec spec_;
  TrainingStep& step_;
  comm::Communicator& job_;
  const int64_t updates_;  // per step of the run
  sync::ServedRanks ranks_;
  std::vector<sync::ServedPart> parts_;
  const sync::ServedCodecs codecs_;
  std::optional<ServerUpdate> update_;  // on a server, like the next member
  std::unique_ptr<sync::WeightServer> loop_;
  std::unique_ptr<sync::ServerLink> link_;    // on the first rank of a group
  std::unique_ptr<sync::WorkerGroup> group_;  // on a worker
  std::vector<std::unique_ptr<comm::CollectiveOperation>> collection_;
  std::function<void(int64_t)> comes_;
  std::vector<double> rates_;  // received for a round: from rates_from_ on
  int64_t rates_from_ = 0;
  int64_t noted_ = -1;   // the ticket after the current one, if `comes_` was called for it
  bool making_ = false;  // a gradient is being made
  int64_t end_ = 0;
  int asked_ = 0;
  double waited_ = 0;
  sync::ServedCounts counts_;
};

}  // namespace tutti::train
