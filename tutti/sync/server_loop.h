#pragma once
// ServerLoop: a server of weights, on a rank of its own or beside a worker. It takes the gradients
// of workers as they come, has each applied by itself, and gives the weights as they are then to
// whoever asks. The first server also gives out the tickets (sync/ticket_desk.h).
//
// A worker sends the parts of its gradient, then asks; the server answers when all of its gradients
// have been applied: none is lost or applied twice, whoever is late. A round ends when every worker
// has said that it has no more; then nothing is under way.
//
// Where a step takes a quorum of gradients together, the first server says in which order things
// happen: which gradient is part of the step, which came too late, who gets the weights when. The
// others follow it, so that all apply the same gradients and a worker's weights are of one version.
//
// It is an operation: progress threads move it on, or else whatever this rank tests and waits for.
// Memory: the gradient and the last weights of each worker of another rank, and what comes encoded;
// with a quorum a gradient more.

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
#include "tutti/sync/served_codecs.h"
#include "tutti/sync/served_parts.h"
#include "tutti/sync/ticket_desk.h"

namespace tutti {

/// What a worker says to a server between two gradients.
struct ServerAsk {
  int64_t gradients = 0;  ///< that it has sent in this round, all of which come first
  int32_t ends = 0;       ///< 1: it sends no more; 0: it wants the weights
  int32_t signal = 0;     ///< not 0: it was asked to stop
};

/// What the first server says to a worker.
struct TicketGrant {
  int64_t ticket = -1;  ///< below 0: there are no more in this round,
  int64_t end = 0;      ///< which ends before this one
};

/// What the first server decides of a worker, where a step takes a quorum.
struct Verdict {
  enum class What : int32_t {
    taken,    ///< its gradient is part of the step,
    dropped,  ///< or came too late
    served    ///< it gets the weights as they are
  };
  int32_t worker = 0;
  What what = What::taken;
  int64_t ticket = 0;  ///< of a gradient that is taken
};

/// A gradient that has come, or the sum of a quorum's.
struct ServedUpdate {
  int64_t number = 0;                     ///< updates before it, over the whole run
  int64_t stale = 0;                      ///< of them, those since its weights
  std::span<const float* const> buckets;  ///< where it begins in each bucket of which this server
                                          ///< has a part; otherwise null
  const std::byte* then = nullptr;        ///< its weights, laid out as the parameters
};

/// The weights that a server has.
class ServedWeights {
 public:
  virtual ~ServedWeights() = default;
  /// The arena; valid where the server has a part.
  virtual std::byte* parameters() = 0;
  /// By any thread, one at a time.
  virtual void apply(const ServedUpdate& update) = 0;
};

/// Since the last look.
struct ServedCounts {
  int64_t updates = 0;
  int64_t version = 0;                  ///< updates of the whole run
  int64_t dropped = 0;                  ///< gradients that came too late for a quorum
  double bytes = 0;                     ///< of gradients and weights, from and to other ranks
  std::vector<int64_t> staleness = {};  ///< [n]: gradients that came n updates after their weights
  int64_t spread =
      0;  ///< the most versions that a worker's weights were behind, as a gradient came
};

class ServerLoop final : public comm::Operation {
 public:
  struct Spec {
    ServedRanks ranks;
    int server = 0;  ///< this rank, among the servers
    std::vector<ServedPart> parts;
    TicketRules tickets;
    const ServedCodecs* codecs = nullptr;  ///< as the workers have them; null: nothing is encoded
  };
  /// Of this rank alone. All of them outlive this.
  ServerLoop(comm::Communicator& communicator, Spec spec, const BucketLayout& layout,
             ServedWeights& weights);
  ~ServerLoop() override;

  /// Before start(): the round's tickets. All before `first` have been applied.
  void open(int64_t first, int64_t end);
  /// This rank, which has no worker that could say so, was asked to stop: the round ends with the
  /// step that has begun. Of the thread that made this, during a round.
  void ask_to_stop() { stop_asked_ = true; }
  /// After wait().
  ServedCounts take_counts();
  /// Seconds in which the thread that made this has applied gradients: between others, where no
  /// progress threads do it.
  double busy_seconds() const { return busy_; }

  // For a worker of this rank, instead of messages. Thread-safe.
  /// Where each bucket lies until it is applied. `parameters`: the worker's weights, of which it
  /// is, and where the answers go.
  void take_gradient(std::span<const float* const> buckets, std::byte* parameters);
  void take_ask(const ServerAsk& ask);
  bool answered() const;  ///< the last one
  std::optional<TicketGrant> take_grant();

 private:
  using Messages = std::vector<std::unique_ptr<comm::MessageOperation>>;
  struct Worker {
    int rank = 0;
    Buffer gradient, weights;                     // of another rank; laid out as the arenas
    ServerAsk ask;                                // that is being received
    TicketGrant grant;                            // that is being sent
    Messages gradients, answers;                  // a part each
    std::vector<std::vector<std::byte>> encoded;  // of each part, as it comes; empty: it is dense
    std::unique_ptr<comm::MessageOperation> asks, grants;
    std::deque<TicketGrant> tickets;  // to be sent
    std::vector<const float*> buckets;
    size_t come = 0;      // parts of the next gradient
    int64_t settled = 0;  // of its gradients those that were applied, or came too late
    int64_t version = 0;
    bool judged = false;   // there is a verdict on the next one,
    bool serving = false;  // or on who gets weights
    bool told = false, ended = false;
  };
  /// Another server, which follows the first one; or that one.
  struct Follower {
    std::unique_ptr<comm::MessageOperation> message;
    Verdict verdict;               // that is under way
    std::deque<Verdict> verdicts;  // to be sent
  };
  struct Held {
    int64_t ticket = 0;
    Worker* worker = nullptr;
  };
  /// What the worker of this rank has said.
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
  void plan(Worker& worker, const BucketLayout& layout);
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

  // server_quorum.cpp
  void plan_verdicts(const BucketLayout& layout);
  void judge();
  void say(const Worker& worker, Verdict::What what, int64_t ticket = 0);
  bool follow();
  bool done(const Verdict& verdict);
  void apply_step();
  const float* sum_of(size_t lo, size_t hi, int bucket, const Shard& range);
  void copy_to(std::byte* parameters) const;

  const Spec spec_;
  ServedWeights& weights_;
  std::vector<size_t> own_;     // indices into spec_.parts
  std::vector<size_t> begins_;  // of each bucket in the arenas
  std::vector<Worker> workers_;
  std::unique_ptr<TicketDesk> desk_;  // of the first server
  int64_t version_ = 0;
  ServedCounts counts_;
  // Of a quorum.
  std::deque<Verdict> verdicts_;     // in their order, not done yet
  std::vector<Follower> followers_;  // of the first server; of others that one
  std::vector<Held> step_;           // gradients of the step under way
  Buffer spare_;                     // for sums; laid out as the arenas
  // Wishes to stop, of servers without a worker: from each to the first one, once.
  std::byte wish_{};
  Messages wishes_;
  std::atomic<bool> stop_asked_ = false;
  bool wish_told_ = false;
  double busy_ = 0;  // written by owner_ alone
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::mutex mutex_;  // of here_ and its worker's tickets
  Here here_;
};

}  // namespace tutti
