#include "tutti/comm/mpi/alarm.h"

#include <chrono>
#include <exception>
#include <thread>

#include "tutti/comm/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTag = 1;
// A rank looks every 0.2 s, so that is how long a hop takes at most; printing and the launcher's
// forwarding need the rest.
constexpr auto kGrace = std::chrono::milliseconds(1000);
constexpr auto kGracePerHop = std::chrono::milliseconds(200);

// What this process has heard. It outlives the exception that unwinds all communicators: the
// messages are still on their way then, and the first alarm ends the job.
struct Heard {
  int by = -1;
  MPI_Comm comm = MPI_COMM_NULL;
  Clock::time_point until{};
};
Heard heard;

}  // namespace

Alarm::Alarm(MPI_Comm world) {
  MPI_CALL(MPI_Comm_dup(world, &comm_));
  MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  MPI_CALL(MPI_Comm_rank(comm_, &rank_));
  MPI_CALL(MPI_Comm_size(comm_, &ranks_));
}

Alarm::~Alarm() {
  if (std::uncaught_exceptions() == 0 && heard.by < 0) MPI_Comm_free(&comm_);
}

void Alarm::tell_others(int by) {
  heard = {.by = by, .comm = comm_, .until = Clock::now() + kGrace};
  for (int step = 1; step < ranks_; step *= 2) {
    heard.until += kGracePerHop;
    MPI_Request request = MPI_REQUEST_NULL;
    // Nobody checks: a rank that cannot be told ends with the job all the same.
    if (MPI_Isend(&heard.by, 1, MPI_INT, (rank_ + step) % ranks_, kTag, comm_, &request) ==
        MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

void Alarm::raise() {
  if (heard.by < 0) tell_others(rank_);
}

std::optional<int> Alarm::raised() {
  if (heard.by >= 0) return heard.by;
  int there = 0;
  MPI_CALL(MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &there, MPI_STATUS_IGNORE));
  if (there == 0) return std::nullopt;
  int by = 0;
  MPI_CALL(MPI_Recv(&by, 1, MPI_INT, MPI_ANY_SOURCE, kTag, comm_, MPI_STATUS_IGNORE));
  tell_others(by);
  return by;
}

void Alarm::linger() {
  if (heard.by < 0) return;
  while (Clock::now() < heard.until) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, heard.comm, &there,
               MPI_STATUS_IGNORE);  // MPI moves messages only inside its calls
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace tutti::comm
