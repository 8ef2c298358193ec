#pragma once
// What channels share: they keep something for each message under way between two ranks.

#include <vector>

#include "tutti/comm/channel.h"

namespace tutti::comm {

class Communicator;

/// Collective. The most messages that any rank sends to one peer in one round, at least 1; the same
/// on every rank.
size_t message_slots(Communicator& communicator, const std::vector<RoundOfMessages>& rounds);

/// Which peers a round still waits for, sorted: those in `not_arrived` (receives), and those in
/// `not_taken` (sends) of which nothing is expected. A peer that has sent its own but not yet taken
/// ours is there: it counts only when nobody else is missing.
std::vector<int> missing_peers(const RoundOfMessages& round, std::vector<int> not_arrived,
                               const std::vector<int>& not_taken);

}  // namespace tutti::comm
