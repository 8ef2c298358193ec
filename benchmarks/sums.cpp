// Measures a rank's sum of 16 MiB, as an operation computes it, alone and with a waiting second
// thread.

#include <benchmark/benchmark.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tutti/base/shared_work.h"
#include "tutti/comm/schedule/element.h"

namespace {

using namespace tutti;

void sum(benchmark::State& state) {
  constexpr size_t kCount = size_t{16} << 18, kPiece = size_t{32} << 10;
  std::vector<float> a(kCount, 1.0f), b(kCount, 2.0f), to(kCount);
  const auto run = [](std::vector<float>& x, size_t at) {
    return comm::Run{reinterpret_cast<std::byte*>(x.data() + at), comm::Element::f32};
  };
  ::SharedWork work;
  std::atomic<bool> over{false};
  std::vector<std::jthread> waiting;
  for (int64_t t = 1; t < state.range(0); ++t)
    waiting.emplace_back([&] {
      while (!over) work.help();
    });
  for (auto _ : state)
    work.run(kCount / kPiece, [&](size_t i) {
      comm::combine(comm::ReduceOp::sum, run(to, i * kPiece), run(a, i * kPiece),
                    run(b, i * kPiece), kPiece, kCount);
    });
  over = true;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kCount * sizeof(float)));
}
BENCHMARK(sum)->Name("sum of 16 MiB, threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
