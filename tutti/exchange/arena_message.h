#pragma once
// Arenas and tensors of any size between ranks, in pieces.

#include <cstddef>
#include <span>
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti {

/// Sends `data` to `peer`, or receives it from there; blocking. The other rank may come as late as
/// it likes, as long as it lives. `tag`: of a message, as in comm::MessageSpec.
void send_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                std::span<std::byte> data);
void receive_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                   std::span<std::byte> data);

/// Collective and blocking. Floats of `root` on every rank, by a planned broadcast: a rank waits
/// for the next piece alone, however long the whole takes.
void broadcast_arena(comm::Communicator& communicator, const std::string& name, int root,
                     std::span<std::byte> data);

}  // namespace tutti
