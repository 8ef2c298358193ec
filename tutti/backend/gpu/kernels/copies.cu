// Kernels that move elements from one layout to another, and convert them where the types differ.

#include "tutti/backend/gpu/kernels/copies.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/backend/gpu/kernels/loops_code.h"

namespace tutti::backend {
namespace {

constexpr int kCopyThreads = 256;
constexpr int kTurnRows = kCopyThreads / kTurnTile;  // rows that a block reads at once

TUTTI_DEVICE int64_t copy_thread() {
  return static_cast<int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x;
}

/// Returns the nearest whole number, of two the even one.
TUTTI_DEVICE float nearest(float v) {
  const float down = floorf(v), rest = v - down, half = down * 0.5f;
  const bool odd = floorf(half) != half;
  return rest > 0.5f || (rest == 0.5f && odd) ? down + 1 : down;
}

// Conversions are those of ops/reorder.h: by way of float, and to whole numbers by rounding to the
// nearest and saturating.
TUTTI_DEVICE float float_of(float v) { return v; }
TUTTI_DEVICE float float_of(bf16 v) { return to_float(v); }
TUTTI_DEVICE float float_of(int32_t v) { return static_cast<float>(v); }
TUTTI_DEVICE float float_of(uint8_t v) { return static_cast<float>(v); }
TUTTI_DEVICE void convert(float v, float& to) { to = v; }
TUTTI_DEVICE void convert(float v, bf16& to) { from_float(v, to); }
TUTTI_DEVICE void convert(float v, int32_t& to) {
  const float whole = nearest(v);
  to = whole >= 2147483648.0f   ? INT32_MAX
       : whole > -2147483648.0f ? static_cast<int32_t>(whole)
                                : INT32_MIN;
}
TUTTI_DEVICE void convert(float v, uint8_t& to) {
  const float whole = nearest(v);
  to = static_cast<uint8_t>(whole >= 255 ? 255 : whole > 0 ? static_cast<int32_t>(whole) : 0);
}

/// Moves an element; only those of different types are converted.
template <class T>
TUTTI_DEVICE void move(T from, T& to) {
  to = from;
}
template <class From, class To>
TUTTI_DEVICE void move(From from, To& to) {
  convert(float_of(from), to);
}

template <class From, class To, int N>
TUTTI_DEVICE Pack<To, N> moved(const Pack<From, N>& from) {
  Pack<To, N> to;
  for (int k = 0; k < N; ++k) move(from.at[k], to.at[k]);
  return to;
}

/// N elements are a pack.
template <class From, class To, int N>
TUTTI_KERNEL(kCopyThreads)
copy_box(BoxArgs a) {
  const int64_t i = copy_thread();
  if (i >= a.packs) return;
  const LoopPlaces<2> place = loop_places(a.loops, i);
  store<N>(static_cast<To*>(a.to) + place.in[0] * N,
           moved<From, To, N>(load<N>(static_cast<const From*>(a.from) + place.in[1] * N)));
}

template <class T, int N>
TUTTI_KERNEL(kCopyThreads)
fill_box(FillBoxArgs a) {
  int64_t i = copy_thread();
  if (i >= a.box.packs) return;
  const Loops<2>& loops = a.box.loops;
  int64_t to = 0, from = 0;
  bool inside = true;
  for (int d = kMostLoops - 1; d >= 0; --d) {
    if (d >= loops.depth) continue;
    const int64_t rest = d > 0 ? quotient(i, loops.count[d]) : 0,
                  index = i - rest * loops.count[d].value;
    const int64_t shifted = index - a.first[d];
    const int64_t number =
        a.gap[d].value == 1 || shifted < 0 ? shifted : quotient(shifted, a.gap[d]);
    inside = inside && shifted >= 0 && number * a.gap[d].value == shifted && number < a.inside[d];
    to += index * loops.step[0][d];
    from += number * loops.step[1][d];
    i = rest;
  }
  Pack<T, N> pack;
  if (inside)
    pack = load<N>(static_cast<const T*>(a.box.from) + from * N);
  else
    for (int k = 0; k < N; ++k) pack.at[k] = static_cast<T>(a.fill);
  store<N>(static_cast<T*>(a.box.to) + to * N, pack);
}

/// A block turns one tile: it reads along b and writes along a.
template <class From, class To>
TUTTI_KERNEL(kCopyThreads)
turn(TurnArgs a) {
  TUTTI_SHARED(From, tile, kTurnTile * (kTurnTile + 1));
  const int64_t tiles = quotient(blockIdx.x, a.a_tiles), element = quotient(tiles, a.b_tiles);
  const int64_t a_first = (blockIdx.x - tiles * a.a_tiles.value) * kTurnTile,
                b_first = (tiles - element * a.b_tiles.value) * kTurnTile;
  const LoopPlaces<2> place = loop_places(a.loops, element);
  const int x = static_cast<int>(threadIdx.x) % kTurnTile;
  const int y = static_cast<int>(threadIdx.x) / kTurnTile;
  const int64_t a_left = a.a - a_first, b_left = a.b - b_first;
  if (x < b_left) {
    const From* from =
        static_cast<const From*>(a.from) + place.in[1] + (a_first + y) * a.from_step + b_first + x;
    for (int row = y; row < kTurnTile && row < a_left; row += kTurnRows) {
      tile[row * (kTurnTile + 1) + x] = load(from);
      from += kTurnRows * a.from_step;
    }
  }
  __syncthreads();
  if (x >= a_left) return;
  To* to = static_cast<To*>(a.to) + place.in[0] + (b_first + y) * a.to_step + a_first + x;
  for (int row = y; row < kTurnTile && row < b_left; row += kTurnRows) {
    To value;
    move(tile[x * (kTurnTile + 1) + row], value);
    store(to, value);
    to += kTurnRows * a.to_step;
  }
}

/// One element of samples in parts: its place in the operand that is written, and its indices, the
/// part first.
struct RowElement {
  int64_t place;
  int64_t index[kMostLoops];  ///< 0 beyond the last dimension
};

TUTTI_DEVICE RowElement row_element(int64_t i, int rank, const FastDivisor (&extent)[kMostLoops],
                                    const int64_t (&step)[kMostLoops]) {
  RowElement e{};
  for (int d = kMostLoops - 1; d >= 0; --d) {
    if (d >= rank) continue;
    const int64_t rest = d > 0 ? quotient(i, extent[d]) : 0;
    e.index[d] = i - rest * extent[d].value;
    e.place += e.index[d] * step[d];
    i = rest;
  }
  return e;
}

/// Returns the index in dimension `dim`, which is none of the batch. An index that is a variable
/// would put the element into memory.
TUTTI_DEVICE int64_t row_of(const RowElement& e, int dim) {
  return dim == 1   ? e.index[1]
         : dim == 2 ? e.index[2]
         : dim == 3 ? e.index[3]
         : dim == 4 ? e.index[4]
                    : e.index[5];
}

/// Returns the place of the element of the same dimensions in a part and row of another operand.
TUTTI_DEVICE int64_t place_in(const RowHolder& holder, const RowElement& e, int dim, int64_t part,
                              int64_t row) {
  return part * holder.step[0] + (dim == 1 ? row : e.index[1]) * holder.step[1] +
         (dim == 2 ? row : e.index[2]) * holder.step[2] +
         (dim == 3 ? row : e.index[3]) * holder.step[3] +
         (dim == 4 ? row : e.index[4]) * holder.step[4] +
         (dim == 5 ? row : e.index[5]) * holder.step[5];
}

template <class T>
TUTTI_KERNEL(kCopyThreads)
gather_rows(GatherRowsArgs a) {
  const int64_t i = copy_thread();
  if (i >= a.elements) return;
  const RowElement e = row_element(i, a.rank, a.extent, a.y_step);
  const int64_t sample = quotient(e.index[0], a.windows);
  const int64_t row = a.window[e.index[0] - sample * a.windows.value] + row_of(e, a.dim);
  T value = static_cast<T>(a.fill);
  for (int k = 0; k < a.inputs; ++k) {
    if (row < a.first[k] || row >= a.last[k]) continue;
    const RowHolder& in = a.in[k];
    const int64_t inside = row - a.first[k], slab = quotient(inside, in.height);
    value = load(static_cast<const T*>(in.data) +
                 place_in(in, e, a.dim, sample * in.parts + slab, inside - slab * in.height.value));
  }
  store(static_cast<T*>(a.y) + e.place, value);
}

template <class T>
TUTTI_KERNEL(kCopyThreads)
add_rows(AddRowsArgs a) {
  const int64_t i = copy_thread();
  if (i >= a.elements) return;
  const RowElement e = row_element(i, a.rank, a.extent, a.dx_step);
  const int64_t sample = quotient(e.index[0], a.slabs), slab = e.index[0] - sample * a.slabs.value;
  const int64_t row = a.first_row + slab * a.height + row_of(e, a.dim);
  float sum = 0;
  int64_t window = 0;
  for (int k = 0; k < a.inputs; ++k) {
    const RowHolder& in = a.in[k];
    for (int64_t w = 0; w < in.parts; ++w, ++window) {
      const int64_t inside = row - a.window[window];
      if (inside >= 0 && inside < in.height.value)
        sum += to_float(load(static_cast<const T*>(in.data) +
                             place_in(in, e, a.dim, sample * in.parts + w, inside)));
    }
  }
  T value;
  from_float(sum, value);
  store(static_cast<T*>(a.dx) + e.place, value);
}

template <class From, class To, int N = 1>
device::DeviceFunction copy_function(std::string_view name) {
  return device_function<copy_box<From, To, N>>(name, kCopyThreads, true);
}
template <class T, int N = 1>
device::DeviceFunction fill_function(std::string_view name) {
  return device_function<fill_box<T, N>>(name, kCopyThreads, true);
}
template <class From, class To>
device::DeviceFunction turn_function(std::string_view name) {
  return device_function<turn<From, To>>(name, kCopyThreads);
}

}  // namespace

std::span<const device::DeviceFunction> copies_functions() {
  static const device::DeviceFunction list[] = {
      // Elements that keep their type are moved by size, in bytes.
      copy_function<uint8_t, uint8_t>("copy.1"),
      copy_function<uint16_t, uint16_t>("copy.2"),
      copy_function<uint32_t, uint32_t>("copy.4"),
      copy_function<uint32_t, uint32_t, 4>("copy.16"),
      fill_function<uint8_t>("fill.1"),
      fill_function<uint16_t>("fill.2"),
      fill_function<uint32_t>("fill.4"),
      fill_function<uint32_t, 4>("fill.16"),
      turn_function<uint8_t, uint8_t>("turn.1"),
      turn_function<uint16_t, uint16_t>("turn.2"),
      turn_function<uint32_t, uint32_t>("turn.4"),
      copy_function<float, bf16>("copy.f32.bf16"),
      copy_function<float, int32_t>("copy.f32.i32"),
      copy_function<float, uint8_t>("copy.f32.u8"),
      copy_function<bf16, float>("copy.bf16.f32"),
      copy_function<bf16, int32_t>("copy.bf16.i32"),
      copy_function<bf16, uint8_t>("copy.bf16.u8"),
      copy_function<int32_t, float>("copy.i32.f32"),
      copy_function<int32_t, bf16>("copy.i32.bf16"),
      copy_function<int32_t, uint8_t>("copy.i32.u8"),
      copy_function<uint8_t, float>("copy.u8.f32"),
      copy_function<uint8_t, bf16>("copy.u8.bf16"),
      copy_function<uint8_t, int32_t>("copy.u8.i32"),
      // Conversions that training repeats are made by fours, and turned in tiles.
      copy_function<float, bf16, 4>("copy4.f32.bf16"),
      copy_function<bf16, float, 4>("copy4.bf16.f32"),
      copy_function<uint8_t, float, 4>("copy4.u8.f32"),
      copy_function<uint8_t, bf16, 4>("copy4.u8.bf16"),
      turn_function<float, bf16>("turn.f32.bf16"),
      turn_function<bf16, float>("turn.bf16.f32"),
      turn_function<uint8_t, float>("turn.u8.f32"),
      turn_function<uint8_t, bf16>("turn.u8.bf16"),
      device_function<gather_rows<uint8_t>>("gather_rows.1", kCopyThreads, true),
      device_function<gather_rows<uint16_t>>("gather_rows.2", kCopyThreads, true),
      device_function<gather_rows<uint32_t>>("gather_rows.4", kCopyThreads, true),
      device_function<add_rows<float>>("add_rows.f32", kCopyThreads, true),
      device_function<add_rows<bf16>>("add_rows.bf16", kCopyThreads, true),
  };
  return list;
}

}  // namespace tutti::backend
