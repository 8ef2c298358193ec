#include "tutti/comm/transport/mpi/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/running_time.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/transport/mpi/alarm.h"
#include "tutti/comm/transport/mpi/deadline.h"
#include "tutti/comm/transport/mpi/mpi_call.h"
#include "tutti/comm/transport/mpi/mpi_wire.h"
#include "tutti/comm/transport/mpi/timed_call.h"
#include "tutti/comm/transport/mpi/wire_choice.h"
#include "tutti/comm/transport/process_communicator.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {
namespace {

// MPI was started by a session that has left it running, and not by the program.
std::atomic<bool> left_running = false;

constexpr const char* kJob = "job";

// The alarm itself travels over TCP. MPI ends the job, and finds before that when all ranks have
// printed their reports.
class EndByMpi final : public JobEnd {
 public:
  explicit EndByMpi(MPI_Comm comm) : comm_(comm), alarm_(comm) {}

  void failed(int by) override {
    const std::lock_guard lock(mutex_);
    alarm_.raised_elsewhere(by);
  }
  void abort(int code, const std::string& message) override {
    do_last_act(message);
    Alarm::linger();
    abort_in_turn(comm_, code);
    std::_Exit(code);
  }

 private:
  std::mutex mutex_;
  MPI_Comm comm_;
  Alarm alarm_;
};

// A store with the addresses of all ranks, and the switchboard that uses it.
struct Addresses {
  LocalStore store;
  std::shared_ptr<tcp::Switchboard> board;  // made after the store, destroyed before it
};

// Makes a TCP wire for a job that MPI has started: MPI carries the ranks' addresses and a secret,
// once, and ends the job. Collective among the ranks of `comm`, which it takes over. `who` and
// `timeout` as for timed_call.h; `address` as in ProcessOptions.
std::unique_ptr<Wire> make_tcp_wire(MPI_Comm comm, const std::string& who, double timeout,
                                    const std::string& address) {
  const int rank = rank_in(comm), size = number_of_ranks(comm);
  Nonce secret = fresh_nonce();
  broadcast({reinterpret_cast<char*>(secret.data()), secret.size()}, comm, who, timeout);

  auto addresses = std::make_shared<Addresses>();
  addresses->board = std::make_shared<tcp::Switchboard>(
      addresses->store, kJob, rank, size,
      tcp::Switchboard::Options{.secret = std::string(text_of(secret)), .address = address});
  tcp::GroupInStore group;
  group.prefix = kJob;
  const std::string mine = addresses->store.get(group.key(rank), 0).value();
  const std::vector<std::string> all = gather_texts(mine, comm, who, timeout);
  for (int p = 0; p < size; ++p)
    if (p != rank) addresses->store.set(group.key(p), all[static_cast<size_t>(p)]);
  // The wire shares ownership of the store, which the board's connections read.
  tcp::Switchboard* const board = addresses->board.get();
  return std::make_unique<TcpWire>(std::shared_ptr<tcp::Switchboard>(std::move(addresses), board),
                                   rank, size, std::make_shared<EndByMpi>(comm));
}

}  // namespace

MpiSession::MpiSession(Threads wanted, int* argc, char*** argv, double timeout) {
  if (running()) {
    started_ = left_running.exchange(false);
    return;
  }
  int over = 0;
  MPI_CALL(MPI_Finalized(&over));
  if (over != 0)
    throw CommError("MPI has been finalised, and cannot be started a second time in a process");
  int provided = 0;
  std::optional<Deadline> deadline;
  if (timeout > 0) deadline.emplace("starting MPI (MPI_Init)", timeout);
  // MPI asks hwloc for the machine's topology, and hwloc asks ten X servers for graphics cards: 50
  // ms, and seconds where the network resolves "localhost" slowly.
  setenv("HWLOC_COMPONENTS", "-gl", 0);
  MPI_CALL(MPI_Init_thread(argc, argv,
                           wanted == Threads::multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                           &provided));
  deadline.reset();
  started_ = true;
  if (provided < MPI_THREAD_FUNNELED)
    throw CommError(
        "this MPI library does not allow threads beside the one that communicates "
        "(MPI_THREAD_FUNNELED)");
  MPI_CALL(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

MpiSession::~MpiSession() {
  if (!started_ || std::uncaught_exceptions() > 0) return;
  const Deadline deadline(who_ + ": ending MPI", timeout_);
  MPI_Finalize();
}

namespace {

std::unique_ptr<Wire> make_wire(MPI_Comm world, const ProcessOptions& options) {
  const std::string who = fmt::format("rank {}: setting up communication", rank_in(world));
  MPI_Comm own = duplicate(world, who, options.timeout);
  if (choose_wire(options.wire, own, who, options.timeout) == WireKind::tcp)
    return make_tcp_wire(own, who, options.timeout, options.address);
  return std::make_unique<MpiWire>(own, who, options.timeout);
}

}  // namespace

void MpiSession::leave_running() noexcept {
  if (started_) left_running = true;
  started_ = false;
}

std::unique_ptr<Communicator> MpiSession::communicator(const ProcessOptions& options) {
  timeout_ = options.timeout;
  auto communicator =
      std::make_unique<ProcessCommunicator>(make_wire(MPI_COMM_WORLD, options), options);
  who_ = communicator->who();
  return communicator;
}

std::unique_ptr<Communicator> MpiSession::communicator_of(int fortran_handle,
                                                          const ProcessOptions& options) {
  const MPI_Comm comm = MPI_Comm_f2c(fortran_handle);
  int two_groups = 0;
  if (comm != MPI_COMM_NULL) MPI_CALL(MPI_Comm_test_inter(comm, &two_groups));
  if (comm == MPI_COMM_NULL || two_groups != 0)
    throw ConfigError(
        fmt::format("{} is no Fortran handle of an MPI communicator of one group", fortran_handle));
  return std::make_unique<ProcessCommunicator>(make_wire(comm, options), options);
}

bool MpiSession::running() {
  int started = 0;
  int over = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&over);
  return started != 0 && over == 0;
}

std::string MpiSession::thread_level() {
  int level = MPI_THREAD_SINGLE;
  MPI_CALL(MPI_Query_thread(&level));
  return level == MPI_THREAD_MULTIPLE     ? "multiple"
         : level == MPI_THREAD_SERIALIZED ? "serialized"
         : level == MPI_THREAD_FUNNELED   ? "funneled"
                                          : "single";
}

void MpiSession::end_job(int code) {
  do_last_act("");
  if (!running()) return;
  Alarm::linger();
  abort_in_turn(MPI_COMM_WORLD, code);
}

void MpiSession::stay(std::chrono::milliseconds time) {
  RunningTime waited;  // the launcher, which ends the job meanwhile, is stopped with it
  while (waited.seconds() < std::chrono::duration<double>(time).count()) {
    if (running()) Alarm::move_on();
    // No event ends this wait: it gives the launcher time to end this process.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool MpiSession::starts_without_pmix() {
  const std::string library = library_version();
  if (!library.starts_with("Open MPI v") || std::atoi(library.c_str() + 10) >= 5 || running())
    return true;
  // Every component has variables that begin with its name.
  const auto variables = variable_names(MPI_THREAD_FUNNELED);
  return !variables || std::ranges::any_of(*variables, [](const std::string& name) {
    return name.starts_with("pmix_s1_") || name.starts_with("pmix_s2_") ||
           name.starts_with("pmix_cray_");
  });
}

std::string MpiSession::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_CALL(MPI_Get_library_version(text.data(), &length));
  std::string version(text.data(), static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

}  // namespace tutti::comm
