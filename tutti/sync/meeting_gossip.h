#pragma once
// Meetings of random pairs of replicas (sync/meeting.h), which send messages of their own.

#include <memory>

#include "tutti/sync/meeting.h"

namespace tutti::sync {

std::unique_ptr<Meeting> make_gossip_meeting(const MeetingSettings& settings,
                                             comm::Communicator& communicator,
                                             const exchange::ReplicaMap& map, size_t floats);

}  // namespace tutti::sync
