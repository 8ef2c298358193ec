#include "tutti/cli/bench/comm_bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/cli/bench/comm_buffers.h"
#include "tutti/cli/bench/comm_turns.h"
#include "tutti/comm/check/reference_result.h"

namespace tutti::cli {
namespace {

using comm::Collective;

// 16-bit sums have several right answers, since a library may round every partial sum; so do
// sums of integers, which may wrap around or stop at the largest.
bool has_one_answer(const CommBenchOptions& options) {
  return !comm::reduces(options.kind) || options.op == comm::ReduceOp::min ||
         options.op == comm::ReduceOp::max || options.element == comm::Element::f32 ||
         options.element == comm::Element::f64;
}

// Sets the average, least and most of the ranks' average times.
void summarize_ranks(comm::Communicator& communicator, const std::vector<double>& seconds,
                     CommBenchRow& row) {
  const double mine =
      std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  const std::vector<double> means = communicator.allgather_value(mine);
  row.average = std::accumulate(means.begin(), means.end(), 0.0) / communicator.size();
  row.least = std::ranges::min(means);
  row.most = std::ranges::max(means);
}

// A chain of dependent arithmetic, the same work in every call, which calls progress() every
// millisecond.
void compute(comm::Communicator& communicator, size_t chunks) {
  constexpr int kChunk = 16384;  // tens of microseconds
  volatile double sink = 1;
  auto looked = std::chrono::steady_clock::now();
  for (size_t c = 0; c < chunks; ++c) {
    double x = sink;
    for (int i = 0; i < kChunk; ++i) x = x * 0.999999 + 1e-6;
    sink = x;
    if (const auto now = std::chrono::steady_clock::now();
        now - looked > std::chrono::milliseconds(1)) {
      looked = now;
      communicator.progress();
    }
  }
}

// Returns how much of a collective's time is hidden behind a computation on the same rank:
// (alone + computation - both) / alone, from medians: 1 means that all of the time is hidden. The
// computation takes as long as the collective does alone, fits in registers, and calls progress()
// every millisecond, as kernels of a step would. Collective.
double hidden_part(comm::Communicator& communicator, comm::Operation& operation,
                   const Turns& turns) {
  constexpr size_t kTrial = 64;
  size_t chunks = kTrial;
  const std::vector<std::function<void()>> calls = {[&] { operation.start(), operation.wait(); },
                                                    [&] { compute(communicator, chunks); },
                                                    [&] {
                                                      operation.start();
                                                      compute(communicator, chunks);
                                                      operation.wait();
                                                    }};
  const auto medians = [&](std::span<const std::function<void()>> some) {
    std::vector<double> found;
    for (const std::vector<double>& seconds : time_in_turns(communicator, some, turns))
      found.push_back(median(mean_over_ranks(communicator, seconds)));
    return found;
  };
  const std::vector<double> trial = medians(std::span(calls).first(2));
  chunks = static_cast<size_t>(trial[0] / (trial[1] / kTrial)) + 1;
  const std::vector<double> seconds = medians(calls);
  return (seconds[0] + seconds[1] - seconds[2]) / seconds[0];
}

}  // namespace

double bus_factor(Collective kind, int ranks) {
  const double n = ranks;
  switch (kind) {
    case Collective::allreduce: return 2 * (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce: return 1;
    default: return (n - 1) / n;
  }
}

CommBenchRow bench_collective(comm::Communicator& communicator, const CommBenchOptions& options,
                              size_t bytes) {
  CommBuffers buffers(communicator, options.kind, options.element, options.op, bytes,
                      options.shared_output);
  comm::CollectiveSpec spec = buffers.spec();
  spec.algorithm = options.algorithm;
  spec.chunk = options.chunk;
  const auto operation = communicator.plan(spec);
  std::vector<std::function<void()>> calls = {[&] { operation->run(); }};
  std::vector<const OpenPeer*> callers = {nullptr};
  for (const OpenPeer* peer : options.peers)
    if (auto call = peer->peer->collective(buffers.task(), options.element, options.op,
                                           buffers.input(), buffers.own_output())) {
      calls.push_back(std::move(call));
      callers.push_back(peer);
    }

  CommBenchRow row;
  row.count = spec.count;
  row.bytes = buffers.bytes();
  row.algorithm = operation->algorithm();
  const auto seconds =
      time_in_turns(communicator, calls,
                    {.warmup = options.warmup, .iterations = options.iterations, .before = [&] {
                       buffers.rewrite();
                     }});
  row.seconds = median(mean_over_ranks(communicator, seconds[0]));
  summarize_ranks(communicator, seconds[0], row);
  for (const OpenPeer* peer : options.peers) {
    const auto at = std::ranges::find(callers, peer);
    row.peer_seconds.push_back(
        at == callers.end()
            ? std::optional<double>()
            : median(mean_over_ranks(communicator,
                                     seconds[static_cast<size_t>(at - callers.begin())])));
  }
  if (options.overlap)
    row.hidden =
        hidden_part(communicator, *operation, {.warmup = 1, .iterations = options.iterations});
  for (int i = 0; i < options.checks; ++i)
    for (size_t k = 0; k < calls.size(); ++k) {
      if (callers[k] != nullptr && !(callers[k]->peer->answers() && has_one_answer(options)))
        continue;
      const size_t wrong = buffers.count_wrong(calls[k], static_cast<uint64_t>(i), k > 0);
      if (callers[k] == nullptr)
        row.wrong = row.wrong.value_or(0) + wrong;
      else if (wrong > 0)
        throw CommError(fmt::format("{} answers {} of {} bytes with {} wrong element(s)",
                                    callers[k]->name, comm::name_of(options.kind), row.bytes,
                                    wrong));
    }
  return row;
}

}  // namespace tutti::cli
