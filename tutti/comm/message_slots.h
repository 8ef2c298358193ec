#pragma once
// For channels that keep something for each message under way between two ranks.

#include <vector>

#include "tutti/comm/channel.h"

namespace tutti::comm {

class Communicator;

/// Collective. The most messages that any rank sends to one peer in one round, at least 1; the same on every rank.
size_t message_slots(Communicator& communicator, const std::vector<RoundOfMessages>& rounds);

}  // namespace tutti::comm
