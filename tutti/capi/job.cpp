#include "tutti/capi/job.h"

#include <cmath>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/capi/options.h"
#include "tutti/comm/progress.h"

namespace tutti::capi {
namespace {

// Never destroyed: a program that ends without tutti_comm_finalize must not meet MPI_Finalize in
// its static destructors.
std::unique_ptr<Job>& the_job() {
  static std::unique_ptr<Job>& job = *std::make_unique<std::unique_ptr<Job>>().release();
  return job;
}

Job::Options job_options(const tutti_comm_init_options* given) {
  static_assert(sizeof(tutti_comm_init_options) == 32);
  const auto options = read_options(given, 24);
  if (!std::isfinite(options.timeout) || options.timeout < 0)
    throw ConfigError(fmt::format("a time-out of {} seconds", options.timeout));
  if (options.reserved != 0 || options.reserved2 != 0)
    throw ConfigError("`reserved` or `reserved2` is not 0");
  constexpr int kMostThreads = 64;
  if (options.progress_threads < 0 || options.progress_threads > kMostThreads)
    throw ConfigError(fmt::format("{} progress threads, between 0 and {} are possible",
                                  options.progress_threads, kMostThreads));
  return {.mpi = {.shared_memory = options.private_memory == 0,
                  .timeout = options.timeout == 0 ? 60 : options.timeout},
          .progress_threads = options.progress_threads};
}

template <class... Arguments>
void begin(const tutti_comm_init_options* options, Arguments... arguments) {
  if (the_job()) throw StateError("tutti_comm_init was called twice");
  const Job::Options read = job_options(options);
  auto made = std::make_unique<Job>(arguments..., read);
  std::exception_ptr refusal;
  try {
    made->start_progress(read.progress_threads);
  } catch (const ConfigError&) {
    refusal = std::current_exception();
  }
  if (refusal) {
    made.reset();  // not while an exception passes: then MPI would be left running
    std::rethrow_exception(refusal);
  }
  the_job() = std::move(made);
}

}  // namespace

Job& job() {
  if (!the_job()) throw StateError("tutti_comm_init has not been called");
  return *the_job();
}

Job::Job(int* argc, char*** argv, const Options& options)
    : session_(options.progress_threads > 0 ? comm::MpiSession::Threads::multiple
                                            : comm::MpiSession::Threads::funneled,
               argc, argv),
      world_{session_.communicator(options.mpi)} {}
Job::Job(int fortran_handle, const Options& options)
    : world_{session_.communicator_of(fortran_handle, options.mpi)} {}

// The library does not know which cores the program leaves free, so its threads are bound to none.
void Job::start_progress(int threads) {
  if (threads == 0) return;
  comm::Communicator& world = *world_.communicator;
  if (const std::string refusal = world.progress_refusal(); !refusal.empty())
    throw ConfigError(fmt::format("progress_threads: {}", refusal));
  const std::vector<int> anywhere(static_cast<size_t>(threads), comm::Progress::kNoCore);
  world.set_progress(std::make_shared<comm::Progress>(anywhere));
}

tutti_comm* Job::split(tutti_comm& comm, int color, int key) {
  if (color < 0) throw ConfigError(fmt::format("color {} is negative", color));
  auto part = std::make_unique<tutti_comm>(tutti_comm{comm.communicator->split(color, key)});
  tutti_comm* const handle = part.get();
  parts_.emplace(handle, std::move(part));
  return handle;
}

void Job::destroy(tutti_comm& part) {
  if (&part == &world_)
    throw StateError("the communicator of all ranks ends with tutti_comm_finalize");
  const auto at = parts_.find(&part);
  if (at == parts_.end()) throw ConfigError("no such communicator");
  if (part.in_use > 0)
    throw StateError(fmt::format(
        "the communicator is in use: {} plan(s) and allocation(s) are left", part.in_use));
  parts_.erase(at);
}

void* Job::allocate(tutti_comm& comm, size_t bytes) {
  // Of 0 bytes nothing would be there to free, and nothing to read peers' memory by.
  auto window = comm.communicator->allocate(bytes > 0 ? bytes : 1);
  void* const data = window->data();
  memory_.emplace(data, Memory{&comm, std::move(window)});
  ++comm.in_use;
  return data;
}

void Job::free(void* data) {
  const auto at = memory_.find(data);
  if (at == memory_.end())
    throw ConfigError("this address is not from tutti_comm_alloc, or has been freed");
  --at->second.owner->in_use;
  memory_.erase(at);
}

void Job::check_empty() const {
  int left = world_.in_use;
  for (const auto& [handle, part] : parts_) left += part->in_use;
  if (left > 0 || !parts_.empty())
    throw StateError(fmt::format("{} plan(s) and allocation(s) and {} communicator(s) are left",
                                 left, parts_.size()));
}

}  // namespace tutti::capi

using namespace tutti;
using namespace tutti::capi;

int tutti_comm_init(int* argc, char*** argv, const tutti_comm_init_options* options) {
  return guarded([&] { begin(options, argc, argv); });
}

int tutti_comm_init_fortran_comm(int mpi_comm, const tutti_comm_init_options* options) {
  return guarded([&] {
    if (!comm::MpiSession::running())
      throw StateError("MPI is not running: a handle of its communicators has no meaning");
    begin(options, mpi_comm);
  });
}

int tutti_comm_finalize(void) {
  return guarded([] {
    job().check_empty();
    if (!comm::MpiSession::running())
      throw StateError("MPI was finalised before tutti_comm_finalize");
    the_job().reset();
  });
}

int tutti_comm_abort(tutti_comm* comm, int code, const char* message) {
  return guarded(
      [&] { given(comm, "comm").communicator->abort(code, &given(message, "message")); });
}

int tutti_comm_world(tutti_comm** comm) {
  return guarded([&] { given(comm, "comm") = &job().world(); });
}

int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part) {
  return guarded([&] {
    tutti_comm*& result = given(part, "part");
    result = job().split(given(comm, "comm"), color, key);
  });
}

int tutti_comm_destroy(tutti_comm* comm) {
  return guarded([&] {
    if (comm != nullptr) job().destroy(*comm);
  });
}

int tutti_comm_alloc(tutti_comm* comm, size_t bytes, void** data) {
  return guarded([&] {
    void*& result = given(data, "data");
    result = job().allocate(given(comm, "comm"), bytes);
  });
}

int tutti_comm_free(void* data) {
  return guarded([&] {
    if (data != nullptr) job().free(data);
  });
}
