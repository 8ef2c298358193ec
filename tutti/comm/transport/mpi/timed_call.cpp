#include "tutti/comm/transport/mpi/timed_call.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/running_time.h"
#include "tutti/comm/transport/mpi/mpi_call.h"

namespace tutti::comm {
namespace {

constexpr double kSpinSeconds = 2e-3;
constexpr auto kNap = std::chrono::microseconds(100);

// Returns whether the request completes in time.
bool complete(MPI_Request& request, double timeout) {
  RunningTime waited;
  for (;;) {
    int done = 0;
    MPI_CALL(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return true;
    const double seconds = waited.seconds();
    if (seconds > timeout) return false;
    if (seconds > kSpinSeconds)
      std::this_thread::sleep_for(kNap);
    else
      std::this_thread::yield();
  }
}

[[noreturn]] void give_up(const std::string& who, double timeout) {
  throw CommError(fmt::format(
      "{}: no answer within {:g} s: another rank is stuck, gone, or does something else", who,
      timeout));
}

// An abandoned call may still write into its memory, which must not be freed.
template <class Held>
void finish(MPI_Request& request, std::unique_ptr<Held>& held, const std::string& who,
            double timeout) {
  if (complete(request, timeout)) return;
  static_cast<void>(held.release());
  give_up(who, timeout);
}

}  // namespace

MPI_Comm duplicate(MPI_Comm comm, const std::string& who, double timeout) {
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CALL(MPI_Comm_idup(comm, made.get(), &request));
  finish(request, made, who, timeout);
  MPI_CALL(MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN));
  return *made;
}

std::vector<std::string> gather_texts(const std::string& mine, MPI_Comm comm,
                                      const std::string& who, double timeout) {
  struct Held {
    std::string mine;
    int length = 0;
    std::vector<int> lengths, begins;
    std::string all;
  };
  auto held = std::make_unique<Held>();
  held->mine = mine;
  held->length = static_cast<int>(mine.size());
  held->lengths.resize(static_cast<size_t>(number_of_ranks(comm)));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CALL(
      MPI_Iallgather(&held->length, 1, MPI_INT, held->lengths.data(), 1, MPI_INT, comm, &request));
  finish(request, held, who, timeout);
  held->begins.resize(held->lengths.size());
  std::exclusive_scan(held->lengths.begin(), held->lengths.end(), held->begins.begin(), 0);
  held->all.resize(static_cast<size_t>(held->begins.back() + held->lengths.back()));
  MPI_CALL(MPI_Iallgatherv(held->mine.data(), held->length, MPI_CHAR, held->all.data(),
                           held->lengths.data(), held->begins.data(), MPI_CHAR, comm, &request));
  finish(request, held, who, timeout);
  std::vector<std::string> texts;
  for (size_t p = 0; p < held->lengths.size(); ++p)
    texts.push_back(held->all.substr(static_cast<size_t>(held->begins[p]),
                                     static_cast<size_t>(held->lengths[p])));
  return texts;
}

void broadcast(std::span<char> data, MPI_Comm comm, const std::string& who, double timeout) {
  auto held = std::make_unique<std::vector<char>>(data.begin(), data.end());
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CALL(MPI_Ibcast(held->data(), static_cast<int>(held->size()), MPI_CHAR, 0, comm, &request));
  finish(request, held, who, timeout);
  std::ranges::copy(*held, data.begin());
}

}  // namespace tutti::comm
