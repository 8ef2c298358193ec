// The mean over all ranks of an array, again and again. See CMakeLists.txt.
#include <cstdio>

#include "tutti/comm/transport/mpi/session.h"

int main() try {
  using namespace tutti::comm;
  MpiSession mpi;
  const auto world = mpi.communicator();
  const auto memory =
      world->allocate(1000 * sizeof(float));  // any memory does; this one is read in place
  auto* const x = reinterpret_cast<float*>(memory->data());
  const auto mean = world->plan(
      {.kind = Collective::allreduce, .op = ReduceOp::mean, .count = 1000, .output = x});
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 1000; ++i) x[i] = static_cast<float>(world->rank() + step);
    mean->start();  // then compute what does not need x
    mean->wait();
  }
  if (world->rank() == 0) std::printf("the mean of the ranks and 9 is %g\n", x[0]);
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  tutti::comm::MpiSession::end_job(1);
  return 1;
}
