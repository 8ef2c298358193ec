#pragma once
// ServerLink: a worker's connection to the servers (sync/weight_server.h). In a group of ranks that
// sum their gradients, one rank has it.
//
//   begin_round(); take_ticket(); then for each ticket: make the gradient, push() each bucket;
//   take_ticket(), and if there is one ask(), wait() for each bucket; otherwise end()

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
#include "tutti/sync/weight_server.h"

namespace tutti::sync {

/// Not thread-safe; used by the thread that uses the communicator.
class ServerLink {
 public:
  struct Spec {
    ServedRanks ranks;
    std::vector<ServedPart> parts;
    std::byte* parameters = nullptr;       ///< the arena that receives the weights
    WeightServer* here = nullptr;          ///< this rank's server, if it is one
    const ServedCodecs* codecs = nullptr;  ///< the same as the servers'; null: nothing is encoded
  };
  ServerLink(comm::Communicator& communicator, Spec spec, const exchange::BucketLayout& layout);

  void begin_round();
  /// Returns the next ticket when it arrives. That may take until slower workers have caught up,
  /// each by a gradient within the communicator's time-out. Returns nothing when the round has no
  /// more.
  std::optional<int64_t> take_ticket();
  /// Returns the ticket that take_ticket() will give, if it has arrived. Never blocks.
  std::optional<int64_t> coming_ticket();
  /// The round's tickets end before this one. Known after take_ticket() has returned nothing.
  int64_t end_of_round() const { return end_; }

  /// Reports that a bucket of the last ticket's gradient is complete at `sum`, where it must stay
  /// until the weights have arrived or end() returns. Call it once for each bucket; never blocks.
  /// Compressed buckets are encoded for this rank's own server, too, so that no gradient depends on
  /// the placement of servers.
  void push(int bucket, const float* sum);
  /// Requests the weights once the gradient is pushed. Never blocks. A `signal` other than 0
  /// reports that this worker was asked to stop.
  void ask(int signal);
  /// Returns whether wait() would return at once. Never blocks.
  bool arrived(int bucket);
  /// Returns when the weights of this bucket have arrived.
  void wait(int bucket);
  /// Announces that this worker makes no more gradients in this round. Returns when the servers
  /// have taken all.
  void end(int signal);

  /// Returns this bucket's residual, laid out like the arena; empty if nothing is compressed. Do
  /// not call it within a round. The residual belongs in a checkpoint.
  std::span<float> unsent(int bucket) { return unsent_[static_cast<size_t>(bucket)]; }

 private:
  struct Part {
    int server = 0, bucket = 0;
    size_t offset = 0, bytes = 0;                               // within the bucket
    std::unique_ptr<comm::MessageOperation> gradient, weights;  // null: this rank's server
    std::vector<std::byte> encoded;  // space for the message; may be empty
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
  std::vector<const float*> sums_;          // by bucket, once it is complete
  std::vector<size_t> begins_;              // offset of each bucket in the arenas
  std::vector<std::vector<float>> unsent_;  // by bucket
  device::Buffer decoded_;                  // laid out like the arenas, for this rank's server
  std::vector<std::unique_ptr<comm::MessageOperation>> asks_;  // by server; null: this rank
  std::unique_ptr<comm::MessageOperation> grants_;             // null: the first server is here
  ServerAsk ask_;
  TicketGrant grant_;
  std::deque<int64_t> tickets_;
  bool knows_end_ = true;
  int64_t end_ = 0, pushed_ = 0, ticket_ = 0;
  size_t complete_ = 0;  // complete buckets of the gradient
};

/// Ranks that act as one worker: one rank sends for them, and distributes the weights received.
class WorkerGroup {
 public:
  /// Collective in `group`. `link` is given on rank 0 of the group and null on the others. All
  /// arguments must outlive this object.
  WorkerGroup(comm::Communicator& group, ServerLink* link, const exchange::BucketLayout& layout,
              std::byte* parameters);

  bool alone() const { return group_.size() == 1; }
  /// Reports that the group's sum of this bucket is at `sum`. Call it on each rank.
  void push(int bucket, const float* sum);
  bool arrived(int bucket);
  void wait(int bucket);
  double exposed_seconds() const { return exposed_; }

 private:
  bool begin(int bucket);
  comm::Communicator& group_;
  ServerLink* const link_;
  std::vector<std::unique_ptr<comm::CollectiveOperation>> spread_;  // by bucket; none if alone
  std::vector<char> begun_;
  double exposed_ = 0;
};

}  // namespace tutti::sync
