// Pooling over windows, and resizing by whole factors. Gradients are gathered: a thread looks for
// the windows that its element is in, in their order.

#include "tutti/backend/gpu/kernels/pools.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

/// Returns i % extent, and leaves i / extent.
TUTTI_DEVICE int take_index(int64_t& i, int extent) {
  if (i <= 0xFFFFFFFF) {  // much faster
    const auto small = static_cast<uint32_t>(i), quotient = small / static_cast<uint32_t>(extent);
    i = quotient;
    return static_cast<int>(small - quotient * static_cast<uint32_t>(extent));
  }
  const int64_t quotient = i / extent;
  const int index = static_cast<int>(i - quotient * extent);
  i = quotient;
  return index;
}

/// Returns the place of a position in its plane.
TUTTI_DEVICE int32_t place_in_plane(const PoolSide& side, int d, int h, int w) {
  return d * side.step[0] + h * side.step[1] + w * side.step[2];
}

/// The pack of the result that a thread makes.
struct PoolThread {
  bool works;
  int pack, at[3];
  int64_t plane;

  TUTTI_DEVICE PoolThread(const PoolPlaces& p, const PoolSide& result) {
    int64_t i = static_cast<int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
    works = i < p.count;
    pack = take_index(i, p.packs);
    for (int d = 2; d >= 0; --d) at[d] = take_index(i, result.extent[d]);
    plane = i;
  }
  /// Returns where the thread's channels begin in its plane.
  template <int N>
  TUTTI_DEVICE int64_t start(const PoolSide& side) const {
    return plane * side.plane + pack * N;
  }
  /// Returns the place of the thread's own pack.
  template <int N>
  TUTTI_DEVICE int64_t own(const PoolSide& result) const {
    return start<N>(result) + place_in_plane(result, at[0], at[1], at[2]);
  }
};

/// Indices [begin, end) in each dimension.
struct PoolRange {
  int begin[3], end[3];

  /// Calls f(d, h, w), in order. It is one loop, which is not unrolled: a thread then needs few
  /// registers.
  template <class F>
  TUTTI_DEVICE void each(F f) const {
    if (begin[0] >= end[0] || begin[1] >= end[1] || begin[2] >= end[2]) return;
    int d = begin[0], h = begin[1], w = begin[2];
    while (true) {
      f(d, h, w);
      if (++w < end[2]) continue;
      w = begin[2];
      if (++h < end[1]) continue;
      h = begin[1];
      if (++d >= end[0]) return;
    }
  }
};

/// Returns the part of window (d, h, w) that lies in x.
TUTTI_DEVICE PoolRange pool_window(const PoolArgs& a, int d, int h, int w) {
  const int at[3] = {d, h, w};
  PoolRange r;
  for (int i = 0; i < 3; ++i) {
    const int first = at[i] * a.stride[i] - a.low[i], last = first + a.kernel[i];
    r.begin[i] = first > 0 ? first : 0;
    r.end[i] = last < a.places.x.extent[i] ? last : a.places.x.extent[i];
  }
  return r;
}

/// Returns the windows that position `at` of x is in.
TUTTI_DEVICE PoolRange windows_of(const PoolArgs& a, const int (&at)[3]) {
  PoolRange r;
  for (int i = 0; i < 3; ++i) {
    const int last = at[i] + a.low[i], first = last - a.kernel[i] + 1, end = last / a.stride[i] + 1;
    r.begin[i] = first > 0 ? (first + a.stride[i] - 1) / a.stride[i] : 0;
    r.end[i] = end < a.places.y.extent[i] ? end : a.places.y.extent[i];
  }
  return r;
}

/// Returns the index in window (d, h, w) of position `at` of x.
TUTTI_DEVICE int index_in_window(const PoolArgs& a, const int (&at)[3], int d, int h, int w) {
  return (at[0] + a.low[0] - d * a.stride[0]) * a.index_step[0] +
         (at[1] + a.low[1] - h * a.stride[1]) * a.index_step[1] +
         (at[2] + a.low[2] - w * a.stride[2]);
}

/// Returns the reciprocal of what the sum over window (d, h, w) is divided by.
TUTTI_DEVICE float inverse_size(const PoolArgs& a, int d, int h, int w) {
  const int at[3] = {d, h, w};
  int size = 1;
  for (int i = 0; i < 3; ++i) {
    const int first = at[i] * a.stride[i] - a.low[i], last = first + a.kernel[i];
    size *= (last < a.counted_high[i] ? last : a.counted_high[i]) -
            (first > a.counted_low[i] ? first : a.counted_low[i]);
  }
  return 1.0f / static_cast<float>(size);
}

template <class T, int N>
TUTTI_DEVICE Pack<T, N> rounded_pack(const float (&v)[N]) {
  Pack<T, N> pack;
  for (int k = 0; k < N; ++k) from_float(v[k], pack.at[k]);
  return pack;
}

/// A NaN is largest, and the first of equals stays.
template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
pool_max(PoolArgs a) {
  const PoolThread thread(a.places, a.places.y);
  if (!thread.works) return;
  float best[N] = {};
  int winner[N] = {};
  bool none = true;  // -infinity wins if there is nothing else
  const T* const plane = static_cast<const T*>(a.from) + thread.start<N>(a.places.x);
  pool_window(a, thread.at[0], thread.at[1], thread.at[2]).each([&](int d, int h, int w) {
    const Pack<T, N> x = load<N>(plane + place_in_plane(a.places.x, d, h, w));
    const int at[3] = {d, h, w},
              index = index_in_window(a, at, thread.at[0], thread.at[1], thread.at[2]);
    for (int k = 0; k < N; ++k) {
      const float v = to_float(x.at[k]);
      const bool larger = none || v > best[k] || (v != v && best[k] == best[k]);
      best[k] = larger ? v : best[k];
      winner[k] = larger ? index : winner[k];
    }
    none = false;
  });
  const int64_t own = thread.own<N>(a.places.y);
  Pack<uint8_t, N> winners;
  for (int k = 0; k < N; ++k) winners.at[k] = static_cast<uint8_t>(winner[k]);
  store<N>(static_cast<T*>(a.to) + own, rounded_pack<T>(best));
  store<N>(a.winners + own, winners);
}

template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
pool_average(PoolArgs a) {
  const PoolThread thread(a.places, a.places.y);
  if (!thread.works) return;
  const T* const plane = static_cast<const T*>(a.from) + thread.start<N>(a.places.x);
  float sum[N] = {};
  pool_window(a, thread.at[0], thread.at[1], thread.at[2]).each([&](int d, int h, int w) {
    const Pack<T, N> x = load<N>(plane + place_in_plane(a.places.x, d, h, w));
    for (int k = 0; k < N; ++k) sum[k] += to_float(x.at[k]);
  });
  const float inverse = inverse_size(a, thread.at[0], thread.at[1], thread.at[2]);
  for (int k = 0; k < N; ++k) sum[k] *= inverse;
  store<N>(static_cast<T*>(a.to) + thread.own<N>(a.places.y), rounded_pack<T>(sum));
}

template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
pool_max_grad(PoolArgs a) {
  const PoolThread thread(a.places, a.places.x);
  if (!thread.works) return;
  const int64_t start = thread.start<N>(a.places.y);
  const T* const plane = static_cast<const T*>(a.from) + start;
  const uint8_t* const of_winners = a.winners + start;
  float sum[N] = {};
  windows_of(a, thread.at).each([&](int d, int h, int w) {
    const int32_t place = place_in_plane(a.places.y, d, h, w);
    const Pack<T, N> dy = load<N>(plane + place);
    const Pack<uint8_t, N> winners = load<N>(of_winners + place);
    const int index = index_in_window(a, thread.at, d, h, w);
    for (int k = 0; k < N; ++k) sum[k] += winners.at[k] == index ? to_float(dy.at[k]) : 0.0f;
  });
  store<N>(static_cast<T*>(a.to) + thread.own<N>(a.places.x), rounded_pack<T>(sum));
}

template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
pool_average_grad(PoolArgs a) {
  const PoolThread thread(a.places, a.places.x);
  if (!thread.works) return;
  const T* const plane = static_cast<const T*>(a.from) + thread.start<N>(a.places.y);
  float sum[N] = {};
  windows_of(a, thread.at).each([&](int d, int h, int w) {
    const Pack<T, N> dy = load<N>(plane + place_in_plane(a.places.y, d, h, w));
    const float inverse = inverse_size(a, d, h, w);
    for (int k = 0; k < N; ++k) sum[k] += to_float(dy.at[k]) * inverse;
  });
  store<N>(static_cast<T*>(a.to) + thread.own<N>(a.places.x), rounded_pack<T>(sum));
}

/// The gradients where windows cover x and each element is in one: a thread has a window.
template <class T, int N, bool kMax>
TUTTI_KERNEL(kPoolThreads)
pool_grad_apart(PoolArgs a) {
  const PoolThread thread(a.places, a.places.y);
  if (!thread.works) return;
  const int64_t own = thread.own<N>(a.places.y);
  const Pack<T, N> dy = load<N>(static_cast<const T*>(a.from) + own);
  Pack<uint8_t, N> winners{};
  if constexpr (kMax) winners = load<N>(static_cast<const uint8_t*>(a.winners) + own);
  const float inverse = inverse_size(a, thread.at[0], thread.at[1], thread.at[2]);
  T* const plane = static_cast<T*>(a.to) + thread.start<N>(a.places.x);
  pool_window(a, thread.at[0], thread.at[1], thread.at[2]).each([&](int d, int h, int w) {
    const int at[3] = {d, h, w},
              index = index_in_window(a, at, thread.at[0], thread.at[1], thread.at[2]);
    float dx[N];
    for (int k = 0; k < N; ++k)
      dx[k] = kMax ? (winners.at[k] == index ? to_float(dy.at[k]) : 0.0f)
                   : to_float(dy.at[k]) * inverse;
    store<N>(plane + place_in_plane(a.places.x, d, h, w), rounded_pack<T>(dx));
  });
}

template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
resize(ResizeArgs a) {
  const PoolThread thread(a.places, a.places.y);
  if (!thread.works) return;
  int from[3];
  for (int i = 0; i < 3; ++i) from[i] = (a.first[i] + thread.at[i]) / a.factor[i];
  const int64_t place =
      thread.start<N>(a.places.x) + place_in_plane(a.places.x, from[0], from[1], from[2]);
  store<N>(static_cast<T*>(a.to) + thread.own<N>(a.places.y),
           load<N>(static_cast<const T*>(a.from) + place));
}

template <class T, int N>
TUTTI_KERNEL(kPoolThreads)
resize_grad(ResizeArgs a) {
  const PoolThread thread(a.places, a.places.x);
  if (!thread.works) return;
  PoolRange shown;  // the positions of y that show this one
  for (int i = 0; i < 3; ++i) {
    const int begin = thread.at[i] * a.factor[i] - a.first[i], end = begin + a.factor[i];
    shown.begin[i] = begin > 0 ? begin : 0;
    shown.end[i] = end < a.places.y.extent[i] ? end : a.places.y.extent[i];
  }
  const T* const plane = static_cast<const T*>(a.from) + thread.start<N>(a.places.y);
  float sum[N] = {};
  shown.each([&](int d, int h, int w) {
    const Pack<T, N> dy = load<N>(plane + place_in_plane(a.places.y, d, h, w));
    for (int k = 0; k < N; ++k) sum[k] += to_float(dy.at[k]);
  });
  store<N>(static_cast<T*>(a.to) + thread.own<N>(a.places.x), rounded_pack<T>(sum));
}

}  // namespace

/// Lists a kernel of a type, a size of packs and what else it is a template of, for all types and
/// sizes that hosts ask for.
#define TUTTI_POOL_FORMS(kernel, name, ...)                               \
  TUTTI_POOL_FORM(kernel, name ".f32.packs4", float, 4, __VA_ARGS__),     \
      TUTTI_POOL_FORM(kernel, name ".f32.packs1", float, 1, __VA_ARGS__), \
      TUTTI_POOL_FORM(kernel, name ".bf16.packs8", bf16, 8, __VA_ARGS__), \
      TUTTI_POOL_FORM(kernel, name ".bf16.packs1", bf16, 1, __VA_ARGS__)
#define TUTTI_POOL_FORM(kernel, name, type, pack, ...) \
  device_function<kernel<type, pack __VA_OPT__(, ) __VA_ARGS__>>(name, kPoolThreads, true)

std::span<const device::DeviceFunction> pools_functions() {
  static const device::DeviceFunction list[] = {
      TUTTI_POOL_FORMS(pool_max, "pool_max"),
      TUTTI_POOL_FORMS(pool_average, "pool_average"),
      TUTTI_POOL_FORMS(pool_max_grad, "pool_max_grad"),
      TUTTI_POOL_FORMS(pool_average_grad, "pool_average_grad"),
      TUTTI_POOL_FORMS(pool_grad_apart, "pool_max_grad_apart", true),
      TUTTI_POOL_FORMS(pool_grad_apart, "pool_average_grad_apart", false),
      TUTTI_POOL_FORMS(resize, "resize"),
      TUTTI_POOL_FORMS(resize_grad, "resize_grad"),
  };
  return list;
}

}  // namespace tutti::backend
