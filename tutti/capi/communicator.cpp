// Queries of a communicator, its barrier and its settings.

#include <cmath>
#include <fstream>
#include <sstream>

#include "tutti/base/small_text.h"
#include "tutti/capi/handles.h"
#include "tutti/capi/status.h"

using namespace tutti;
using namespace tutti::capi;

int tutti_comm_rank(const tutti_comm* comm, int* rank) {
  return capi::guarded(
      [&] { capi::given(rank, "rank") = capi::given(comm, "comm").communicator->rank(); });
}

int tutti_comm_size(const tutti_comm* comm, int* size) {
  return capi::guarded(
      [&] { capi::given(size, "size") = capi::given(comm, "comm").communicator->size(); });
}

int tutti_comm_local_rank(const tutti_comm* comm, int* rank) {
  return capi::guarded(
      [&] { capi::given(rank, "rank") = capi::given(comm, "comm").communicator->local_rank(); });
}

int tutti_comm_local_size(const tutti_comm* comm, int* size) {
  return capi::guarded(
      [&] { capi::given(size, "size") = capi::given(comm, "comm").communicator->local_size(); });
}

int tutti_comm_host(const tutti_comm* comm, int rank, const char** host) {
  return capi::guarded([&] {
    const comm::Communicator& communicator = *capi::given(comm, "comm").communicator;
    if (rank < 0 || rank >= communicator.size())
      throw ::ConfigError(fmt::format("rank {} of {}", rank, communicator.size()));
    capi::given(host, "host") = communicator.host(rank).c_str();
  });
}

int tutti_comm_barrier(tutti_comm* comm) {
  return capi::guarded(capi::failure_of(comm), [&] {
    tutti_comm& whole = capi::given(comm, "comm");
    const std::lock_guard lock(whole.mutex);
    whole.communicator->barrier();
  });
}

int tutti_comm_set_timeout(tutti_comm* comm, double seconds) {
  return capi::guarded([&] {
    if (!std::isfinite(seconds) || seconds <= 0)
      throw ::ConfigError(fmt::format("a time-out of {} seconds: it must be more than 0", seconds));
    tutti_comm& whole = capi::given(comm, "comm");
    const std::lock_guard lock(whole.mutex);
    whole.communicator->set_timeout(seconds);
  });
}

int tutti_comm_set_selection_file(tutti_comm* comm, const char* path) {
  return capi::guarded([&] {
    comm::Communicator& communicator = *capi::given(comm, "comm").communicator;
    std::ifstream file =
        ::open_small_text(&capi::given(path, "path"), {.expected = "a table of algorithms"});
    std::ostringstream text;
    if (!file.is_open() || !(text << file.rdbuf()))
      throw ::IoError(fmt::format("{}: cannot be read, or is empty", path));
    const std::lock_guard lock(comm->mutex);
    communicator.planner().set_selection(
        comm::Selection::parse(text.str(), path).before(comm::Selection()));
  });
}
