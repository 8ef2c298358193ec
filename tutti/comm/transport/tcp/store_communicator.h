#pragma once
// Communicators without MPI: ranks that find each other in a store and talk over TCP and, among the
// ranks of a node, shared memory.

#include <memory>
#include <string>

#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/process_options.h"

namespace tutti::comm {

struct StoreOptions {
  ProcessOptions process = {};
  std::string secret = {};  ///< that connections prove to know; empty: rank 0 makes one and leaves
                            ///< it in the store, so who reads the store can join
};

/// Collective among `size` processes, or threads, that give the same store, prefix and size, each a
/// rank of its own. `prefix` names the group: a new one each time, also after ranks were lost, when
/// those that are left make a new communicator among themselves. `store` outlives the communicator
/// and those split from it; ranks are looked up in it with the first message to them. Its
/// destructor is of this rank alone. Throws CommError and ConfigError.
std::unique_ptr<Communicator> make_store_communicator(Store& store, const std::string& prefix,
                                                      int rank, int size,
                                                      const StoreOptions& options = {});

}  // namespace tutti::comm
