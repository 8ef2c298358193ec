#pragma once
// The parts of two_level.cpp: collectives of several nodes, in two rounds each.

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/nodes.h"

namespace tutti::comm {

/// The sum of this rank's part, finished, into `to`.
void reduce_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     bool ordered, Block to);
/// This rank's part lies in `mine`; the parts of all into the output.
void gather_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table,
                     Block mine);
/// An all_to_all of equal blocks.
void exchange_by_nodes(ScheduleBuilder& builder, const Task& task, const NodeTable& table);

}  // namespace tutti::comm
