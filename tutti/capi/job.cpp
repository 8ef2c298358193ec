#include "tutti/capi/job.h"

#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "tutti/capi/given_store.h"
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
  static_assert(sizeof(tutti_comm_init_options) == 40);
  const auto options = read_options(given, 24);
  if (!std::isfinite(options.timeout) || options.timeout < 0)
    throw ConfigError(fmt::format("a time-out of {} seconds", options.timeout));
  if (options.reserved != 0 || options.reserved2 != 0)
    throw ConfigError("`reserved` or `reserved2` is not 0");
  constexpr int kMostThreads = 64;
  if (options.progress_threads < 0 || options.progress_threads > kMostThreads)
    throw ConfigError(fmt::format("{} progress threads, between 0 and {} are possible",
                                  options.progress_threads, kMostThreads));
  return {.process = {.shared_memory = options.private_memory == 0,
                      .timeout = options.timeout == 0 ? 60 : options.timeout},
          .progress_threads = options.progress_threads,
          .address = options.address == nullptr ? "" : options.address};
}

void refuse_second_job() {
  if (the_job()) throw StateError("tutti_comm_init was called twice");
}

template <class... Arguments>
void begin(const Job::Options& read, Arguments... arguments) {
  refuse_second_job();
  forget_failure();
  auto made = std::make_unique<Job>(std::move(arguments)..., read);
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

// Ranks are looked up with the first message to them, so whoever serves the store stays until all
// have come. After a failure each leaves alone.
void end_store_job() {
  std::exception_ptr failure;
  try {
    if (!has_failed()) job().world().communicator->barrier();
  } catch (const CommError&) {
    failure = std::current_exception();
  }
  the_job().reset();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

Job& job() {
  if (!the_job()) throw StateError("tutti_comm_init has not been called");
  return *the_job();
}

Job::Job(int* argc, char*** argv, const Options& options)
    : options_(options),
      session_(std::in_place,
               options.progress_threads > 0 ? comm::MpiSession::Threads::multiple
                                            : comm::MpiSession::Threads::funneled,
               argc, argv),
      world_(session_->communicator(options.process)) {}
Job::Job(int fortran_handle, const Options& options)
    : options_(options), session_(std::in_place),
      world_(session_->communicator_of(fortran_handle, options.process)) {}
Job::Job(StoreGroup group, const Options& options)
    : options_(options), server_(std::move(group.server)), store_(std::move(group.store)),
      world_(comm::make_store_communicator(
          *store_, group.prefix, group.rank, group.size,
          {.process = options.process, .secret = group.secret, .address = options.address})) {}

// The library does not know which cores the program leaves free, so its threads are bound to none.
void Job::start_progress(int threads) {
  if (threads == 0) return;
  comm::Communicator& world = *world_.communicator;
  if (const std::string refusal = world.progress_refusal(); !refusal.empty())
    throw ConfigError(fmt::format("progress_threads: {}", refusal));
  const std::vector<int> anywhere(static_cast<size_t>(threads), comm::Progress::kNoCore);
  progress_ = std::make_shared<comm::Progress>(anywhere);
  world.set_progress(progress_);
}

tutti_comm* Job::split(tutti_comm& comm, int color, int key) {
  if (color < 0) throw ConfigError(fmt::format("color {} is negative", color));
  auto part = [&] {
    const std::lock_guard lock(comm.mutex);
    return std::make_unique<tutti_comm>(comm.communicator->split(color, key), comm.store);
  }();
  return keep(std::move(part));
}

tutti_comm* Job::join(StoreGroup group, double timeout) {
  comm::ProcessOptions process = options_.process;
  if (timeout > 0) process.timeout = timeout;
  std::shared_ptr<comm::Store> store = std::move(group.store);
  auto communicator = comm::make_store_communicator(
      *store, group.prefix, group.rank, group.size,
      {.process = process, .secret = group.secret, .address = options_.address});
  if (progress_) communicator->set_progress(progress_);
  return keep(std::make_unique<tutti_comm>(std::move(communicator), std::move(store)));
}

tutti_comm* Job::keep(std::unique_ptr<tutti_comm> part) {
  tutti_comm* const handle = part.get();
  const std::lock_guard lock(mutex_);
  parts_.emplace(handle, std::move(part));
  return handle;
}

void Job::destroy(tutti_comm& part) {
  if (&part == &world_)
    throw StateError("the communicator of all ranks ends with tutti_comm_finalize");
  std::unique_ptr<tutti_comm> last;  // may wait for other ranks
  const std::lock_guard lock(mutex_);
  const auto at = parts_.find(&part);
  if (at == parts_.end()) throw ConfigError("no such communicator");
  if (part.in_use > 0)
    throw StateError(fmt::format(
        "the communicator is in use: {} plan(s) and allocation(s) are left", part.in_use.load()));
  last = std::move(at->second);
  parts_.erase(at);
}

void* Job::allocate(tutti_comm& comm, size_t bytes) {
  // Of 0 bytes nothing would be there to free, and nothing to read peers' memory by.
  auto window = [&] {
    const std::lock_guard lock(comm.mutex);
    return comm.communicator->allocate(bytes > 0 ? bytes : 1);
  }();
  void* const data = window->data();
  const std::lock_guard lock(mutex_);
  memory_.emplace(data, Memory{&comm, std::move(window)});
  ++comm.in_use;
  return data;
}

void Job::free(void* data) {
  const std::lock_guard lock(mutex_);
  const auto at = memory_.find(data);
  if (at == memory_.end())
    throw ConfigError("this address is not from tutti_comm_alloc, or has been freed");
  --at->second.owner->in_use;
  memory_.erase(at);
}

void Job::check_empty() const {
  const std::lock_guard lock(mutex_);
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
  return guarded([&] { begin(job_options(options), argc, argv); });
}

int tutti_comm_init_fortran_comm(int mpi_comm, const tutti_comm_init_options* options) {
  return guarded([&] {
    if (!comm::MpiSession::running())
      throw StateError("MPI is not running: a handle of its communicators has no meaning");
    begin(job_options(options), mpi_comm);
  });
}

int tutti_comm_init_store(const tutti_comm_store* store, int rank, int size, const char* prefix,
                          const tutti_comm_init_options* options) {
  return guarded([&] {
    refuse_second_job();
    begin(job_options(options), StoreGroup{.store = std::make_unique<GivenStore>(store),
                                           .prefix = &given(prefix, "prefix"),
                                           .rank = rank,
                                           .size = size});
  });
}

int tutti_comm_init_tcp(const char* address, const char* secret, int rank, int size,
                        const tutti_comm_init_options* options) {
  return guarded([&] {
    refuse_second_job();
    const Job::Options read = job_options(options);
    const comm::HostAndPort at = comm::parse_address(&given(address, "address"));
    if (secret == nullptr) secret = std::getenv("TUTTI_STORE_SECRET");
    if (secret == nullptr || *secret == 0)
      throw ConfigError(
          "the job has no secret: give one, the same on every rank, or set TUTTI_STORE_SECRET");
    if (size < 1 || rank < 0 || rank >= size)
      throw ConfigError(fmt::format("rank {} of {}", rank, size));
    StoreGroup group{
        .store = nullptr, .prefix = "job", .secret = secret, .rank = rank, .size = size};
    if (rank == 0) group.server = std::make_unique<comm::TcpStoreServer>(at.host, at.port, secret);
    group.store = std::make_unique<comm::TcpStore>(at.host, at.port, secret, read.process.timeout);
    begin(read, std::move(group));
  });
}

int tutti_comm_join_store(tutti_comm** comm, const tutti_comm_store* store, int rank, int size,
                          const char* prefix, double timeout) {
  return guarded([&] {
    tutti_comm*& result = given(comm, "comm");
    if (!std::isfinite(timeout) || timeout < 0)
      throw ConfigError(fmt::format("a time-out of {} seconds", timeout));
    result = job().join(StoreGroup{.store = std::make_unique<GivenStore>(store),
                                   .prefix = &given(prefix, "prefix"),
                                   .rank = rank,
                                   .size = size},
                        timeout);
  });
}

int tutti_comm_finalize(void) {
  return guarded([] {
    job().check_empty();
    if (!job().has_mpi()) return end_store_job();
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
