#pragma once
// The protocol of a connection between two ranks. Numbers are in this machine's byte order: the
// magic number of the greeting refuses a machine with another one. Internal to comm/transport/tcp.
//
// A connection carries messages one way: the sender connects to the receiver. The way back carries
// only the receiver's answers.
//
// A short message travels at once (eager), as long as the receiver has space left for messages
// without a receive (the connection's credit). Longer messages, and all when there is no space, are
// announced (request), granted once a receive for them is posted, and cut into pieces (data),
// between which other messages pass.

#include <cstddef>
#include <cstdint>

#include "tutti/comm/bootstrap/secret.h"

namespace tutti::comm::tcp {

enum class Kind : uint32_t {
  eager = 0x7475'0001,  ///< tag, wire, bytes, and as many after it; id: not 0, it asks for `taken`
  request,              ///< tag, wire, bytes, id
  data,                 ///< id, bytes, and as many after it
  cancel,               ///< tag, wire, id: a request that will not be served
  alarm,                ///< tag: the rank that gives up
  goodbye,              ///< in either direction: no more comes, as intended
  grant,                ///< back: id
  taken,                ///< back: id
  credit,               ///< back: bytes
};
struct FrameHeader {
  Kind kind{};
  int32_t tag = 0;
  uint64_t wire = 0;
  uint64_t id = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(FrameHeader) == 32);

inline constexpr size_t kEager = size_t{64} << 10;   ///< bytes of the longest eager message
inline constexpr size_t kCredit = size_t{2} << 20;   ///< bytes of eager messages kept, a connection
inline constexpr size_t kPiece = size_t{256} << 10;  ///< bytes of a data frame
/// Returns how much of the credit an eager message takes; an empty one has to be remembered, too.
inline size_t credit_of(uint64_t bytes) { return static_cast<size_t>(bytes) + 128; }

/// Sent by the receiver when a sender connects.
struct Greeting {
  static constexpr uint64_t kMagic = 0x31504354'49545554;
  uint64_t magic = kMagic;
  Nonce challenge{};
};
/// The sender's answer.
struct Hello {
  int32_t from = 0, to = 0;
  Nonce nonce{};
  Sha256Digest proof{};  ///< role "rank calls"
};
/// The receiver's answer. Frames follow.
struct Welcome {
  Sha256Digest proof{};  ///< role "rank answers"
};
/// Returns the text that both sides' proofs cover: the group, the receiver's nonce as it stands in
/// the store, and the exchange so far.
std::string conversation(const std::string& group, const Nonce& listener, const Nonce& challenge,
                         const Hello& hello);

}  // namespace tutti::comm::tcp
