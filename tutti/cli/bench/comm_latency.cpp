#include "tutti/cli/bench/comm_latency.h"

#include <fmt/format.h>

#include <chrono>

#include "tutti/base/error.h"

namespace tutti {
namespace {

// Posts a round and waits for its messages, in both directions.
void exchange(comm::Communicator& communicator, comm::Channel& channel, size_t round,
              uint64_t number) {
  channel.post(round);
  const auto pending = [&] {
    return comm::Pending{.operation = "ping-pong",
                         .sequence = number,
                         .arrived = {},
                         .missing = channel.missing().not_arrived};
  };
  communicator.wait_for([&] { return channel.received(); }, pending);
  channel.release();
  communicator.wait_for([&] { return channel.sent(); }, pending);
}

}  // namespace

double bench_latency(comm::Communicator& communicator, size_t bytes, int warmup, int iterations) {
  if (communicator.size() < 2) throw ConfigError("--latency: a message needs two ranks: --ranks 2");
  const int rank = communicator.rank();
  const auto ping = communicator.allocate(bytes), pong = communicator.allocate(bytes);
  // Rank 0 sends and expects the answer in one round; rank 1 answers in the next.
  std::vector<comm::RoundOfMessages> rounds;
  if (rank == 0)
    rounds = {{.receives = {{1, pong->data(), bytes}}, .sends = {{1, ping->data(), bytes}}}};
  if (rank == 1)
    rounds = {{.receives = {{0, pong->data(), bytes}}, .sends = {}},
              {.receives = {}, .sends = {{0, ping->data(), bytes}}}};
  const auto channel = communicator.channels().open(rounds);
  communicator.channels().connect();
  communicator.barrier();
  auto begin = std::chrono::steady_clock::now();
  for (int i = -warmup; i < iterations; ++i) {
    if (i == 0) begin = std::chrono::steady_clock::now();
    for (size_t round = 0; round < rounds.size(); ++round)
      exchange(communicator, *channel, round, static_cast<uint64_t>(i + warmup));
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
                   iterations / 2;
  communicator.broadcast_value(seconds, 0);
  return seconds;
}

}  // namespace tutti
