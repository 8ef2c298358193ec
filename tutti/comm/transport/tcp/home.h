#pragma once
// Where a rank of a group is found, and what its connections prove. Internal to comm/transport/tcp.

#include <optional>
#include <string>
#include <vector>

#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/bootstrap/socket.h"
#include "tutti/comm/bootstrap/store.h"

namespace tutti::comm::tcp {

/// What a rank leaves in the store. `nonce` is one that no listener had before: who finds another
/// listener at the address of one that is gone is not taken for its caller.
struct Home {
  Nonce nonce{};
  int port = 0;
  int ranks = 1;                   ///< of the group that this one was started for
  std::vector<std::string> hosts;  ///< one of them can be reached from everywhere

  std::string text() const;
  static Home parse(const std::string& text);  ///< throws CommError
};

/// The group that a switchboard belongs to, as its connections need it.
struct GroupInStore {
  Store* store = nullptr;  ///< not owned; outlives the connections
  std::string prefix;
  std::string secret;
  int rank = 0, size = 1;
  Nonce nonce{};  ///< of this rank's listener
  /// Why the store has failed, once it has. It is not asked again: a question may last its
  /// time-out, and all messages wait meanwhile.
  mutable std::string store_failure = {};

  std::string key(int rank) const;
};

}  // namespace tutti::comm::tcp
