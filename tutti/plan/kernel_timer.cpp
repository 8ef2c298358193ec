#include "tutti/plan/kernel_timer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>

#include "tutti/base/numeric/rng.h"

namespace tutti::plan {
namespace {

/// Random values of one type, repeated over an operand: timing on zeros would flatter caches and
/// clocks, and drawing each value of a large operand would take longer than the kernel.
template <class T>
const std::array<T, 4096>& random_values() {
  static const auto values = [] {
    std::array<T, 4096> drawn;
    Rng rng(1, Purpose::test, 0);
    for (T& value : drawn) value = static_cast<T>(rng.uniform() + 0.01f);
    return drawn;
  }();
  return values;
}

void repeat(const void* pattern, size_t pattern_bytes, const device::Buffer& memory) {
  for (size_t at = 0; at < memory.bytes(); at += pattern_bytes)
    std::memcpy(memory.data() + at, pattern, std::min(pattern_bytes, memory.bytes() - at));
}

void fill(DType type, const device::Buffer& memory) {
  if (type == DType::f32)
    repeat(random_values<float>().data(), sizeof(random_values<float>()), memory);
  else if (type == DType::bf16)
    repeat(random_values<bf16>().data(), sizeof(random_values<bf16>()), memory);
  else if (memory.bytes() > 0)
    std::memset(memory.data(), 0, memory.bytes());
}

/// Returns memory that has been touched: the first candidate must not pay for page faults.
device::Buffer touched(size_t bytes) {
  device::Buffer memory(bytes);
  if (bytes > 0) std::memset(memory.data(), 0, bytes);
  return memory;
}

}  // namespace

void* KernelTimer::prepared(Operand& operand, const TensorDesc& desc) {
  if (!operand.memory.data() || !(operand.desc == desc)) {
    if (operand.memory.bytes() < desc.bytes()) operand.memory = device::Buffer(desc.bytes());
    operand.desc = desc;
    fill(desc.dtype, operand.memory);
  }
  return operand.memory.data();
}

double KernelTimer::seconds(const backend::KernelCandidate& candidate, double best) {
  const std::unique_ptr<backend::Kernel> kernel = candidate.make();
  in_.resize(candidate.in.size());
  out_.resize(candidate.out.size());
  std::vector<void*> in, out;
  for (size_t i = 0; i < in_.size(); ++i) in.push_back(prepared(in_[i], candidate.in[i]));
  for (size_t i = 0; i < out_.size(); ++i) out.push_back(prepared(out_[i], candidate.out[i]));
  const device::Buffer workspace = touched(kernel->workspace_bytes()),
                       state = touched(kernel->state_bytes());
  const auto& operands = request_.in;
  const backend::StepInfo step{
      .batch = operands.empty() || operands[0].shape.rank() == 0 ? 1 : operands[0].shape[0]};
  const backend::KernelArgs args{.in = in.data(),
                                 .out = out.data(),
                                 .workspace = workspace.data(),
                                 .state = state.data(),
                                 .step = &step};

  using Clock = std::chrono::steady_clock;
  constexpr double kDecides = 50e-3, kEnough = 2e-3, kBehind = 1.5;
  constexpr int kLeast = 4, kMost = 40;
  const auto run = [&] {
    const auto start = Clock::now();
    kernel->run(args);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double total = run();  // cold
  if (total >= kDecides || (total >= kEnough && total > 4 * best)) return total;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 1; i < kMost && total < kDecides && (i < kLeast || total < kEnough); ++i) {
    const double took = run();
    total += took;
    least = std::min(least, took);
    if (total >= kEnough && least > kBehind * best) break;
  }
  return least;
}

}  // namespace tutti::plan
