#include "tutti/cli/comm_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "tutti/comm/answer.h"
#include "tutti/comm/mpi/native.h"

namespace tutti {
namespace {

using comm::Collective;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

comm::Task task_for(const comm::Communicator& communicator, Collective kind, size_t count) {
  comm::Task task;
  task.kind = kind;
  task.rank = communicator.rank();
  task.ranks = communicator.size();
  task.count = count;
  const size_t part = count / static_cast<size_t>(task.ranks);
  for (size_t p = 0; p < static_cast<size_t>(task.ranks); ++p) task.parts.push_back({p * part, part});
  if (kind == Collective::all_to_all) task.sends = task.receives = task.parts;
  return task;
}

bool deals(Collective kind) {
  return kind != Collective::barrier && kind != Collective::broadcast && kind != Collective::reduce && kind != Collective::allreduce;
}

// Seconds of one call on this rank, after all have met.
double timed(comm::Communicator& communicator, const std::function<void()>& call) {
  communicator.barrier();
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A chain of dependent arithmetic, the same work at every call, with a look at communication every millisecond.
void compute(comm::Communicator& communicator, size_t chunks) {
  constexpr int kChunk = 16384;  // tens of microseconds
  volatile double sink = 1;
  auto looked = std::chrono::steady_clock::now();
  for (size_t c = 0; c < chunks; ++c) {
    double x = sink;
    for (int i = 0; i < kChunk; ++i) x = x * 0.999999 + 1e-6;
    sink = x;
    if (const auto now = std::chrono::steady_clock::now(); now - looked > std::chrono::milliseconds(1)) {
      looked = now;
      communicator.progress();
    }
  }
}

double mean_over_ranks(comm::Communicator& communicator, double value) {
  communicator.sum({&value, 1});
  return value / communicator.size();
}

}  // namespace

namespace {

double median_seconds(comm::Communicator& communicator, int iterations, const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int i = 0; i < iterations; ++i) seconds.push_back(mean_over_ranks(communicator, timed(communicator, call)));
  return median(std::move(seconds));
}

double hidden_part(comm::Communicator& communicator, comm::Operation& operation, int iterations) {
  const auto alone = [&] { operation.start(), operation.wait(); };
  constexpr size_t kTrial = 64;
  const double chunk = median_seconds(communicator, 5, [&] { compute(communicator, kTrial); }) / kTrial;
  const auto chunks = static_cast<size_t>(median_seconds(communicator, iterations, alone) / chunk) + 1;
  std::vector<double> communication, computation, both;
  for (int i = 0; i < iterations; ++i) {
    communication.push_back(median_seconds(communicator, 1, alone));
    computation.push_back(median_seconds(communicator, 1, [&] { compute(communicator, chunks); }));
    both.push_back(median_seconds(communicator, 1, [&] {
      operation.start();
      compute(communicator, chunks);
      operation.wait();
    }));
  }
  const double saved = median(communication) + median(computation) - median(both);
  return saved / median(communication);
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

CommBenchRow bench_collective(comm::Communicator& communicator, const CommBenchOptions& options, size_t bytes) {
  const size_t element_bytes = comm::size_of(options.element);
  size_t count = options.kind == Collective::barrier ? 0 : bytes / element_bytes;
  if (deals(options.kind)) count -= count % static_cast<size_t>(communicator.size());
  const comm::Task task = task_for(communicator, options.kind, count);
  const comm::Extent extent = comm::extent_of(task);
  const auto input = communicator.allocate(std::max(extent.input, count) * element_bytes + 1);
  const auto output = communicator.allocate(std::max(extent.output, count) * element_bytes + 1);

  comm::CollectiveSpec spec{.kind = options.kind, .element = options.element, .op = options.op, .count = count, .input = input->data(), .output = output->data()};
  // MPI's broadcast has one buffer: so has ours here.
  if (options.kind == Collective::broadcast) spec.input = nullptr;
  spec.algorithm = options.algorithm;
  spec.chunk = options.chunk;
  const auto operation = communicator.plan(spec);
  const auto ours = [&] {
    operation->start();
    operation->wait();
  };
  const auto copy = [&] { std::memcpy(output->data(), input->data(), count * element_bytes); };
  const auto native = options.peers && options.processes ? comm::native_collective(task, options.element, options.op, input->data(), output->data())
                                                         : std::function<void()>();

  CommBenchRow row{.count = count, .bytes = count * element_bytes, .algorithm = operation->algorithm(), .seconds = 0, .memcpy_seconds = 0, .mpi_seconds = {}, .hidden = {}, .wrong = {}};
  const comm::Answer answer(task, options.element, options.op, 0);
  std::byte* const source = options.kind == Collective::broadcast ? output->data() : input->data();
  std::vector<std::byte> values(extent.input * element_bytes);
  answer.fill(values.data());
  const auto rewrite = [&] {
    if (!values.empty()) std::memcpy(source, values.data(), values.size());
  };
  std::vector<double> our_seconds, copy_seconds, native_seconds;
  for (int i = -options.warmup; i < options.iterations; ++i) {
    rewrite();
    const double took = timed(communicator, ours);
    double copied = 0, theirs = 0;
    if (options.peers) {
      rewrite();
      copied = timed(communicator, copy);
    }
    if (native) {
      rewrite();
      theirs = timed(communicator, native);
    }
    if (i < 0) continue;
    our_seconds.push_back(mean_over_ranks(communicator, took));
    copy_seconds.push_back(mean_over_ranks(communicator, copied));
    native_seconds.push_back(mean_over_ranks(communicator, theirs));
  }
  row.seconds = median(our_seconds);
  row.memcpy_seconds = median(copy_seconds);
  if (native) row.mpi_seconds = median(native_seconds);
  if (options.overlap) row.hidden = hidden_part(communicator, *operation, options.iterations);
  if (options.check) {
    rewrite();
    communicator.barrier();
    ours();
    auto wrong = static_cast<double>(answer.count_wrong(output->data()));
    communicator.sum({&wrong, 1});
    row.wrong = static_cast<size_t>(wrong);
  }
  return row;
}

}  // namespace tutti
