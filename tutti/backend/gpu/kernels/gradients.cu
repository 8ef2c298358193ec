// Kernels on whole arenas of gradients.

#include "tutti/backend/gpu/kernels/gradients.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

constexpr int kPack = 4, kWarpLanes = 32, kWarps = kGradientThreads / kWarpLanes;
constexpr int64_t kNone = INT64_MAX, kStep = kPack * kGradientThreads;
constexpr float kLargest = 3.40282347e+38f;
constexpr unsigned kAllLanes = 0xFFFFFFFF;

/// Returns the least of the block's numbers, on thread 0 alone.
TUTTI_DEVICE int64_t block_least(int64_t v) {
  TUTTI_SHARED(int64_t, of_warp, kWarps);
  for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) {
    const int64_t other = __shfl_xor_sync(kAllLanes, v, lanes);
    if (other < v) v = other;
  }
  if (threadIdx.x % kWarpLanes == 0) of_warp[threadIdx.x / kWarpLanes] = v;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 1; i < kWarps; ++i)
      if (of_warp[i] < v) v = of_warp[i];
  return v;
}

/// Sets floats [begin, end) to 0, by all threads of a block; begin is a multiple of a pack, and so
/// is the end.
TUTTI_DEVICE void set_to_zero(float* v, int64_t begin, int64_t end) {
  for (int64_t i = begin + kPack * threadIdx.x; i < end; i += kStep)
    store<kPack>(v + i, Pack<float, kPack>{});
}

TUTTI_KERNEL(kGradientThreads) gradient_look(GradientLookArgs a) {
  const int64_t begin = blockIdx.x * kGradientRun, end = begin + kGradientRun;
  int64_t first = kNone;
  for (int64_t i = begin + kPack * threadIdx.x; i < end && i < a.floats; i += kStep) {
    const Pack<float, kPack> x = load<kPack>(a.gradients + i);
    for (int k = kPack - 1; k >= 0; --k)
      if (!(fabsf(x.at[k]) <= kLargest) && i + k < first) first = i + k;
  }
  first = block_least(first);
  if (threadIdx.x == 0) store(a.firsts + blockIdx.x, first);
  if (!comes_last(a.findings->counter, gridDim.x)) return;
  first = kNone;
  for (int64_t i = threadIdx.x; i < gridDim.x; i += kGradientThreads) {
    const int64_t here = load(a.firsts + i);
    if (here < first) first = here;
  }
  first = block_least(first);
  if (threadIdx.x == 0) {
    store(&a.findings->first, first == kNone ? int64_t{-1} : first);
    if (first != kNone) store(&a.findings->any, int64_t{1});
  }
  for (int i = 0; i < a.count; ++i)
    if (i == static_cast<int>(threadIdx.x)) store(a.findings->brought + i, load(a.numbers[i]));
  if (a.scalars == nullptr) return;
  __syncthreads();
  if (load(&a.findings->any) == 0) return;
  set_to_zero(a.gradients, 0, a.floats);
  set_to_zero(a.scalars, 0, a.scalar_floats);
}

TUTTI_KERNEL(kGradientThreads) gradient_stop(GradientStopArgs a) {
  if (load(&a.findings->any) == 0) return;
  const int64_t begin = blockIdx.x * kGradientRun, end = begin + kGradientRun;
  set_to_zero(a.gradients, begin, end < a.floats ? end : a.floats);
  if (blockIdx.x == 0) set_to_zero(a.scalars, 0, a.scalar_floats);
}

TUTTI_KERNEL(kGradientThreads) gradient_add(GradientAddArgs a) {
  const int64_t begin = blockIdx.x * kGradientRun, end = begin + kGradientRun;
  for (int64_t i = begin + kPack * threadIdx.x; i < end && i < a.floats; i += kStep) {
    Pack<float, kPack> sum = load<kPack>(static_cast<const float*>(a.into) + i);
    const Pack<float, kPack> x = load<kPack>(a.from + i);
    for (int k = 0; k < kPack; ++k) sum.at[k] += x.at[k];
    store<kPack>(a.into + i, sum);
  }
}

}  // namespace

std::span<const device::DeviceFunction> gradients_functions() {
  constexpr unsigned kThreads = kGradientThreads;
  static const device::DeviceFunction list[] = {
      device_function<gradient_look>("gradient_look", kThreads),
      device_function<gradient_stop>("gradient_stop", kThreads, true),
      device_function<gradient_add>("gradient_add", kThreads, true),
  };
  return list;
}

}  // namespace tutti::backend
