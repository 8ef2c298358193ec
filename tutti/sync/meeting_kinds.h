#pragma once
// The meetings (sync/meeting.h) that have a file of their own; make_meeting() calls these
// functions.

#include <memory>

#include "tutti/sync/meeting.h"

namespace tutti::sync {

/// At a meeting every replica sends its weights; their average is computed while training goes on,
/// and is applied at the next meeting (overlapped DiLoCo: Kale, Douillard, Donchev 2025; CO2: Sun
/// et al. 2024). For replica i with weights s_i at the previous meeting and w_i now, where a is the
/// average of the s_i:
///   anchor' = outer step from the anchor by (anchor - a); without one: a
///   w_i'    = anchor' + (w_i - s_i)
/// Collective.
std::unique_ptr<Meeting> make_delayed_meeting(const MeetingSettings& settings,
                                              comm::Communicator& communicator,
                                              const exchange::ReplicaMap& map, size_t floats);

/// Random pairs of replicas meet; they send messages of their own.
std::unique_ptr<Meeting> make_gossip_meeting(const MeetingSettings& settings,
                                             comm::Communicator& communicator,
                                             const exchange::ReplicaMap& map, size_t floats);

/// Neighbours in a graph meet; they send messages of their own.
std::unique_ptr<Meeting> make_neighbour_meeting(const MeetingSettings& settings,
                                                comm::Communicator& communicator,
                                                const exchange::ReplicaMap& map, size_t floats);

/// Replicas and centres meet in a hierarchy; they send messages of their own.
std::unique_ptr<Meeting> make_tree_meeting(const MeetingSettings& settings,
                                           comm::Communicator& communicator,
                                           const exchange::ReplicaMap& map, size_t floats);

}  // namespace tutti::sync
