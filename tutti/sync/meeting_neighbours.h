#pragma once
// The meeting of neighbours in a graph (sync/meeting.h), which sends messages of its own.

#include <memory>

#include "tutti/sync/meeting.h"

namespace tutti::sync {

std::unique_ptr<Meeting> make_neighbour_meeting(const MeetingSettings& settings,
                                                comm::Communicator& communicator,
                                                const exchange::ReplicaMap& map, size_t floats);

}  // namespace tutti::sync
