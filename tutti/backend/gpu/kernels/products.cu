// Convolutions, their gradients and dense layers as plain loops: a thread makes one element of the
// result. Every sum has an order that depends on shapes alone.

#include "tutti/backend/gpu/kernels/products.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/backend/gpu/kernels/loops_code.h"

namespace tutti::backend {
namespace {

constexpr int kProductRun = 128;  // products that are added up in float; sums of those are double

TUTTI_DEVICE int64_t product_thread() {
  return static_cast<int64_t>(blockIdx.x) * kProductThreads + threadIdx.x;
}

/// Returns the sum of a[i] * b[i] for i < count.
template <class A, class B>
TUTTI_DEVICE double dot(const A* a, int64_t a_step, const B* b, int64_t b_step, int count) {
  double total = 0;
  while (count > 0) {
    const int run = count < kProductRun ? count : kProductRun;
    float sum = 0;
    for (int i = 0; i < run; ++i, a += a_step, b += b_step)
      sum += to_float(load(a)) * to_float(load(b));
    total += sum;
    count -= run;
  }
  return total;
}

/// One position of an activation.
struct Position {
  int sample, channel, at[3];
};

/// Returns element number `i` in row-major order.
TUTTI_DEVICE Position position_of(int64_t i, const FastDivisor& positions, int channels,
                                  const int32_t (&extent)[3]) {
  Position p;
  const int64_t plane = quotient(i, positions);
  const auto planes = static_cast<unsigned>(plane);
  p.sample = static_cast<int>(planes / static_cast<unsigned>(channels));
  p.channel = static_cast<int>(planes) - p.sample * channels;
  int rest = static_cast<int>(i - plane * positions.value);
  p.at[2] = rest % extent[2];
  rest /= extent[2];
  p.at[1] = rest % extent[1];
  p.at[0] = rest / extent[1];
  return p;
}

TUTTI_DEVICE int64_t place_of(const int64_t (&step)[5], int sample, int channel, int d, int h,
                              int w) {
  return sample * step[0] + channel * step[1] + d * step[2] + h * step[3] + w * step[4];
}

TUTTI_DEVICE float ended(ProductEnd end, float slope, float v) {
  switch (end) {
    case ProductEnd::none: return v;
    case ProductEnd::relu: return v < 0 ? 0.0f : v;
    case ProductEnd::leaky_relu: return v > 0 ? v : slope * v;
    case ProductEnd::sigmoid: return 1 / (1 + expf(-v));
    case ProductEnd::tanh: return tanhf(v);
  }
  return v;
}

/// Returns the index in x that element `tap` of the window meets at index `y`; negative where it
/// meets padding.
TUTTI_DEVICE int index_in_x(const ProductArgs& a, int dim, int y, int tap) {
  const int x = y * a.stride[dim] - a.pad[dim] + tap * a.dilation[dim];
  return x < a.x_extent[dim] ? x : -1;
}

/// Returns the index in y at which element `tap` of the window meets index `x`; negative where
/// there is none.
TUTTI_DEVICE int index_in_y(const ProductArgs& a, int dim, int x, int tap) {
  const int from = x + a.pad[dim] - tap * a.dilation[dim], y = from / a.stride[dim];
  return from >= 0 && y * a.stride[dim] == from && y < a.y_extent[dim] ? y : -1;
}

/// Writes y.
template <class X, class Y>
TUTTI_KERNEL(kProductThreads)
product(ProductArgs a) {
  const int64_t i = product_thread();
  if (i >= a.elements) return;
  const Position p = position_of(i, a.positions, a.groups * a.outputs, a.y_extent);
  const int first = p.channel / a.outputs * a.inputs;
  const int taps = a.window[0] * a.window[1] * a.window[2];
  const X* const x = static_cast<const X*>(a.x) + p.sample * a.x_step[0] + first * a.x_step[1];
  const float* w = a.w + static_cast<int64_t>(p.channel) * a.inputs * taps;
  double total = a.bias ? load(a.bias + p.channel) : 0.0f;
  for (int kd = 0; kd < a.window[0]; ++kd) {
    const int d = index_in_x(a, 0, p.at[0], kd);
    for (int kh = 0; kh < a.window[1]; ++kh) {
      const int h = index_in_x(a, 1, p.at[1], kh);
      for (int kw = 0; kw < a.window[2]; ++kw, ++w) {
        const int v = index_in_x(a, 2, p.at[2], kw);
        if (d < 0 || h < 0 || v < 0) continue;
        total += dot(x + place_of(a.x_step, 0, 0, d, h, v), a.x_step[1], w, taps, a.inputs);
      }
    }
  }
  Y result;
  from_float(ended(a.end, a.slope, static_cast<float>(total)), result);
  store(static_cast<Y*>(a.y) + place_of(a.y_step, p.sample, p.channel, p.at[0], p.at[1], p.at[2]),
        result);
}

/// Writes x.
template <class X, class Y>
TUTTI_KERNEL(kProductThreads)
product_data(ProductArgs a) {
  const int64_t i = product_thread();
  if (i >= a.elements) return;
  const Position p = position_of(i, a.positions, a.groups * a.inputs, a.x_extent);
  const int group = p.channel / a.inputs, first = group * a.outputs;
  const int taps = a.window[0] * a.window[1] * a.window[2];
  const Y* const y = static_cast<const Y*>(a.y) + p.sample * a.y_step[0] + first * a.y_step[1];
  const float* w =
      a.w + (static_cast<int64_t>(first) * a.inputs + p.channel - group * a.inputs) * taps;
  double total = a.bias ? load(a.bias + p.channel) : 0.0f;
  for (int kd = 0; kd < a.window[0]; ++kd) {
    const int d = index_in_y(a, 0, p.at[0], kd);
    for (int kh = 0; kh < a.window[1]; ++kh) {
      const int h = index_in_y(a, 1, p.at[1], kh);
      for (int kw = 0; kw < a.window[2]; ++kw, ++w) {
        const int v = index_in_y(a, 2, p.at[2], kw);
        if (d < 0 || h < 0 || v < 0) continue;
        total += dot(y + place_of(a.y_step, 0, 0, d, h, v), a.y_step[1], w,
                     static_cast<int64_t>(a.inputs) * taps, a.outputs);
      }
    }
  }
  X result;
  from_float(static_cast<float>(total), result);
  store(static_cast<X*>(a.x) + place_of(a.x_step, p.sample, p.channel, p.at[0], p.at[1], p.at[2]),
        result);
}

/// An element of w.
struct Tap {
  int output, input, at[3];  ///< input within its group
  int place;                 ///< in w
};

/// Returns element number `i`, where neighbours differ in the input: x is often read along
/// channels.
TUTTI_DEVICE Tap tap_of(const ProductArgs& a, int i) {
  const int taps = a.window[0] * a.window[1] * a.window[2];
  Tap t;
  t.input = i % a.inputs;
  i /= a.inputs;
  t.output = i / taps;
  i %= taps;
  t.place = (t.output * a.inputs + t.input) * taps + i;
  t.at[2] = i % a.window[2];
  i /= a.window[2];
  t.at[1] = i % a.window[1];
  t.at[0] = i / a.window[1];
  return t;
}

/// Returns the sum of one element of w over rows [row, last).
template <class X, class Y>
TUTTI_DEVICE double sum_over_rows(const ProductArgs& a, const Tap& t, int row, int last) {
  const int shift = t.at[2] * a.dilation[2] - a.pad[2], stride = a.stride[2];  // x of y's first
  const int begin = shift < 0 ? (stride - 1 - shift) / stride : 0;
  const int room = a.x_extent[2] - shift, most = room > 0 ? (room + stride - 1) / stride : 0;
  const int end = most < a.y_extent[2] ? most : a.y_extent[2];
  if (begin >= end) return 0;
  const int channel = t.output / a.outputs * a.inputs + t.input;
  const X* const x =
      static_cast<const X*>(a.x) + place_of(a.x_step, 0, channel, 0, 0, begin * stride + shift);
  const Y* const y = static_cast<const Y*>(a.y) + place_of(a.y_step, 0, t.output, 0, 0, begin);
  int oh = row % a.y_extent[1], od = row / a.y_extent[1] % a.y_extent[0];
  int sample = row / a.y_extent[1] / a.y_extent[0];
  double total = 0;
  for (; row < last; ++row) {
    const int d = index_in_x(a, 0, od, t.at[0]), h = index_in_x(a, 1, oh, t.at[1]);
    if (d >= 0 && h >= 0)
      total += dot(x + place_of(a.x_step, sample, 0, d, h, 0), stride * a.x_step[4],
                   y + place_of(a.y_step, sample, 0, od, oh, 0), a.y_step[4], end - begin);
    if (++oh < a.y_extent[1]) continue;
    oh = 0;
    if (++od < a.y_extent[0]) continue;
    od = 0;
    ++sample;
  }
  return total;
}

/// The part of a thread in the sums for w.
struct WeightThread {
  int group, blocks;   ///< which elements the block has, and how many blocks have them
  int element, slice;  ///< the element, in the order of tap_of()
  bool works, ends;    ///< there is such a slice; it adds up the element's slices in the last block

  TUTTI_DEVICE explicit WeightThread(const ProductArgs& a) {
    const int thread = static_cast<int>(threadIdx.x), together = kProductThreads / a.span;
    const int groups = (a.weights + a.span - 1) / a.span, block = static_cast<int>(blockIdx.x);
    group = block % groups;
    blocks = (a.slices + together - 1) / together;
    element = group * a.span + thread % a.span;
    slice = block / groups * together + thread / a.span;
    const bool there = thread < together * a.span && element < a.weights;
    works = there && slice < a.slices;
    ends = there && thread < a.span;
  }
};

/// Writes w.
template <class X, class Y>
TUTTI_KERNEL(kProductThreads)
product_weights(ProductArgs a) {
  const WeightThread thread(a);
  const Tap t = tap_of(a, thread.element);
  if (thread.works) {
    const int first = thread.slice * a.rows_of_slice, left = a.rows - first;
    const double sum =
        sum_over_rows<X, Y>(a, t, first, first + (left < a.rows_of_slice ? left : a.rows_of_slice));
    if (a.slices == 1)
      store(a.w + t.place, static_cast<float>(sum));
    else
      store(a.parts + static_cast<int64_t>(thread.slice) * a.weights + t.place, sum);
  }
  if (a.slices == 1 ||
      !comes_last(a.counters + thread.group, static_cast<unsigned>(thread.blocks)) || !thread.ends)
    return;
  double total = 0;
  for (int s = 0; s < a.slices; ++s)
    total += load(a.parts + static_cast<int64_t>(s) * a.weights + t.place);
  store(a.w + t.place, static_cast<float>(total));
}

/// Ends elements [i * kCount, (i + 1) * kCount) of y, which are channels of one row.
template <class Y, int kCount>
TUTTI_DEVICE void end_elements(const ProductEndArgs& a, int64_t i) {
  Y* const y = static_cast<Y*>(a.y) + i * kCount;
  const int64_t row = quotient(i * kCount, a.channels);
  const int64_t channel = i * kCount - row * a.channels.value;
  Pack<Y, kCount> v = load<kCount>(y);
  for (int k = 0; k < kCount; ++k) {
    const float bias = a.bias ? load(a.bias + channel + k) : 0.0f;
    from_float(ended(a.end, a.slope, to_float(v.at[k]) + bias), v.at[k]);
  }
  store<kCount>(y, v);
}

template <class Y>
TUTTI_KERNEL(kProductThreads)
product_end(ProductEndArgs a) {
  const int64_t i = product_thread();
  if (i >= a.threads) return;
  if (a.packs)
    end_elements<Y, 16 / sizeof(Y)>(a, i);
  else
    end_elements<Y, 1>(a, i);
}

}  // namespace

std::span<const device::DeviceFunction> products_functions() {
  constexpr unsigned kThreads = kProductThreads;
  static const device::DeviceFunction list[] = {
      device_function<product<float, float>>("product.f32.f32", kThreads, true),
      device_function<product<float, bf16>>("product.f32.bf16", kThreads, true),
      device_function<product<bf16, float>>("product.bf16.f32", kThreads, true),
      device_function<product<bf16, bf16>>("product.bf16.bf16", kThreads, true),
      device_function<product_data<float, float>>("product_data.f32.f32", kThreads, true),
      device_function<product_data<float, bf16>>("product_data.f32.bf16", kThreads, true),
      device_function<product_data<bf16, float>>("product_data.bf16.f32", kThreads, true),
      device_function<product_data<bf16, bf16>>("product_data.bf16.bf16", kThreads, true),
      device_function<product_weights<float, float>>("product_weights.f32.f32", kThreads),
      device_function<product_weights<float, bf16>>("product_weights.f32.bf16", kThreads),
      device_function<product_weights<bf16, float>>("product_weights.bf16.f32", kThreads),
      device_function<product_weights<bf16, bf16>>("product_weights.bf16.bf16", kThreads),
      device_function<product_end<float>>("product_end.f32", kThreads, true),
      device_function<product_end<bf16>>("product_end.bf16", kThreads, true),
  };
  return list;
}

}  // namespace tutti::backend
