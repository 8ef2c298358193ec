#pragma once
// The words that kernels are written with, where nvcc compiles them for a GPU. The file of the same
// name in device/emulated/ has the same words for the emulated device, and a kernel uses no others,
// besides CUDA's threadIdx, blockIdx, blockDim, gridDim, __syncthreads, __shfl_sync,
// __shfl_xor_sync, __shfl_down_sync, float4, make_float4 and functions of mathematics.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tutti/device/device.h"

/// Begins a kernel in place of its result's type: `TUTTI_KERNEL(256) add(AddArgs a) {...}`. A
/// second number says for how many blocks a multiprocessor is to have registers.
#define TUTTI_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
/// Begins a function that kernels call.
#define TUTTI_DEVICE __device__ __forceinline__
/// Declares an array that a block shares; `count` is a constant.
#define TUTTI_SHARED(type, name, count) __shared__ type name[count]

namespace tutti::backend {

/// bfloat16, bit by bit as tutti::bf16.
struct bf16 {
  uint16_t bits;
};

TUTTI_DEVICE float to_float(float v) { return v; }
TUTTI_DEVICE float to_float(bf16 v) {
  const uint32_t u = static_cast<uint32_t>(v.bits) << 16;
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}
TUTTI_DEVICE void from_float(float f, float& v) { v = f; }
/// Rounds to nearest even; NaN stays NaN.
TUTTI_DEVICE void from_float(float f, bf16& v) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  const uint32_t rounded = (u + 0x7FFFu + ((u >> 16) & 1u)) >> 16;
  v.bits = static_cast<uint16_t>((u & 0x7FFFFFFFu) > 0x7F800000u ? (u >> 16) | 0x40u : rounded);
}

/// N elements that are read and written by one access of at most 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  static_assert(sizeof(T) * N <= 16, "an access has at most 16 bytes");
  T at[N];
};

/// `p` is a multiple of the pack's size.
template <int N, class T>
TUTTI_DEVICE Pack<T, N> load(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <class T>
TUTTI_DEVICE T load(const T* p) {
  return *p;
}
template <int N, class T>
TUTTI_DEVICE void store(T* p, const Pack<T, N>& v) {
  *reinterpret_cast<Pack<T, N>*>(p) = v;
}
template <class T>
TUTTI_DEVICE void store(T* p, std::type_identity_t<T> v) {
  *p = v;
}

/// Says of one of a group's blocks, to all of its threads, that all the others of the group have
/// called it before; what threads have written before they called it is then there for that block
/// to read. Which block it is differs from run to run. Sums keep their bits all the same, because
/// that block adds up what all have written in an order of its own, whichever it is. All threads of
/// the group's `blocks` blocks call it. The counter begins at 0 and is 0 again when all have.
TUTTI_DEVICE bool comes_last(unsigned* counter, unsigned blocks) {
  __shared__ unsigned before;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) before = atomicInc(counter, blocks - 1);
  __syncthreads();
  if (before != blocks - 1) return false;
  __threadfence();
  return true;
}

template <class Args>
constexpr size_t argument_bytes(void (*)(Args)) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= device::kMostArgumentBytes);
  return sizeof(Args);
}

/// Returns the entry of a table of functions for a kernel that was declared with as many threads.
template <auto Kernel>
device::DeviceFunction device_function(std::string_view name, unsigned threads, bool flat = false) {
  return {.name = name,
          .entry = reinterpret_cast<const void*>(Kernel),
          .threads = threads,
          .argument_bytes = argument_bytes(Kernel),
          .flat = flat};
}

}  // namespace tutti::backend
