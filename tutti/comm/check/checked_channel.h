#pragma once
// CheckedChannel: sends checksums with every message, to find the rank, the link or the memory that
// changes data: `comm.check = true`.
//
// The sender hashes its block when it posts it, the receiver hashes the data that it will read: its
// own copy, or the sender's memory where the block is lent. A mismatch throws CommError naming
// round, sender, receiver and bytes. The checksums (xxHash's XXH3, 64 bits) travel as one more
// message beside each message with bytes: 8 bytes for each kPiece of it. The price is that both
// sides read the block once more.

#include <cstdint>
#include <vector>

#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

class CheckedChannel final : public ChannelAround {
 public:
  static constexpr size_t kPiece = size_t{64} << 10;  ///< bytes that share a checksum

  /// Collective.
  CheckedChannel(Communicator& communicator, std::vector<RoundOfMessages> rounds,
                 const OpenChannel& inner);
  ~CheckedChannel() override { inner_.reset(); }

  void post(size_t round) override;
  bool received() override;

 private:
  using Sums = std::vector<uint64_t>;  // checksums of one message, by piece
  std::vector<RoundOfMessages> accompanied() override;
  void verify() const;
  void compare(size_t receive, const std::byte* sums) const;

  Communicator& communicator_;
  std::vector<std::vector<Sums>> outgoing_, incoming_;  // by round and message
  bool verified_ = false;
};

}  // namespace tutti::comm
