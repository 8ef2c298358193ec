#pragma once
// For tests: kernels of the emulated device, right ones and some with faults.

#include "tutti/device/emulated/device_code.h"

namespace tutti::device::test_kernels {

using namespace backend;
using backend::bf16;  // there may be that of tensor/, too

constexpr unsigned kThreads = 256;

TUTTI_DEVICE int64_t thread_of_grid() {
  const int64_t block =
      (static_cast<int64_t>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  return block * blockDim.x + threadIdx.x;
}

struct CountArgs {
  float* runs;  // by thread of the grid
};
inline TUTTI_KERNEL(80) count_runs(CountArgs a) {
  float* const own = a.runs + thread_of_grid();
  store(own, load(own) + 1);
}

/// One row a block: sums[row] = the sum of x[row, columns].
struct RowArgs {
  const float* x;
  float* sums;
  int columns;
};
/// Adds over the block by shared memory; without its barrier a warp may read what is not there yet.
template <bool Barrier>
TUTTI_DEVICE float block_sum(float v) {
  TUTTI_SHARED(float, part, kThreads);
  part[threadIdx.x] = v;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (Barrier) __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  __syncthreads();
  return part[0];
}
template <bool Barrier>
TUTTI_KERNEL(kThreads)
sum_rows(RowArgs a) {
  float sum = 0;
  for (unsigned i = threadIdx.x; i < static_cast<unsigned>(a.columns); i += kThreads)
    sum += load(a.x + static_cast<int64_t>(blockIdx.x) * a.columns + i);
  sum = block_sum<Barrier>(sum);
  if (threadIdx.x == 0) store(a.sums + blockIdx.x, sum);
}

/// sum[0] = the sum of x, kThreads numbers a block: one block adds up the blocks' sums.
struct EndArgs {
  const float* x;
  float *parts, *sum;
  unsigned* counter;
};
/// Without comes_last() the first block ends what others may not have begun.
template <bool Last>
TUTTI_KERNEL(kThreads)
sum_all(EndArgs a) {
  const float part = block_sum<true>(load(a.x + thread_of_grid()));
  if (threadIdx.x == 0) store(a.parts + blockIdx.x, part);
  const bool ends = Last ? comes_last(a.counter, gridDim.x) : blockIdx.x == 0;
  if (!ends || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += load(a.parts + i);
  store(a.sum, sum);
}

/// out[t] by one warp: sums over all lanes, the value two lanes above, and that of lane 5.
struct LaneArgs {
  float *sum, *above, *fifth;
};
inline TUTTI_KERNEL(32) exchange_lanes(LaneArgs a) {
  const auto own = static_cast<float>(threadIdx.x);
  float sum = own;
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lanes);
  store(a.sum + threadIdx.x, sum);
  store(a.above + threadIdx.x, __shfl_down_sync(0xFFFFFFFFu, own, 2));
  // Both halves exchange for themselves, the upper one more often.
  const unsigned half = threadIdx.x < 16 ? 0xFFFFu : 0xFFFF0000u;
  const int first = threadIdx.x < 16 ? 0 : 16;
  float fifth = __shfl_sync(half, own, first + 5);
  if (first == 16) fifth = __shfl_sync(half, fifth, 31);
  store(a.fifth + threadIdx.x, fifth);
}

/// y[i] = x[i] + 1, eight numbers an access; kThreads * 8 numbers a block.
struct PackArgs {
  const bf16* x;
  bf16* y;
};
inline TUTTI_KERNEL(kThreads) add_one(PackArgs a) {
  const int64_t i = thread_of_grid() * 8;
  Pack<bf16, 8> v = load<8>(a.x + i);
  for (bf16& one : v.at) from_float(to_float(one) + 1, one);
  store<8>(a.y + i, v);
}

/// y -= rate * x, with the rate in memory or as it was when the kernel was launched.
struct AxpyArgs {
  float* y;
  const float* x;
  const float* rate;
  float launched_rate;
  int count;
};
inline TUTTI_KERNEL(kThreads) axpy(AxpyArgs a) {
  const int64_t i = thread_of_grid();
  const float rate = a.rate ? load(a.rate) : a.launched_rate;
  if (i < a.count) store(a.y + i, load(a.y + i) - rate * load(a.x + i));
}

/// Blocks write their number to one place, which no order decides.
struct LastArgs {
  float* last;
};
inline TUTTI_KERNEL(32) last_block(LastArgs a) { store(a.last, static_cast<float>(blockIdx.x)); }
inline TUTTI_KERNEL(64) last_thread(LastArgs a) {
  __syncthreads();
  store(a.last, static_cast<float>(threadIdx.x));
}

/// y = x as a whole, or with rows and columns exchanged, `side` of each.
struct SquareArgs {
  const float* x;
  float* y;
  int side;
};
inline TUTTI_KERNEL(kThreads) copy_square(SquareArgs a) {
  const int64_t i = thread_of_grid() * 4;
  store<4>(a.y + i, load<4>(a.x + i));
}
inline TUTTI_KERNEL(kThreads) transpose_square(SquareArgs a) {
  const int64_t i = thread_of_grid();
  store(a.y + i % a.side * a.side + i / a.side, load(a.x + i));
}

/// Faults, by number.
enum class Fault : int {
  barrier_of_some,
  two_barriers,
  mask_without_itself,
  mask_without_source,
  different_masks,
  mask_of_ended,
  much_shared_memory,
  odd_address,
  memory_of_host,
  beyond_end,
};
struct FaultArgs {
  Fault fault;
  float* memory;  // 4 numbers
  float* host;
};
TUTTI_DEVICE void wrong_shuffle(Fault fault) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned own = 1u << lane, next = 1u << (lane + 1) % 32;
  if (fault == Fault::mask_without_itself) __shfl_sync(~own, 1.0f, 0);
  if (fault == Fault::mask_without_source) __shfl_sync(own, 1.0f, static_cast<int>(lane + 1) % 32);
  if (fault == Fault::different_masks) __shfl_sync(own | next, 1.0f, static_cast<int>(lane));
  if (fault == Fault::mask_of_ended && lane >= 8) __shfl_xor_sync(0xFFFFFFFFu, 1.0f, 1);
}
inline TUTTI_KERNEL(64) do_wrong(FaultArgs a) {
  if (a.fault == Fault::barrier_of_some && threadIdx.x < 48) __syncthreads();
  if (a.fault == Fault::two_barriers) {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  }
  wrong_shuffle(a.fault);
  if (a.fault == Fault::much_shared_memory) {
    TUTTI_SHARED(float, first, 12000);
    TUTTI_SHARED(float, second, 1000);
    first[threadIdx.x] = second[threadIdx.x] = 0;
  }
  if (a.fault == Fault::odd_address) load<2>(a.memory + 1);
  if (a.fault == Fault::memory_of_host) store(a.host, 1.0f);
  if (a.fault == Fault::beyond_end) store(a.memory + 4, 1.0f);
}

/// Gives what shared memory has before anybody writes there.
inline TUTTI_KERNEL(32) read_unwritten(LastArgs a) {
  TUTTI_SHARED(float, unwritten, 32);
  store(a.last + static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x, unwritten[threadIdx.x]);
  unwritten[threadIdx.x] = 1;
}

inline const DeviceFunction kCountRuns = device_function<count_runs>("count_runs", 80, true);
inline const DeviceFunction kCountRunsByFibers = device_function<count_runs>("count_runs", 80);
inline const DeviceFunction kSumRows = device_function<sum_rows<true>>("sum_rows", kThreads);
inline const DeviceFunction kSumRowsRacing =
    device_function<sum_rows<false>>("sum_rows.racing", kThreads);
inline const DeviceFunction kSumAll = device_function<sum_all<true>>("sum_all", kThreads);
inline const DeviceFunction kSumAllEarly =
    device_function<sum_all<false>>("sum_all.early", kThreads);
inline const DeviceFunction kExchangeLanes = device_function<exchange_lanes>("exchange_lanes", 32);
inline const DeviceFunction kAddOne = device_function<add_one>("add_one", kThreads, true);
inline const DeviceFunction kAxpy = device_function<axpy>("axpy", kThreads, true);
inline const DeviceFunction kLastBlock = device_function<last_block>("last_block", 32, true);
inline const DeviceFunction kLastThread = device_function<last_thread>("last_thread", 64);
inline const DeviceFunction kCopySquare =
    device_function<copy_square>("copy_square", kThreads, true);
inline const DeviceFunction kTransposeSquare =
    device_function<transpose_square>("transpose_square", kThreads);
inline const DeviceFunction kDoWrong = device_function<do_wrong>("do_wrong", 64);
inline const DeviceFunction kFlatDoWrong = device_function<do_wrong>("do_wrong.flat", 64, true);
inline const DeviceFunction kReadUnwritten = device_function<read_unwritten>("read_unwritten", 32);

}  // namespace tutti::device::test_kernels
