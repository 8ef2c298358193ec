#pragma once
// The parts of two_level.cpp: collectives of several nodes, in two rounds each.

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/nodes.h"

namespace tutti::comm {

/// Adds up this rank's part and puts the finished sum into `to`.
void reduce_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     bool ordered, Block to);
/// Gathers the parts of all ranks into the output; this rank's part lies in `mine`.
void gather_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     Block mine);
/// Does an all_to_all of equal blocks.
void exchange_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table);

}  // namespace tutti::comm
