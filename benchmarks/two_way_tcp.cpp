// Measures the speed of plain TCP where collectives are measured: each rank of the first half
// exchanges equally many bytes with one of the second half, in both directions at once, over one
// connection.
//
//   benchmarks/hosts --rate 10gbit build/benchmarks/tutti_bench_two_way_tcp [BYTES [ITERATIONS]]
//
// BYTES is per rank and direction. Prints the median of the slowest rank's times.

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/bootstrap/socket.h"

namespace {

using namespace tutti;

// Connects one side, and accepts on the other.
comm::Socket connect_to(int partner, int rank) {
  std::array<char, 64> where{};
  if (rank < partner) {
    const comm::Socket listener = comm::listen_on(std::nullopt, 0);
    const std::string text =
        fmt::format("{} {}", comm::own_addresses().front().host(), comm::port_of(listener));
    std::ranges::copy(text, where.begin());
    MPI_Send(where.data(), where.size(), MPI_CHAR, partner, 0, MPI_COMM_WORLD);
    for (;;)
      if (comm::Socket socket = comm::accept_on(listener)) return socket;
  }
  MPI_Recv(where.data(), where.size(), MPI_CHAR, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const std::string text(where.data());
  const size_t space = text.find(' ');
  const auto to = comm::resolve(text.substr(0, space), std::stoi(text.substr(space + 1))).front();
  comm::Socket socket = comm::begin_connect(to);
  CHECK(socket, "connect");
  fd_set set;
  FD_ZERO(&set);
  FD_SET(socket.descriptor(), &set);
  select(socket.descriptor() + 1, nullptr, &set, nullptr, nullptr);
  CHECK(comm::take_error(socket) == 0, "connect");
  comm::prepare_connection(socket);
  return socket;
}

void both_ways(const comm::Socket& socket, std::vector<char>& out, std::vector<char>& in) {
  size_t sent = 0, received = 0;
  const auto moved = [](ssize_t n) {
    CHECK(n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)), "the connection ended");
    return static_cast<size_t>(std::max<ssize_t>(n, 0));
  };
  while (sent < out.size() || received < in.size()) {
    const size_t before = sent + received;
    if (sent < out.size())
      sent += moved(::send(socket.descriptor(), out.data() + sent, out.size() - sent, 0));
    if (received < in.size())
      received += moved(::recv(socket.descriptor(), in.data() + received, in.size() - received, 0));
    if (sent + received == before) usleep(20);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : size_t{4} << 20;
  const int iterations = argc > 2 ? std::atoi(argv[2]) : 15;
  const comm::Socket socket = connect_to((rank + size / 2) % size, rank);
  std::vector<char> out(bytes, 1), in(bytes);
  std::vector<double> times;
  for (int i = -2; i < iterations; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double time = -MPI_Wtime(), slowest = 0;
    both_ways(socket, out, in);
    time += MPI_Wtime();
    MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i >= 0) times.push_back(slowest);
  }
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  if (rank == 0)
    fmt::print("{} bytes a rank each way: {:.2f} ms, {:.1f} MB/s a link each way\n", bytes,
               1e3 * median, static_cast<double>(bytes) * size / 2 / median / 1e6);
  MPI_Finalize();
}
