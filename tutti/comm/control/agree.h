#pragma once
// agree: what all ranks have to hold alike. decide() lets rank 0 alone do something, however long
// it takes, and gives everybody the result; on_each() lets every rank do something, and all succeed
// or fail together; agree() finds out whether all were given the same text.
//
// The work runs in a thread of its own and the calling thread, the only one that may call MPI,
// sends the signs of life. The other way round a second thread would call MPI, which needs more
// than the MPI_THREAD_FUNNELED that most jobs start with. The work loses nothing by it: a new
// thread inherits the affinity mask and the floating-point modes of the one that made it, its
// OpenMP teams have as many threads as they ask for, and these end with it. Meanwhile all calling
// threads sleep but for a look every 10 ms, so that kernels can be measured.

#include <functional>
#include <string>
#include <string_view>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

/// Rank 0 does `work`, and every rank gets its result, any bytes. Collective. `what` says what rank
/// 0 does, for messages: "measuring kernels". While it works it says so to the others every second,
/// so that their time-out counts from its last sign of life; after 10 s, and then every minute, its
/// log says so too. `work` may not use the communicator. If it throws, all ranks throw an error of
/// the same type with the same message; that of other ranks begins with the name of rank 0, unless
/// it is a ConfigError, which is everybody's.
std::string decide(Communicator& communicator, std::string_view what,
                   const std::function<std::string()>& work);

/// Every rank does `work`, such as writing a file of its own. Collective: returns when all have
/// done it. If it throws on any rank, all throw an error of the type and with the message of the
/// first such rank, with its name as in decide(). Time-outs and `work` as in decide(): it may take
/// long and may not use the communicator. `what` says what they do: "writing a checkpoint".
void on_each(Communicator& communicator, std::string_view what, const std::function<void()>& work);

/// Throws ConfigError, the same on all ranks, unless all pass the same text as rank 0. Collective.
/// `lines` has one "key = value" a line; `what` says of what, for messages: "the configuration".
void agree(Communicator& communicator, std::string_view what, std::string_view lines);

/// Whether an error's text begins with the name of a rank, as those of waits do and those that
/// decide() and on_each() have passed on: "rank 1/2 on node07: ...".
bool names_rank(const std::string& text);

/// The text of `root` on every rank. Collective.
std::string broadcast_text(Communicator& communicator, std::string text, int root);

}  // namespace tutti::comm
