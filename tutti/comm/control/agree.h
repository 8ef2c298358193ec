#pragma once
// agree: all ranks get the same values. decide() lets rank 0 alone do some work, however long it
// takes, and gives all ranks the result; on_each() lets every rank do some work, and all succeed or
// fail together; agree() checks that all were given the same text.
//
// The work runs in a thread of its own, and the calling thread, the only one that may call MPI,
// sends the signs of life. Otherwise a second thread would call MPI, which needs more than the
// MPI_THREAD_FUNNELED that most jobs start with. The work loses nothing by it: a new thread
// inherits the affinity mask and the floating-point modes of its creator, its OpenMP teams have as
// many threads as they ask for, and these end with it. Meanwhile all calling threads sleep, except
// for a poll every 10 ms, so that kernels can be measured.

#include <functional>
#include <string>
#include <string_view>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

/// Does `work` on rank 0 and returns its result, any bytes, on every rank. Collective. `what` names
/// the work in messages: "measuring kernels". While it works, rank 0 sends the others a sign of
/// life every second, so that their time-out counts from the last one; after 10 s, and then every
/// minute, it also writes to its log. `work` may not use the communicator. If it throws, all ranks
/// throw an error of the same type with the same message; on other ranks this begins with the
/// name of rank 0, unless it is a ConfigError, which concerns all ranks.
std::string decide(Communicator& communicator, std::string_view what,
                   const std::function<std::string()>& work);

/// Does `work`, such as writing a file of its own, on every rank. Collective: returns when all have
/// done it. If it throws on any rank, all throw an error with the type and the message of the first
/// such rank, with its name as in decide(). Time-outs and `work` as in decide(): it may take long
/// and may not use the communicator. `what` names the work: "writing a checkpoint".
void on_each(Communicator& communicator, std::string_view what, const std::function<void()>& work);

/// Throws ConfigError, the same on all ranks, unless all pass the same text as rank 0. Collective.
/// `lines` has one "key = value" a line; `what` names the text in messages: "the configuration".
void agree(Communicator& communicator, std::string_view what, std::string_view lines);

/// Returns whether an error's text begins with the name of a rank ("rank 1/2 on node07: ..."), as
/// the errors of waits and those passed on by decide() and on_each() do.
bool names_rank(const std::string& text);

/// Returns the text of `root` on every rank. Collective.
std::string broadcast_text(Communicator& communicator, std::string text, int root);

}  // namespace tutti::comm
