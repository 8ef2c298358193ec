// Measures the speed of gradient compression on one thread, and of `feedback` on two: the work of a
// rank before and after an exchange.
//   tutti_bench_codecs --benchmark_filter='encode/.*' --benchmark_repetitions=5
//     --benchmark_report_aggregates_only=true
// GB/s count dense f32: 4 bytes an element, whatever the encoding needs. `feedback` is encode with
// error feedback, as in an exchange.

#include <benchmark/benchmark.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/numeric/denormals.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/shared_work.h"
#include "tutti/comm/compress/codec/codec.h"
#include "tutti/comm/compress/codec/error_feedback.h"
#include "tutti/comm/compress/codec/powersgd.h"

namespace {

using namespace tutti;
using namespace tutti::comm;

std::vector<float> gradient(size_t count) {
  ::Rng rng(1, ::Purpose::test, 0);
  std::vector<float> x(count);
  for (float& value : x) value = rng.normal() * 0.01f;
  return x;
}

void report(benchmark::State& state, size_t count) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(count * sizeof(float)));
}

void encode(benchmark::State& state, const std::string& name, size_t count) {
  const auto codec = comm::make_codec(name);
  const std::vector<float> x = gradient(count);
  std::vector<std::byte> out(codec->encoded_bytes(count));
  for (auto _ : state) codec->encode(x, out);
  report(state, count);
}

void decode(benchmark::State& state, const std::string& name, size_t count, bool adds) {
  const auto codec = comm::make_codec(name);
  std::vector<float> x = gradient(count);
  std::vector<std::byte> out(codec->encoded_bytes(count));
  codec->encode(x, out);
  for (auto _ : state) adds ? codec->add_decoded(out, x) : codec->decode(out, x);
  report(state, count);
}

// `threads` counts this one, and threads that wait and help.
void feedback(benchmark::State& state, const std::string& name, size_t count, int threads) {
  const auto codec = comm::make_codec(name);
  const std::vector<float> x = gradient(count);
  std::vector<float> residual(count, 0.0f);
  std::vector<std::byte> out(codec->encoded_bytes(count));
  ::SharedWork work;
  std::atomic<bool> over{false};
  std::vector<std::jthread> waiting;
  for (int t = 1; t < threads; ++t)
    waiting.emplace_back([&] {
      while (!over) work.help();
    });
  for (auto _ : state) {
    comm::ErrorFeedback error(residual);
    benchmark::DoNotOptimize(error.encode(*codec, x, out, 0, &work));
  }
  over = true;
  report(state, count);
}

void powersgd(benchmark::State& state, size_t rows, size_t cols, int rank) {
  const comm::PowerSgd code({rows, cols}, rank, 1);
  std::vector<float> m = gradient(rows * cols), p(code.p_count()), q(code.q_count()), sum(m.size());
  code.begin(q);
  for (auto _ : state) {
    code.project(m, q, p);
    code.orthogonalize(p);
    code.back_project(m, p, q);
    code.decode(p, q, sum);
    benchmark::DoNotOptimize(code.finish(p, q, m));
  }
  report(state, rows * cols);
}

}  // namespace

int main(int argc, char** argv) {
  tutti::flush_denormals();  // as the program does
  constexpr size_t kCount = 1 << 20;
  for (const std::string name : {"bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.001"}) {
    benchmark::RegisterBenchmark(("encode/" + name).c_str(), encode, name, kCount);
    benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode, name, kCount, false);
    benchmark::RegisterBenchmark(("add/" + name).c_str(), decode, name, kCount, true);
    for (const int threads : {1, 2})
      benchmark::RegisterBenchmark(("feedback/" + name + "/" + std::to_string(threads)).c_str(),
                                   feedback, name, kCount, threads)
          ->UseRealTime();
  }
  for (const int rank : {1, 4})
    benchmark::RegisterBenchmark(("powersgd/1024x1024/" + std::to_string(rank)).c_str(), powersgd,
                                 1024, 1024, rank);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
