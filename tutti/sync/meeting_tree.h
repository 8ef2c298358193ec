#pragma once
// Meetings in a hierarchy of centres (sync/meeting.h), which send messages of their own.

#include <memory>

#include "tutti/sync/meeting.h"

namespace tutti::sync {

std::unique_ptr<Meeting> make_tree_meeting(const MeetingSettings& settings,
                                           comm::Communicator& communicator,
                                           const exchange::ReplicaMap& map, size_t floats);

}  // namespace tutti::sync
