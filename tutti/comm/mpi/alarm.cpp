#include "tutti/comm/mpi/alarm.h"

#include <chrono>
#include <exception>
#include <thread>

#include "tutti/comm/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTag = 1;
// A rank looks every 0.2 s, so that is how long a hop takes at most; printing and the launcher's forwarding need the rest.
constexpr auto kGrace = std::chrono::milliseconds(1000);
constexpr auto kGracePerHop = std::chrono::milliseconds(200);

// Of the process, because it outlives the exception that unwinds all communicators: the messages are still on their way then.
struct State {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  int by = -1;  // who raised it
  Clock::time_point since{};
};
State state;

void tell_others(int by) {
  state.by = by;
  state.since = Clock::now();
  for (int step = 1; step < state.ranks; step *= 2) {
    MPI_Request request = MPI_REQUEST_NULL;
    // Nobody checks: a rank that cannot be told ends with the job all the same.
    if (MPI_Isend(&state.by, 1, MPI_INT, (state.rank + step) % state.ranks, kTag, state.comm, &request) == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

}  // namespace

Alarm::Alarm(MPI_Comm world) {
  MPI_CALL(MPI_Comm_dup(world, &state.comm));
  MPI_CALL(MPI_Comm_set_errhandler(state.comm, MPI_ERRORS_RETURN));
  MPI_CALL(MPI_Comm_rank(state.comm, &state.rank));
  MPI_CALL(MPI_Comm_size(state.comm, &state.ranks));
}

Alarm::~Alarm() {
  if (std::uncaught_exceptions() == 0 && state.by < 0) MPI_Comm_free(&state.comm);
}

void Alarm::raise() {
  if (state.by < 0) tell_others(state.rank);
}

std::optional<int> Alarm::raised() {
  if (state.by >= 0) return state.by;
  int there = 0;
  MPI_CALL(MPI_Iprobe(MPI_ANY_SOURCE, kTag, state.comm, &there, MPI_STATUS_IGNORE));
  if (there == 0) return std::nullopt;
  int by = 0;
  MPI_CALL(MPI_Recv(&by, 1, MPI_INT, MPI_ANY_SOURCE, kTag, state.comm, MPI_STATUS_IGNORE));
  tell_others(by);
  return by;
}

void Alarm::linger() {
  if (state.by < 0) return;
  auto until = state.since + kGrace;
  for (int step = 1; step < state.ranks; step *= 2) until += kGracePerHop;
  while (Clock::now() < until) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, state.comm, &there, MPI_STATUS_IGNORE);  // MPI moves messages only inside its calls
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace tutti::comm
