#pragma once
// WeightServer: a server of weights, on a rank of its own or beside a worker. It receives workers'
// gradients in any order, has each applied separately, and sends the current weights to each worker
// that asks. The first server also gives out the tickets (sync/batch_dealer.h).
//
// A worker sends the parts of its gradient, then asks; the server answers when all gradients of
// that worker have been applied: none is lost or applied twice, however late a worker is. A round
// ends when every worker has reported that it has no more; then nothing is in flight.
//
// Where a step takes a quorum of gradients together, the first server decides the order of events:
// which gradients are part of the step, which came too late, and when each worker gets weights. The
// other servers follow it, so that all apply the same gradients and a worker's weights have one
// version.
//
// It is an operation: progress threads advance it, or else the waits and tests of this rank.
// Memory: for each worker on another rank its gradient and last weights, and received encodings;
// with a quorum, one more gradient.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/sync/batch_dealer.h"
#include "tutti/sync/served_codecs.h"
#include "tutti/sync/served_parts.h"

namespace tutti::sync {

/// A worker's message to a server between two gradients.
struct ServerAsk {
  int64_t gradients = 0;  ///< number of gradients sent in this round, which must be processed first
  int32_t ends = 0;       ///< 1: it sends no more; 0: it wants the weights
  int32_t signal = 0;     ///< not 0: it was asked to stop
};

/// The first server's message to a worker.
struct TicketGrant {
  int64_t ticket = -1;  ///< below 0: there are no more in this round,
  int64_t end = 0;      ///< and the round ends before this one
};

/// The first server's decision about a worker, where a step takes a quorum.
struct Verdict {
  enum class What : int32_t {
    taken,    ///< its gradient is part of the step,
    dropped,  ///< or came too late
    served    ///< it gets the current weights
  };
  int32_t worker = 0;
  What what = What::taken;
  int64_t ticket = 0;  ///< ticket of a gradient that is taken
};

/// A gradient to apply, or a quorum's sum.
struct ServedUpdate {
  int64_t number = 0;                     ///< number of updates before it, over the whole run
  int64_t stale = 0;                      ///< number of updates since its weights
  std::span<const float* const> buckets;  ///< its beginning in each bucket of which this server has
                                          ///< a part; otherwise null
  const std::byte* then = nullptr;        ///< weights it was computed with, as an arena
};

/// The weights that a server holds.
class ServedWeights {
 public:
  virtual ~ServedWeights() = default;
  /// Returns the arena; valid where the server has a part.
  virtual std::byte* parameters() = 0;
  /// Called by any thread, one at a time.
  virtual void apply(const ServedUpdate& update) = 0;
};

class WeightServer final : public comm::Operation {
 public:
  struct Spec {
    ServedRanks ranks;
    int server = 0;  ///< this rank's index among the servers
    std::vector<ServedPart> parts;
    TicketRules tickets;
    const ServedCodecs* codecs = nullptr;  ///< the same as the workers'; null: nothing is encoded
  };
  /// Called on this rank only. All arguments must outlive this object.
  WeightServer(comm::Communicator& communicator, Spec spec, const exchange::BucketLayout& layout,
               ServedWeights& weights);
  ~WeightServer() override;

  /// Sets the round's tickets; call it before start(). All tickets before `first` must be applied.
  void open(int64_t first, int64_t end);
  /// Reports that this rank, which has no worker to report it, was asked to stop: the round ends
  /// with the current step. Call it during a round, from the thread that made this object.
  void ask_to_stop() { stop_asked_ = true; }
  /// Call it after wait().
  ServedCounts take_counts();
  /// Returns the seconds in which the thread that made this object has applied gradients: it does
  /// so where no progress threads do.
  double busy_seconds() const { return busy_; }

  // For a worker on this rank, instead of messages. Thread-safe.
  /// Passes the address of each bucket until it is applied. `parameters` holds the worker's
  /// weights, with which the gradient was computed, and receives the answers.
  void take_gradient(std::span<const float* const> buckets, std::byte* parameters);
  void take_ask(const ServerAsk& ask);
  bool answered() const;  ///< whether the last question is answered
  std::optional<TicketGrant> take_grant();

 private:
  using Messages = std::vector<std::unique_ptr<comm::MessageOperation>>;
  struct Worker {
    int rank = 0;
    device::Buffer gradient, weights;             // another rank's; laid out like arenas
    ServerAsk ask;                                // being received
    TicketGrant grant;                            // being sent
    Messages gradients, answers;                  // one per part
    std::vector<std::vector<std::byte>> encoded;  // each part as received; empty: it is dense
    std::unique_ptr<comm::MessageOperation> asks, grants;
    std::deque<TicketGrant> tickets;  // waiting to be sent
    std::vector<const float*> buckets;
    size_t come = 0;      // parts of the next gradient that have arrived
    int64_t settled = 0;  // number of its gradients that were applied or came too late
    int64_t version = 0;
    bool judged = false;   // there is a verdict on the next gradient,
    bool serving = false;  // or on sending it weights
    bool informed = false, ended = false;
  };
  /// Another server, which follows the first one; or the first one.
  struct Follower {
    std::unique_ptr<comm::MessageOperation> message;
    Verdict verdict;               // in flight
    std::deque<Verdict> verdicts;  // waiting to be sent
  };
  struct Held {
    int64_t ticket = 0;
    Worker* worker = nullptr;
  };
  /// State of this rank's own worker.
  struct Here {
    bool gradient = false, asked = false;
    ServerAsk ask;
    std::byte* parameters = nullptr;
  };
  void begin() override;
  bool advance() override;
  comm::Pending describe() const override;
  bool serves() const override { return true; }

  bool is_here(const Worker& worker) const { return worker.rank == communicator().rank(); }
  void plan(Worker& worker, const exchange::BucketLayout& layout);
  void plan_wishes();
  void hear_wishes();
  bool gradient_there(Worker& worker);
  void decode(Worker& worker);
  void apply_gradients();
  void update(const ServedUpdate& update);
  void release(Worker& worker);
  void give_tickets();
  void send_grants(Worker& worker);
  std::optional<ServerAsk> question(Worker& worker) const;
  void take_question(Worker& worker);
  void answer(Worker& worker);
  void serve(Worker& worker);

  // In server_quorum.cpp.
  void plan_verdicts(const exchange::BucketLayout& layout);
  void judge();
  void say(const Worker& worker, Verdict::What what, int64_t ticket = 0);
  bool follow();
  bool done(const Verdict& verdict);
  void apply_step();
  const float* sum_of(size_t lo, size_t hi, int bucket, const exchange::Shard& range);
  void copy_to(std::byte* parameters) const;

  const Spec spec_;
  ServedWeights& weights_;
  std::vector<size_t> own_;     // indices into spec_.parts
  std::vector<size_t> begins_;  // offset of each bucket in the arenas
  std::vector<Worker> workers_;
  std::unique_ptr<BatchDealer> dealer_;  // on the first server
  int64_t version_ = 0;
  ServedCounts counts_;
  // For a quorum.
  std::deque<Verdict> verdicts_;     // in order, not yet carried out
  std::vector<Follower> followers_;  // on the first server: the others; elsewhere: the first one
  std::vector<Held> step_;           // gradients of the current step
  device::Buffer spare_;             // for sums; laid out like the arenas
  // Requests to stop, from servers without a worker: each sends one to the first server.
  std::byte wish_{};
  Messages wishes_;
  std::atomic<bool> stop_asked_ = false;
  bool wish_sent_ = false;
  double busy_ = 0;  // written by owner_ alone
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;  // guards here_ and its worker's tickets
  Here here_;
};

}  // namespace tutti::sync
