#pragma once
// The addresses of a rank in the store, and the data that its connections prove. Internal to
// comm/transport/tcp.

#include <string>
#include <vector>

#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/bootstrap/socket.h"
#include "tutti/comm/bootstrap/store.h"

namespace tutti::comm::tcp {

/// A rank's entry in the store. `nonce` is one that no listener had before: so a caller that finds
/// another listener at the address of one that is gone does not mistake it for the right one.
struct Home {
  Nonce nonce{};
  int port = 0;
  int ranks = 1;                   ///< size of the group for which this rank was started
  std::vector<std::string> hosts;  ///< each rank reaches at least one of them

  std::string text() const;
  static Home parse(const std::string& text);  ///< throws CommError
};

/// A switchboard's group, as its connections need it.
struct GroupInStore {
  Store* store = nullptr;  ///< not owned; outlives the connections
  std::string prefix;
  std::string secret;
  int rank = 0, size = 1;
  Nonce nonce{};  ///< nonce of this rank's listener
  /// Why the store has failed, once it has. It is not asked again: a question may take its whole
  /// time-out, and all messages wait meanwhile.
  mutable std::string store_failure = {};

  std::string key(int rank) const;
};

}  // namespace tutti::comm::tcp
