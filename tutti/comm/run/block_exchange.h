#pragma once
// All-to-all with counts that each rank knows only when it asks: what a program exchanges whose
// blocks are others every time. Nothing is planned and nothing agreed, so it takes no channel and
// no tag of its own, and making one costs no message.
//
// The k-th one that a rank starts meets the k-th of every other rank of the communicator: all its
// messages are posted in start(), and those of two ranks arrive in their order. So, unlike planned
// operations, all ranks start them in the same order; how they are waited for is free. Reports
// number them so: "exchange number 3" is the third of the communicator.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/run/operation.h"
#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// Of this rank alone. What it sends to rank p is as long as what p receives from it: otherwise the
/// receiver's test() throws CommError. Buffers belong to the caller, lie apart, and stay in use
/// from start() to completion.
struct BlockExchangeSpec {
  std::string name = {};             ///< for messages
  std::vector<Slice> sends = {};     ///< bytes of the input, for each rank
  std::vector<Slice> receives = {};  ///< bytes of the output, from each rank; apart from each other
  const std::byte* input = nullptr;  ///< may be null where nothing is sent
  std::byte* output = nullptr;       ///< may be null where nothing is received
  int priority = 0;
};

class BlockExchange final : public Operation {
 public:
  /// Throws PlanError for blocks that are not size() many or have no buffer, for blocks of the
  /// output that overlap each other or the input, and where this rank sends itself other than what
  /// it receives.
  BlockExchange(Communicator& communicator, BlockExchangeSpec spec);
  ~BlockExchange() override;

 private:
  void begin() override;
  bool advance() override;
  Pending describe() const override;

  BlockExchangeSpec spec_;
  std::unique_ptr<Wire::Messages> messages_;  // in flight: what is received, then what is sent
  uint64_t step_ = 0;         // which exchange of the communicator it is: the same on every rank
  std::vector<int> senders_;  // of each message that is received
};

}  // namespace tutti::comm
