#pragma once
// BlockExchange: an all-to-all with counts that each rank knows only when it asks, for
// programs whose blocks change every time. Nothing is planned or agreed, so it takes no channel and
// no tag of its own, and making one costs no message.
//
// The k-th exchange that a rank starts meets the k-th of every other rank of the communicator: all
// its messages are posted in start(), and messages between two ranks arrive in order. So, unlike
// planned operations, all ranks start exchanges in the same order, but may wait for them in any
// order. Reports number them so: "exchange number 3" is the third of the communicator.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/run/operation.h"
#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// One rank's request. This rank sends rank p as many bytes as rank p receives from it: otherwise
/// the receiver's test() throws CommError. Buffers belong to the caller, do not overlap, and stay
/// in use from start() to completion.
struct BlockExchangeSpec {
  std::string name = {};             ///< name in messages
  std::vector<Slice> sends = {};     ///< bytes of the input, for each rank
  std::vector<Slice> receives = {};  ///< bytes of the output, from each rank; without overlaps
  const std::byte* input = nullptr;  ///< may be null where nothing is sent
  std::byte* output = nullptr;       ///< may be null where nothing is received
  int priority = 0;
};

class BlockExchange final : public Operation {
 public:
  /// Throws PlanError unless there are size() blocks each way with a buffer, for blocks of the
  /// output that overlap each other or the input, and where this rank sends itself another
  /// number of bytes than it receives.
  BlockExchange(Communicator& communicator, BlockExchangeSpec spec);
  ~BlockExchange() override;

 private:
  void begin() override;
  bool advance() override;
  Pending describe() const override;

  BlockExchangeSpec spec_;
  std::unique_ptr<Wire::Messages> messages_;  // in flight: first the receives, then the sends
  uint64_t step_ = 0;         // number of the exchange in the communicator: the same on every rank
  std::vector<int> senders_;  // sender of each message to receive
};

}  // namespace tutti::comm
