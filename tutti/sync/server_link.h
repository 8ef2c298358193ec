#pragma once
// ServerLink: a worker's end of the servers (sync/server_loop.h). For a group of ranks that sum
// their gradients one of them has it.
//
//   begin_round(); take_ticket(); then for each ticket: make the gradient, push() each bucket;
//   take_ticket(), and where there is one ask(), wait() for each bucket; otherwise end()

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/sync/served_codecs.h"
#include "tutti/sync/server_loop.h"

namespace tutti {

/// Not thread-safe; of the thread that uses the communicator.
class ServerLink {
 public:
  struct Spec {
    ServedRanks ranks;
    std::vector<ServedPart> parts;
    std::byte* parameters = nullptr;       ///< the arena into which weights come
    ServerLoop* here = nullptr;            ///< the server of this rank, if it is one
    const ServedCodecs* codecs = nullptr;  ///< as the servers have them; null: nothing is encoded
  };
  ServerLink(comm::Communicator& communicator, Spec spec, const BucketLayout& layout);

  void begin_round();
  /// The next one, when it is there: it may take until slower workers have come closer, each by a
  /// gradient within the communicator's time-out. Nothing: the round has no more.
  std::optional<int64_t> take_ticket();
  /// The one that take_ticket() will give, if it has come. Never blocks.
  std::optional<int64_t> coming_ticket();
  /// The round's tickets end before this one. Known when take_ticket() has given nothing.
  int64_t end_of_round() const { return end_; }

  /// A bucket of the gradient is complete at `sum`, where it stays until the weights have come or
  /// end() returns: of the ticket that was taken last. Each bucket once; never blocks. What is
  /// encoded is so for the server of this rank, too: where servers are changes no gradient.
  void push(int bucket, const float* sum);
  /// The weights, please, now that the gradient is there. Never blocks.
  void ask(int signal);
  /// Whether wait() would return at once. Never blocks.
  bool arrived(int bucket);
  /// Returns when the weights of this bucket have come.
  void wait(int bucket);
  /// There are no more gradients in this round. Returns when the servers have taken all.
  void end(int signal);

  /// What was not sent of this bucket, as it lies in the arena; empty where all of it is. Not
  /// within a round. It belongs into a checkpoint.
  std::span<float> unsent(int bucket) { return unsent_[static_cast<size_t>(bucket)]; }

 private:
  struct Part {
    int server = 0, bucket = 0;
    size_t offset = 0, bytes = 0;                               // in the bucket
    std::unique_ptr<comm::MessageOperation> gradient, weights;  // null: of this rank
    std::vector<std::byte> encoded;  // room for the message; may be empty
  };
  bool is_here(int server) const {
    return spec_.ranks.servers[static_cast<size_t>(server)] == communicator_.rank();
  }
  bool encodes(int bucket) const { return spec_.codecs && spec_.codecs->encodes(bucket); }
  std::span<std::byte> encode(Part& part, const float* sum);
  float* decoded(int bucket) {
    return decoded_.as<float>().data() + begins_[static_cast<size_t>(bucket)] / sizeof(float);
  }
  void look_for_grants();
  void tell_servers(bool ends, int signal);
  std::vector<int> others() const;
  bool answered_here();
  void wait_here();

  comm::Communicator& communicator_;
  const Spec spec_;
  std::vector<std::vector<Part>> buckets_;
  std::vector<const float*> sums_;          // of each bucket, where it is complete
  std::vector<size_t> begins_;              // of each bucket in the arenas
  std::vector<std::vector<float>> unsent_;  // of each bucket
  Buffer decoded_;                          // laid out as the arenas, for the server of this rank
  std::vector<std::unique_ptr<comm::MessageOperation>> asks_;  // of each server; null: this rank
  std::unique_ptr<comm::MessageOperation> grants_;             // null: the first server is here
  ServerAsk ask_;
  TicketGrant grant_;
  std::deque<int64_t> tickets_;
  bool told_end_ = true;
  int64_t end_ = 0, pushed_ = 0, ticket_ = 0;
  size_t complete_ = 0;  // buckets of the gradient
};

/// Ranks that make gradients as one worker: who sends for them, and hands out what comes back.
class WorkerGroup {
 public:
  /// Collective in `group`. `link`: of rank 0 of it, null on the others. Both outlive this.
  WorkerGroup(comm::Communicator& group, ServerLink* link, const BucketLayout& layout,
              std::byte* parameters);

  bool alone() const { return group_.size() == 1; }
  /// The sum of this bucket over the group is at `sum`; on each rank.
  void push(int bucket, const float* sum);
  bool arrived(int bucket);
  void wait(int bucket);
  double exposed_seconds() const { return exposed_; }

 private:
  bool begin(int bucket);
  comm::Communicator& group_;
  ServerLink* const link_;
  std::vector<std::unique_ptr<comm::CollectiveOperation>> spread_;  // of each bucket; none if alone
  std::vector<char> begun_;
  double exposed_ = 0;
};

}  // namespace tutti
