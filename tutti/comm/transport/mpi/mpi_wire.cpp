#include "tutti/comm/transport/mpi/mpi_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "tutti/base/error.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/transport/mpi/deadline.h"
#include "tutti/comm/transport/mpi/mpi_call.h"
#include "tutti/comm/transport/mpi/mpi_channel.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/comm/transport/mpi/timed_call.h"

namespace tutti::comm {

MpiWire::MpiWire(MPI_Comm comm, const std::string& who, double timeout)
    : MpiWire(comm, std::make_shared<Alarm>(duplicate(comm, who, timeout)), timeout) {}

MpiWire::MpiWire(MPI_Comm comm, std::shared_ptr<Alarm> alarm, double timeout)
    : Wire(rank_in(comm), number_of_ranks(comm)), comm_(comm), alarm_(std::move(alarm)),
      timeout_(timeout) {
  MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

MpiWire::~MpiWire() {
  // Freeing is collective: not while an exception passes, or after a rank has given up, when others
  // may never come.
  if (std::uncaught_exceptions() > 0 || alarm_->is_raised()) return;
  const Deadline deadline("leaving a group of ranks (MPI_Comm_free)", timeout_);
  MPI_Comm_free(&comm_);
}

// The smallest number of tags that MPI allows is 32,767, the usual one far larger.
void MpiWire::check_tag(int tag) const {
  int* largest = nullptr;
  int found = 0;
  MPI_CALL(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &largest, &found));
  if (found != 0 && tag > *largest)
    throw CommError(
        fmt::format("{} collectives, or pieces of them, and exposed memories are planned at once: "
                    "this MPI library has no more tags",
                    (tag - kControlTags) / 2));
}

std::unique_ptr<Wire::Messages> MpiWire::messages() { return std::make_unique<Requests>(comm_); }

std::unique_ptr<Wire::Inbox> MpiWire::inbox(size_t room, int tag) {
  check_tag(tag);
  return std::make_unique<MpiInbox>(comm_, room, tag);
}

std::unique_ptr<Channel> MpiWire::channel(const Communicator& communicator,
                                          std::vector<RoundOfMessages> rounds, int number) {
  const int tag = tag_of_channel(number);
  check_tag(tag);
  return std::make_unique<MpiChannel>(communicator, std::move(rounds), comm_, tag);
}

std::unique_ptr<Wire> MpiWire::part(const std::vector<int>& members, const std::string& what,
                                    double timeout) {
  const auto mine = std::ranges::find(members, rank()) - members.begin();
  const Deadline deadline(what, timeout);
  MPI_Comm part = MPI_COMM_NULL;
  MPI_CALL(MPI_Comm_split(comm_, members.front(), static_cast<int>(mine), &part));
  return std::unique_ptr<Wire>(new MpiWire(part, alarm_, timeout));
}

std::string MpiWire::thread_refusal() const {
  int provided = 0;
  MPI_CALL(MPI_Query_thread(&provided));
  if (provided == MPI_THREAD_MULTIPLE) return {};
  const char* const level = provided == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                            : provided == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED"
                                                              : "MPI_THREAD_SINGLE";
  return fmt::format("{} grants {} and not MPI_THREAD_MULTIPLE", MpiSession::library_version(),
                     level);
}

void MpiWire::abort(int code, const std::string& message) {
  do_last_act(message);
  Alarm::linger();
  abort_in_turn(comm_, code);
  std::_Exit(code);
}

}  // namespace tutti::comm
