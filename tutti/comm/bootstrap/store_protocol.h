#pragma once
// The protocol between TcpStore and its server. Numbers are in this machine's byte order: the magic
// number refuses a machine with another one. Internal to comm/bootstrap.

#include <cstdint>

#include "tutti/comm/bootstrap/secret.h"

namespace tutti::comm::store_protocol {

inline constexpr uint64_t kMagic = 0x31304552'4f545354;

/// Server to client, at once.
struct Challenge {
  uint64_t magic;
  Nonce nonce;
};
/// Client to server.
struct Introduction {
  uint64_t magic;
  Nonce nonce;
  Sha256Digest proof;  ///< role "store client", over both nonces, the server's first
};
/// Server to client.
struct Welcome {
  uint64_t accepted;   ///< 1, or 0 for a wrong proof
  Sha256Digest proof;  ///< role "store server"
};

enum Command : uint32_t { kSet = 1, kGet = 2 };
struct Request {
  uint32_t operation;
  uint32_t key_bytes;
  uint32_t value_bytes;
  uint32_t unused;
  double seconds;
};
enum Status : uint32_t { kDone = 0, kNotSet = 1, kFull = 2 };
struct Reply {
  uint32_t status;
  uint32_t bytes;
};

}  // namespace tutti::comm::store_protocol
