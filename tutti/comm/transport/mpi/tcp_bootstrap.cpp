#include "tutti/comm/transport/mpi/tcp_bootstrap.h"

#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/bootstrap/secret.h"
#include "tutti/comm/bootstrap/store.h"
#include "tutti/comm/transport/mpi/alarm.h"
#include "tutti/comm/transport/mpi/mpi_call.h"
#include "tutti/comm/transport/mpi/timed_call.h"
#include "tutti/comm/transport/tcp/tcp_wire.h"

namespace tutti::comm {
namespace {

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

}  // namespace

std::unique_ptr<Wire> make_tcp_wire(MPI_Comm comm, const std::string& who, double timeout,
                                    const std::string& address) {
  int rank = 0, size = 0;
  MPI_CALL(MPI_Comm_rank(comm, &rank));
  MPI_CALL(MPI_Comm_size(comm, &size));
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

}  // namespace tutti::comm
