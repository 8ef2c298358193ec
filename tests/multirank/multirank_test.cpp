// One program for all test cases that need real processes; see README.md.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/multirank/faults.h"
#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/patience.h"
#include "tutti/comm/bootstrap/launcher.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/mpi/session.h"
#include "tutti/exchange/average.h"
#include "tutti/exchange/exchange.h"

namespace tutti {
namespace {

const std::vector<exchange::GradientEntry> kEntries{
    {"fc", 400}, {"conv3", 200000}, {"bn3", 64}, {"conv2", 5000}, {"conv1", 4}};

float gradient(int step, int replica, size_t i) {
  const auto word = philox(
      {static_cast<uint32_t>(i), static_cast<uint32_t>(replica), static_cast<uint32_t>(step), 7},
      {1, 2})[0];
  return std::ldexp(static_cast<float>(static_cast<int32_t>(word)),
                    -31 + static_cast<int>(word & 15));
}

std::vector<float> train(comm::Communicator& c, int replicas, int steps) {
  exchange::GradientExchange exchange(c, exchange::ReplicaMap(replicas, c.size(), c.rank()),
                                      exchange::partition_buckets(kEntries, 8192));
  std::vector<float> sums;
  for (int step = 0; step < steps; ++step) {
    for (int local = 0; local < exchange.map().local_count(); ++local)
      for (int b = 0; b < exchange.buckets(); ++b) {
        const exchange::Bucket& bucket = exchange.layout().buckets[static_cast<size_t>(b)];
        for (size_t i = bucket.begin / 4; i < (bucket.begin + bucket.bytes) / 4; ++i)
          exchange.slot(local)[i] = gradient(step, exchange.map().replica(local), i);
        exchange.ready(local, b);
        exchange.poll();
      }
    for (int b = 0; b < exchange.buckets(); ++b) {
      exchange.wait(b);
      sums.insert(sums.end(), exchange.result(b),
                  exchange.result(b) + exchange.layout().buckets[static_cast<size_t>(b)].floats());
    }
  }
  return sums;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw InternalError("failed: " + what);
}

void check_collectives(comm::Communicator& c) {
  for (int root = 0; root < c.size(); ++root) {
    std::vector<int> data(3000, c.rank() == root ? root + 5 : -1);
    c.broadcast(std::as_writable_bytes(std::span(data)), root);
    require(data == std::vector<int>(3000, root + 5), "broadcast");
  }
  const auto squares = c.allgather_value(c.rank() * c.rank());
  for (int p = 0; p < c.size(); ++p) require(squares[static_cast<size_t>(p)] == p * p, "allgather");
  std::vector<double> one{1.0};
  c.sum(one);
  require(one[0] == c.size(), "sum");
  require(c.local_size() == c.size() && c.local_rank() == c.rank(), "places");

  const auto window = c.allocate(1000 + static_cast<size_t>(c.rank()));
  require(window->data()[999] == std::byte{0}, "zeroed window");
  const bool shared = c.neighbours().size() == c.size();
  require(shared == (c.transport() == "shared memory"), "sharing follows the transport");
  window->data()[0] = static_cast<std::byte>(c.rank() + 1);
  c.barrier();
  if (shared)
    for (int p = 0; p < c.size(); ++p)
      require(window->peer(p)[0] == static_cast<std::byte>(p + 1), "peer's memory");
  c.barrier();
}

// An MPI library may give more than FUNNELED; then nothing is refused.
void check_refusal(comm::Communicator& c) {
  bool refused = false;
  try {
    c.set_progress(std::make_shared<comm::Progress>(1));
  } catch (const CommError& error) {
    refused = true;
    require(std::string(error.what()).find("MPI_THREAD_MULTIPLE") != std::string::npos,
            "the refusal names the level");
  }
  require(refused != c.progress_refusal().empty(),
          "progress threads are refused where MPI does not allow them, and only there");
  c.set_progress(std::make_shared<comm::Progress>());
}

void check_bits(comm::Communicator& c) {
  check_collectives(c);
  int checked = 0;
  for (const int replicas : {1, 2, 3, 4, 5, 8}) {
    if (replicas < c.size()) continue;
    const auto single = comm::make_single_communicator();
    const std::vector<float> want = train(*single, replicas, 3);
    const std::vector<float> got = train(c, replicas, 3);
    require(got.size() == want.size() && std::memcmp(got.data(), want.data(), got.size() * 4) == 0,
            fmt::format("{} replicas on {} ranks have other bits than on one", replicas, c.size()));
    ++checked;
  }
  c.barrier();
  if (c.rank() == 0)
    std::printf("bits: %d replica counts on %d ranks over %s are identical\n", checked, c.size(),
                c.transport().c_str());
}

// After a few steps of all ranks the last one calls `what` while the others are inside a reduction.
template <class What>
void fault(comm::Communicator& c, What what) {
  exchange::GradientExchange exchange(c, exchange::ReplicaMap(c.size(), c.size(), c.rank()),
                                      exchange::partition_buckets(kEntries, 1 << 20));
  for (int step = 0; step < 5; ++step) {
    exchange.ready(0, 0);
    exchange.wait(0);
  }
  if (c.rank() == c.size() - 1) what();
  exchange.ready(0, 0);
  exchange.wait(0);
}

int run(const std::string& name, comm::Communicator& c) {
  if (name == "bits") {
    check_bits(c);
  } else if (name == "killed") {
    fault(c, [] { kill(getpid(), SIGKILL); });
  } else if (name == "exits") {
    fault(c, [] { _exit(7); });
  } else if (name == "late") {
    c.set_timeout(patience(1));
    fault(c, [] { sleep_patiently(8); });
  } else if (name == "mismatch") {
    c.set_timeout(patience(3));
    if (c.rank() == c.size() - 1)
      c.allgather_value(c.rank());
    else
      c.barrier();
  } else if (name == "funneled") {
    check_refusal(c);
  } else if (cause_fault(name, c)) {
    std::printf("rank %d: %s is over\n", c.rank(), name.c_str());
  } else {
    throw ConfigError("unknown case '" + name + "'");
  }
  return 0;
}

}  // namespace
}  // namespace tutti

// multirank_test CASE [shm|mpi|tcp [PROGRESS_THREADS]]
int main(int count, char** arguments) {
  tutti::comm::end_with_launcher();
  const std::string name = count > 1 ? arguments[1] : "";
  const std::string transport = count < 3 ? "shm" : arguments[2];
  const int progress = count > 3 ? std::stoi(arguments[3]) : 0;
  try {
    using Threads = tutti::comm::MpiSession::Threads;
    const bool one_stays_away = name == "no_start";
    if (one_stays_away && tutti::comm::detect_launcher(std::getenv).rank == 1)
      sleep_patiently(kHangSeconds);
    tutti::comm::MpiSession session(progress == 0 ? Threads::funneled : Threads::multiple, nullptr,
                                    nullptr, one_stays_away ? patience(2) : 0);
    const auto communicator = session.communicator(
        {.shared_memory = transport == "shm",
         .timeout = kHangSeconds,
         .wire = tutti::comm::wire_named(transport == "shm" ? "auto" : transport)});
    try {
      communicator->set_progress(std::make_shared<tutti::comm::Progress>(progress));
      return tutti::run(name, *communicator);
    } catch (const std::exception& error) {
      communicator->abort(1, error.what());
    }
  } catch (const std::exception& error) {
    std::fputs((std::string(error.what()) + '\n').c_str(), stderr);  // in one piece
    tutti::comm::MpiSession::end_job(1);
    return 1;
  }
}
