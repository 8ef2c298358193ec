#include "tutti/capi/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/log.h"
#include "tutti/capi/holdings.h"
#include "tutti/capi/options.h"
#include "tutti/capi/status.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/run/progress.h"

namespace tutti::capi {
namespace {

// Never destroyed: otherwise a program that ends without tutti_comm_finalize would call
// MPI_Finalize in its static destructors.
std::unique_ptr<Job>& the_job() {
  static std::unique_ptr<Job>& job = *std::make_unique<std::unique_ptr<Job>>().release();
  return job;
}

// Starts progress threads, before anything is planned. They are bound to no core, because the
// library does not know which cores the program leaves free. Throws ConfigError if MPI does not
// allow threads.
void start_progress(comm::Communicator& communicator, int threads) {
  if (threads == 0) return;
  if (const std::string refusal = communicator.progress_refusal(); !refusal.empty())
    throw ConfigError(fmt::format("progress_threads: {}", refusal));
  communicator.set_progress(std::make_shared<comm::Progress>(threads));
}

std::unique_ptr<comm::Communicator> communicator_of(const StoreGroup& group,
                                                    const JobOptions& options) {
  return comm::make_store_communicator(*group.store, group.prefix, group.rank, group.size,
                                       {.process = options.process, .secret = group.secret});
}

JobOptions job_options(const tutti_comm_init_options* given) {
  static_assert(sizeof(tutti_comm_init_options) == 40);
  const auto options = read_options(given, 24);
  if (!std::isfinite(options.timeout) || options.timeout < 0)
    throw ConfigError(fmt::format(
        "a time-out of {} seconds: it must be more than 0, or 0 for 60 seconds", options.timeout));
  if (options.reserved != 0 || options.reserved2 != 0)
    throw ConfigError("`reserved` or `reserved2` is not 0");
  constexpr int kMostThreads = 64;
  if (options.progress_threads < 0 || options.progress_threads > kMostThreads)
    throw ConfigError(fmt::format("{} progress threads, between 0 and {} are possible",
                                  options.progress_threads, kMostThreads));
  const char* const wire = std::getenv("TUTTI_COMM_WIRE");
  const char* const nodes = std::getenv("TUTTI_COMM_NODES");
  return {.process = {.shared_memory = options.private_memory == 0,
                      .timeout = options.timeout == 0 ? 60 : options.timeout,
                      .nodes = comm::nodes_named(nodes == nullptr ? "auto" : nodes),
                      .wire = comm::wire_named(wire == nullptr ? "auto" : wire),
                      .address = options.address == nullptr ? "" : options.address},
          .progress_threads = options.progress_threads};
}

void refuse_second_job() {
  if (the_job()) throw StateError("tutti_comm_init was called twice");
}

// The store is served at this address, so an address of another host is refused: no rank could ever
// connect.
void refuse_address_of_others(const comm::HostAndPort& at, const char* address) {
  const auto found = comm::resolve(at.host, at.port);
  if (std::ranges::any_of(found, comm::is_of_this_host)) return;
  throw ConfigError(
      fmt::format("rank 0 serves the store of the job at '{}', but {} is no address of its host: "
                  "give one that it has",
                  address, found.front().host()));
}

// A stranger who takes the port before rank 0 receives a digest against which secrets can be tried.
void warn_of_short_secret(std::string_view secret) {
  constexpr size_t kLongEnough = 32;
  if (secret.size() < kLongEnough)
    log::warn(
        "the job's secret has {} characters, so that it can be guessed: take {} random ones or "
        "more, as `openssl rand -hex 32` makes them",
        secret.size(), kLongEnough);
}

template <class... Arguments>
void begin(const JobOptions& read, Arguments... arguments) {
  refuse_second_job();
  auto made = std::make_unique<Job>(std::move(arguments)..., read);
  std::exception_ptr refusal;
  try {
    start_progress(*made->world().communicator, read.progress_threads);
  } catch (const ConfigError&) {
    refusal = std::current_exception();
  }
  if (refusal) {
    made.reset();  // not during an exception: MPI would be left running
    std::rethrow_exception(refusal);
  }
  the_job() = std::move(made);
}

// Ranks meet before they leave. With a store, peers are looked up at the first message, so the rank
// that serves it stays until all have come. Ending MPI waits for all ranks without a time-out, so
// it begins only when all are there. After a failure each rank leaves alone.
void end_job() {
  std::exception_ptr failure;
  const bool has_failed = *job().world().failed;
  job().admit_nobody();
  try {
    if (!has_failed) job().world().communicator->barrier();
  } catch (const CommError& error) {
    failure = std::make_exception_ptr(CommError(
        fmt::format("tutti_comm_finalize, before which all ranks meet: {}", error.what())));
  }
  if (failure || has_failed) job().give_up();
  the_job().reset();
  if (failure) std::rethrow_exception(failure);
}

// A store that the caller implements by functions.
class GivenStore final : public comm::Store {
 public:
  // Throws ConfigError for an incomplete struct.
  explicit GivenStore(const tutti_comm_store* given);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, double seconds) override;

 private:
  tutti_comm_store functions_;
};

GivenStore::GivenStore(const tutti_comm_store* store)
    : functions_(read_options(&given(store, "store"), sizeof(tutti_comm_store))) {
  if (functions_.set == nullptr || functions_.get == nullptr)
    throw ConfigError("store: `set` or `get` is NULL");
}

void GivenStore::set(const std::string& key, const std::string& value) {
  if (const int code = functions_.set(functions_.context, key.c_str(), value.data(), value.size());
      code != 0)
    throw CommError(fmt::format("the program's store has not set '{}': code {}", key, code));
}

std::optional<std::string> GivenStore::get(const std::string& key, double seconds) {
  std::string value(kLongestValue, 0);
  size_t bytes = 0;
  const int code =
      functions_.get(functions_.context, key.c_str(), value.data(), value.size(), &bytes, seconds);
  if (code == 1) return std::nullopt;
  if (code != 0 || bytes > value.size())
    throw CommError(fmt::format("the program's store has not given '{}': code {}", key, code));
  value.resize(bytes);
  return value;
}

}  // namespace

Job& job() {
  if (!the_job()) throw StateError("tutti_comm_init has not been called");
  return *the_job();
}

Job::Job(int* argc, char*** argv, const Options& options)
    : session_(std::in_place,
               options.progress_threads > 0 ? comm::MpiSession::Threads::multiple
                                            : comm::MpiSession::Threads::funneled,
               argc, argv, std::max(options.process.timeout, comm::MpiSession::kStartSeconds)),
      world_(session_->communicator(options.process)) {}
Job::Job(int fortran_handle, const Options& options)
    : session_(std::in_place), world_(session_->communicator_of(fortran_handle, options.process)) {}
Job::Job(StoreGroup group, const Options& options)
    : server_(std::move(group.server)), world_(communicator_of(group, options), group.store) {}

void Job::give_up() {
  if (!session_) return;  // destructors then wait for no rank
  world_.communicator->give_up();
  session_->leave_running();
}

void Job::admit_nobody() {
  if (server_) server_->admit_nobody();
}

}  // namespace tutti::capi

using namespace tutti;
using namespace tutti::capi;

int tutti_comm_init(int* argc, char*** argv, const tutti_comm_init_options* options) {
  return capi::guarded([&] { begin(job_options(options), argc, argv); });
}

int tutti_comm_init_fortran_comm(int mpi_comm, const tutti_comm_init_options* options) {
  return capi::guarded([&] {
    if (!comm::MpiSession::running())
      throw capi::StateError("MPI is not running: a handle of its communicators has no meaning");
    begin(job_options(options), mpi_comm);
  });
}

int tutti_comm_init_store(const tutti_comm_store* store, int rank, int size, const char* prefix,
                          const tutti_comm_init_options* options) {
  return capi::guarded([&] {
    refuse_second_job();
    begin(job_options(options), capi::StoreGroup{.store = std::make_shared<GivenStore>(store),
                                                 .prefix = &capi::given(prefix, "prefix"),
                                                 .rank = rank,
                                                 .size = size});
  });
}

int tutti_comm_init_tcp(const char* address, const char* secret, int rank, int size,
                        const tutti_comm_init_options* options) {
  return capi::guarded([&] {
    refuse_second_job();
    capi::JobOptions read = job_options(options);
    const comm::HostAndPort at = comm::parse_address(&capi::given(address, "address"));
    if (at.port == 0)
      throw ::ConfigError(fmt::format(
          "'{}' has port 0, of which other ranks could not know what it stands for", address));
    if (secret == nullptr) secret = std::getenv("TUTTI_STORE_SECRET");
    if (secret == nullptr || *secret == 0)
      throw ::ConfigError(
          "the job has no secret: give one, the same on every rank, or set TUTTI_STORE_SECRET");
    if (size < 1 || rank < 0 || rank >= size)
      throw ::ConfigError(fmt::format("rank {} of {}", rank, size));
    capi::StoreGroup group{
        .store = nullptr, .prefix = "job", .secret = secret, .rank = rank, .size = size};
    if (rank == 0) refuse_address_of_others(at, address);
    if (rank == 0) warn_of_short_secret(secret);
    // If ranks reach the store at the loopback address, all are on this host.
    const comm::SocketAddress store = comm::resolve(at.host, at.port).front();
    if (read.process.address.empty() && comm::means_this_host_alone(at.host, store))
      read.process.address = store.host();
    if (rank == 0) group.server = std::make_unique<comm::TcpStoreServer>(at.host, at.port, secret);
    group.store = std::make_shared<comm::TcpStore>(at.host, at.port, secret, read.process.timeout);
    begin(read, std::move(group));
  });
}

int tutti_comm_finalize(void) {
  return capi::guarded([] {
    capi::holdings().check_empty(capi::job().world());
    if (capi::job().has_mpi() && !comm::MpiSession::running())
      throw capi::StateError("MPI was finalised before tutti_comm_finalize");
    end_job();
  });
}

int tutti_comm_abort(tutti_comm* comm, int code, const char* message) {
  return capi::guarded([&] {
    capi::given(comm, "comm").communicator->abort(code, &capi::given(message, "message"));
  });
}

int tutti_comm_world(tutti_comm** comm) {
  return capi::guarded([&] { capi::given(comm, "comm") = &capi::job().world(); });
}

int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part) {
  return capi::guarded(capi::failure_of(comm), [&] {
    tutti_comm*& result = capi::given(part, "part");
    result = capi::holdings().split(capi::given(comm, "comm"), color, key);
  });
}

int tutti_comm_create(const tutti_comm_store* store, int rank, int size, const char* prefix,
                      const tutti_comm_init_options* options, tutti_comm** comm) {
  return capi::guarded([&] {
    tutti_comm*& result = capi::given(comm, "comm");
    const capi::JobOptions read = job_options(options);
    const capi::StoreGroup group{.store = std::make_shared<GivenStore>(store),
                                 .prefix = &capi::given(prefix, "prefix"),
                                 .rank = rank,
                                 .size = size};
    auto made = std::make_unique<tutti_comm>(communicator_of(group, read), group.store);
    start_progress(*made->communicator, read.progress_threads);
    result = capi::holdings().add(std::move(made));
  });
}

int tutti_comm_destroy(tutti_comm* comm) {
  return capi::guarded([&] {
    if (comm == nullptr) return;
    if (the_job() && comm == &capi::job().world())
      throw capi::StateError("the communicator of all ranks ends with tutti_comm_finalize");
    capi::holdings().destroy(*comm);
  });
}

int tutti_comm_alloc(tutti_comm* comm, size_t bytes, void** data) {
  return capi::guarded(capi::failure_of(comm), [&] {
    void*& result = capi::given(data, "data");
    if (comm == nullptr) capi::job();  // most likely there is no job
    result = capi::holdings().allocate(capi::given(comm, "comm"), bytes);
  });
}

int tutti_comm_free(void* data) {
  return capi::guarded([&] {
    if (data != nullptr) capi::holdings().free(data);
  });
}
