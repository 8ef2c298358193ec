#pragma once
// Communicators without MPI: ranks find each other in a store and communicate over TCP and, among
// the ranks of a node, over shared memory.

#include <memory>
#include <string>

#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/transport/process_options.h"

namespace tutti::comm {

struct StoreOptions {
  ProcessOptions process = {};
  std::string secret = {};  ///< secret that connections prove to know; empty: rank 0 makes one and
                            ///< puts it into the store, so that every reader of the store can join
};

/// Makes a communicator. Collective among `size` processes, or threads, that give the same store,
/// prefix and size, each with a rank of its own. `prefix` names the group: a new one each time,
/// also when the ranks that are left after a loss make a new communicator. `store` outlives the
/// communicator and those split from it; ranks are looked up in it with the first message to them.
/// The communicator's destructor is not collective. Throws CommError and ConfigError.
std::unique_ptr<Communicator> make_store_communicator(Store& store, const std::string& prefix,
                                                      int rank, int size,
                                                      const StoreOptions& options = {});

}  // namespace tutti::comm
