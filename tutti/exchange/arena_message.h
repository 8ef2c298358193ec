#pragma once
// Transfers arenas and tensors of any size between ranks, in pieces.

#include <cstddef>
#include <span>
#include <string>

#include "tutti/comm/communicator.h"

namespace tutti::exchange {

/// Sends `data` to `peer`, or receives it from there; blocking. The other rank may arrive at any
/// time, provided that it lives. `tag` identifies a message, as in comm::MessageSpec.
void send_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                std::span<std::byte> data);
void receive_arena(comm::Communicator& communicator, const std::string& name, int peer, int tag,
                   std::span<std::byte> data);

/// Collective and blocking. Copies the floats of `root` to every rank by a planned broadcast: a
/// rank only ever waits for the next piece, however long the whole takes.
void broadcast_arena(comm::Communicator& communicator, const std::string& name, int root,
                     std::span<std::byte> data);

}  // namespace tutti::exchange
