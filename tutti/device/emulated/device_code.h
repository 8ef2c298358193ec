#pragma once
// The words that kernels are written with, where a compiler of C++ compiles them for the emulated
// device. The file of the same name in device/cuda/ has the same words for nvcc, and a kernel uses
// no others, besides functions of mathematics on float: expf, logf, sqrtf, tanhf, ...

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tutti/device/device.h"
#include "tutti/device/emulated/sectors.h"
#include "tutti/device/emulated/thread_code.h"

/// Begins a kernel in place of its result's type: `TUTTI_KERNEL(256) add(AddArgs a) {...}`. A
/// second number says for how many blocks a multiprocessor is to have registers.
#define TUTTI_KERNEL(...) void
/// Begins a function that kernels call.
#define TUTTI_DEVICE inline
/// Declares an array that a block shares; `count` is a constant.
#define TUTTI_SHARED(type, name, count)                                                    \
  type* const name = static_cast<type*>([] {                                               \
    static char site = 0;                                                                  \
    return ::tutti::device::shared_bytes(&site, sizeof(type) * static_cast<size_t>(count), \
                                         __LINE__);                                        \
  }())

#define threadIdx ::tutti::device::thread_index()
#define blockIdx ::tutti::device::block_index()
#define blockDim ::tutti::device::block_size()
#define gridDim ::tutti::device::grid_size()

namespace tutti::backend {

using std::isnan;

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

struct alignas(16) float4 {
  float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline void __syncthreads(int line = __builtin_LINE()) { device::meet_block(line); }
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int line = __builtin_LINE()) {
  return device::exchanged(mask, value, static_cast<unsigned>(from) % device::kWarp, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int line = __builtin_LINE()) {
  const unsigned source = device::lane() ^ static_cast<unsigned>(lanes);
  return device::exchanged(mask, value, source % device::kWarp, line);
}
/// A lane without another that far above it keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int line = __builtin_LINE()) {
  const unsigned source = device::lane() + lanes;
  return device::exchanged(mask, value, source < device::kWarp ? source : device::lane(), line);
}

/// bfloat16, bit by bit as tutti::bf16.
struct bf16 {
  uint16_t bits;
};

inline float to_float(float v) { return v; }
inline float to_float(bf16 v) {
  const uint32_t u = static_cast<uint32_t>(v.bits) << 16;
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}
inline void from_float(float f, float& v) { v = f; }
/// Rounds to nearest even; NaN stays NaN.
inline void from_float(float f, bf16& v) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
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
Pack<T, N> load(const T* p) {
  device::look_at_access<Pack<T, N>>(device::Access::read, p);
  Pack<T, N> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
T load(const T* p) {
  device::look_at_access<T>(device::Access::read, p);
  return *p;
}
template <int N, class T>
void store(T* p, const Pack<T, N>& v) {
  device::look_at_access<Pack<T, N>>(device::Access::write, p);
  std::memcpy(p, &v, sizeof v);
}
template <class T>
void store(T* p, std::type_identity_t<T> v) {
  device::look_at_access<T>(device::Access::write, p);
  *p = v;
}

/// Says of one of a group's blocks, to all of its threads, that all the others of the group have
/// called it before; what threads have written before they called it is then there for that block
/// to read. Which block it is differs from run to run. Sums keep their bits all the same, because
/// that block adds up what all have written in an order of its own, whichever it is. All threads of
/// the group's `blocks` blocks call it. The counter begins at 0 and is 0 again when all have.
inline bool comes_last(unsigned* counter, unsigned blocks, int line = __builtin_LINE()) {
  TUTTI_SHARED(unsigned, before, 1);
  device::meet_block(line);
  if (threadIdx.x == 0) {
    *before = load(counter);
    store(counter, *before == blocks - 1 ? 0 : *before + 1);
  }
  device::meet_block(line);
  return *before == blocks - 1;
}

template <class Args>
constexpr size_t argument_bytes(void (*)(Args)) {
  static_assert(std::is_trivially_copyable_v<Args> && sizeof(Args) <= device::kMostArgumentBytes);
  return sizeof(Args);
}

/// Returns the entry of a table of functions for a kernel that was declared with as many threads.
template <auto Kernel>
device::DeviceFunction device_function(std::string_view name, unsigned threads, bool flat = false) {
  static constexpr device::EmulatedKernel kEntry = device::emulated_kernel<Kernel>(Kernel);
  return {.name = name,
          .entry = &kEntry,
          .threads = threads,
          .argument_bytes = argument_bytes(Kernel),
          .flat = flat};
}

}  // namespace tutti::backend
