#include "tutti/comm/transport/mpi/alarm.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "tutti/comm/transport/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTag = 1;
// A rank looks every 0.2 s, so a hop takes at most that long. The rest is for printing, on a
// machine that many share, after the seconds that the program leaves to the cause
// (cli/job/lifetime.cpp).
constexpr auto kGrace = std::chrono::milliseconds(7000);
constexpr auto kGracePerHop = std::chrono::milliseconds(200);
constexpr auto kForwarding = std::chrono::milliseconds(500);  ///< for mpirun to forward output

// The state of a failed job, for the end of this process. Only linger() reads it: it outlives the
// exception that unwinds all communicators, because their messages are still on their way then. It
// does not disturb later communicators.
struct Farewell {
  int by = -1;
  MPI_Comm comm = MPI_COMM_NULL;
  Clock::time_point until{};
};
Farewell farewell;
std::atomic<bool> abandoned{false};

}  // namespace

Alarm::Alarm(MPI_Comm comm) : comm_(comm) {
  MPI_CALL(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
  MPI_CALL(MPI_Comm_rank(comm_, &rank_));
  MPI_CALL(MPI_Comm_size(comm_, &ranks_));
}

Alarm::~Alarm() {
  if (std::uncaught_exceptions() == 0 && !is_raised()) MPI_Comm_free(&comm_);
}

void Alarm::raised_elsewhere(int by) {
  if (is_raised()) return;
  by_ = by;
  farewell = {.by = by, .comm = comm_, .until = Clock::now() + kGrace};
  for (int step = 1; step < ranks_; step *= 2) farewell.until += kGracePerHop;
}

void Alarm::tell_others(int by) {
  raised_elsewhere(by);
  for (int step = 1; step < ranks_; step *= 2) {
    MPI_Request request = MPI_REQUEST_NULL;
    // Errors are ignored: a rank that cannot be informed ends with the job all the same.
    if (MPI_Isend(&farewell.by, 1, MPI_INT, (rank_ + step) % ranks_, kTag, comm_, &request) ==
        MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

void Alarm::raise() {
  if (!is_raised()) tell_others(rank_);
}

std::optional<int> Alarm::raised() {
  if (is_raised()) return by_;
  int there = 0;
  MPI_CALL(MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &there, MPI_STATUS_IGNORE));
  if (there == 0) return std::nullopt;
  int by = 0;
  MPI_CALL(MPI_Recv(&by, 1, MPI_INT, MPI_ANY_SOURCE, kTag, comm_, MPI_STATUS_IGNORE));
  tell_others(by);
  return by;
}

void Alarm::abandon_send() { abandoned = true; }

// MPI moves messages only inside its calls.
void Alarm::move_on() {
  int ignored = 0;
  if (farewell.comm != MPI_COMM_NULL && !abandoned)
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, farewell.comm, &ignored, MPI_STATUS_IGNORE);
}

void Alarm::linger() {
  if (farewell.comm == MPI_COMM_NULL) return;
  if (abandoned) return std::this_thread::sleep_until(farewell.until);
  MPI_Request everybody = MPI_REQUEST_NULL;
  bool tests = MPI_Ibarrier(farewell.comm, &everybody) == MPI_SUCCESS;
  int printed = 0;
  while (printed == 0 && Clock::now() < farewell.until) {
    // MPI moves messages only inside its calls, so there is one where the barrier has failed, too.
    int ignored = 0;
    if (tests)
      tests = MPI_Test(&everybody, &printed, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    else
      MPI_Iprobe(MPI_ANY_SOURCE, kTag, farewell.comm, &ignored, MPI_STATUS_IGNORE);
    if (!tests) printed = 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::this_thread::sleep_until(std::min(farewell.until, Clock::now() + kForwarding));
}

}  // namespace tutti::comm
