// Losses and their gradients. A loss is a sum of doubles: each thread adds up its own elements, a
// block its threads, and the block that comes last the blocks, all in an order that shapes alone
// determine.

#include "tutti/backend/gpu/kernels/losses.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/backend/gpu/kernels/loops_code.h"

namespace tutti::backend {
namespace {

constexpr int kWarpLanes = 32, kWarps = kLossThreads / kWarpLanes;
constexpr unsigned kAllLanes = 0xFFFFFFFF;

/// Returns the sum over the block, on thread 0 alone. The block must meet before the next call.
TUTTI_DEVICE double block_sum(double v) {
  TUTTI_SHARED(double, of_warp, kWarps);
  for (int lanes = kWarpLanes / 2; lanes > 0; lanes /= 2) v += __shfl_xor_sync(kAllLanes, v, lanes);
  if (threadIdx.x % kWarpLanes == 0) of_warp[threadIdx.x / kWarpLanes] = v;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < kWarps; ++i) sum += of_warp[i];
  return sum;
}

/// Returns the sum of all blocks' parts, on thread 0 alone, for a block of threads that comes last.
TUTTI_DEVICE double sum_of_parts(const double* parts) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < gridDim.x; i += kLossThreads) sum += load(parts + i);
  return block_sum(sum);
}

/// Ends a loss, of which thread 0 of each block has a part.
TUTTI_DEVICE void end_loss(const LossTotal& end, double part) {
  if (threadIdx.x == 0) store(end.parts + blockIdx.x, part);
  if (!comes_last(end.counter, gridDim.x)) return;
  const double sum = sum_of_parts(end.parts);
  if (threadIdx.x == 0) store(end.total, static_cast<float>(end.scale * sum / end.divisor));
}

TUTTI_DEVICE float loss_of(PairLoss kind, float delta, float pos_weight, float x, float t) {
  const float d = x - t;
  switch (kind) {
    case PairLoss::mse: return d * d;
    case PairLoss::mae: return fabsf(d);
    case PairLoss::huber:
      return fabsf(d) < delta ? 0.5f * d * d : delta * (fabsf(d) - 0.5f * delta);
    case PairLoss::bce_with_logits:
      return (1 - t) * x +
             (1 + (pos_weight - 1) * t) * (log1pf(expf(-fabsf(x))) + (x < 0 ? -x : 0.0f));
    case PairLoss::gaussian_kl: return 0.5f * (x * x + expf(t) - 1 - t);
  }
  return 0;
}

template <class X, class T>
TUTTI_KERNEL(kLossThreads)
pair_loss(PairLossArgs a) {
  const int64_t begin = blockIdx.x * kLossRun, end = begin + kLossRun;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end && i < a.elements; i += kLossThreads) {
    const LoopPlaces<2> place = loop_places(a.loops, i);
    sum += loss_of(a.kind, a.delta, a.pos_weight,
                   to_float(load(static_cast<const X*>(a.x) + place.in[0])),
                   to_float(load(static_cast<const T*>(a.t) + place.in[1])));
  }
  end_loss(a.total, block_sum(sum));
}

/// Returns the derivative by x.
TUTTI_DEVICE float slope_of(PairLoss kind, float delta, float pos_weight, float x, float t) {
  const float d = x - t;
  switch (kind) {
    case PairLoss::mse: return 2 * d;
    case PairLoss::mae: return d > 0 ? 1.0f : d < 0 ? -1.0f : 0.0f;
    case PairLoss::huber: return d < -delta ? -delta : d > delta ? delta : d;
    case PairLoss::bce_with_logits: return 1 - t - (1 + (pos_weight - 1) * t) / (1 + expf(x));
    case PairLoss::gaussian_kl: return x;
  }
  return 0;
}

template <class X, class T>
TUTTI_KERNEL(kLossThreads)
pair_loss_grad(PairLossGradArgs a) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kLossThreads + threadIdx.x;
  if (i >= a.elements) return;
  const LoopPlaces<4> place = loop_places(a.loops, i);
  const float x = to_float(load(static_cast<const X*>(a.x) + place.in[0]));
  const float t = to_float(load(static_cast<const T*>(a.t) + place.in[1]));
  X dx;
  from_float(a.factor * slope_of(a.kind, a.delta, a.pos_weight, x, t), dx);
  store(static_cast<X*>(a.dx) + place.in[2], dx);
  if (a.kind != PairLoss::gaussian_kl) return;
  T dt;
  from_float(a.factor * 0.5f * (expf(t) - 1), dt);
  store(static_cast<T*>(a.dt) + place.in[3], dt);
}

TUTTI_DEVICE int64_t clamped(int32_t label, int64_t classes) {
  return label < 0 ? 0 : label < classes ? label : classes - 1;
}

TUTTI_KERNEL(kLossThreads) label_weights(LabelWeightArgs a) {
  const int64_t begin = blockIdx.x * kLossRun, end = begin + kLossRun;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end && i < a.count; i += kLossThreads)
    sum += load(a.weights + clamped(load(a.labels + i), a.classes));
  end_loss(a.total, block_sum(sum));
}

/// The row of kLanes threads side by side: one thread, or a warp, whose lanes share the classes.
template <class X, int kLanes>
struct SoftmaxRow {
  static constexpr int kRows = kLossThreads / kLanes;  // a block's rows
  const SoftmaxArgs& a;
  float* kept;  ///< the block's logits, if they are kept
  int64_t number;
  int lane, width;  ///< width: floats of a row of kept logits
  bool works;       ///< there is such a row
  const X* x;
  LoopPlaces<3> place;
  int64_t label;

  TUTTI_DEVICE SoftmaxRow(const SoftmaxArgs& args, float* shared)
      : a(args), kept(shared),
        number(static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kLanes),
        lane(static_cast<int>(threadIdx.x) % kLanes), width(static_cast<int>(args.classes) | 1),
        works(number < args.rows), place{}, label(0) {
    if (works) {
      place = loop_places(a.loops, number);
      label = clamped(load(a.labels + place.in[1]), a.classes);
    }
    x = static_cast<const X*>(a.x) + place.in[0];
    if (a.kept) keep();
  }

  /// Calls f(i, place in `kept`) for this thread's part of the block's elements, of which number i
  /// lies i elements behind its first row. The rows lie behind each other.
  template <class F>
  TUTTI_DEVICE void each_of_block(F f) const {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * kRows, left = a.rows - first;
    const int classes = static_cast<int>(a.classes),
              count = static_cast<int>(left < kRows ? left : kRows) * classes;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kLossThreads)
      f(first * classes + i, i / classes * width + i % classes);
  }
  /// Brings the block's logits into shared memory. All threads call it.
  TUTTI_DEVICE void keep() {
    if (a.together)
      each_of_block(
          [&](int64_t i, int to) { kept[to] = to_float(load(static_cast<const X*>(a.x) + i)); });
    else if (works)
      for (int k = lane; k < a.classes; k += kLanes)
        kept_logit(k) = to_float(load(x + k * a.x_step));
    __syncthreads();
  }
  TUTTI_DEVICE float& kept_logit(int64_t k) const {
    return kept[static_cast<int>(threadIdx.x) / kLanes * width + k];
  }

  // The others are for threads that have a row.
  TUTTI_DEVICE float logit(int64_t k) const {
    return a.kept ? kept_logit(k) : to_float(load(x + k * a.x_step));
  }
  TUTTI_DEVICE float weight(int64_t k) const { return a.weights ? load(a.weights + k) : 1.0f; }
  TUTTI_DEVICE float even() const { return a.smoothing / static_cast<float>(a.classes); }

  TUTTI_DEVICE static float row_sum(float v) {
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) v += __shfl_xor_sync(kAllLanes, v, lanes);
    return v;
  }
  /// Returns the logarithm of the sum of exponentials, on all lanes.
  TUTTI_DEVICE float log_sum() const {
    float top = logit(0);
    for (int64_t k = lane; k < a.classes; k += kLanes) {
      const float v = logit(k);
      if (v > top) top = v;
    }
    for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, top, lanes);
      if (other > top) top = other;
    }
    float sum = 0;
    for (int64_t k = lane; k < a.classes; k += kLanes) sum += expf(logit(k) - top);
    return top + logf(row_sum(sum));
  }
};

template <class X, int kLanes>
TUTTI_KERNEL(kLossThreads)
softmax_loss(SoftmaxLossArgs a) {
  TUTTI_SHARED(float, kept, kKeptLogits);
  const SoftmaxRow<X, kLanes> row(a.softmax, kept);
  double loss = 0, divisor = 0;
  if (row.works) {
    const float log_sum = row.log_sum(), s = a.softmax.smoothing;
    float smooth = 0;
    if (s > 0) {
      for (int64_t k = row.lane; k < a.softmax.classes; k += kLanes)
        smooth += row.even() * row.weight(k) * (log_sum - row.logit(k));
      smooth = row.row_sum(smooth);
    }
    if (row.lane == 0) {
      const float weight = row.weight(row.label);
      loss = (1 - s) * weight * (log_sum - row.logit(row.label)) + smooth;
      divisor = a.count_labels ? 1.0f : weight;
    }
  }
  loss = block_sum(loss);
  __syncthreads();  // the block's memory is free again
  divisor = block_sum(divisor);
  if (threadIdx.x == 0) {
    store(a.parts + blockIdx.x, loss);
    store(a.parts + gridDim.x + blockIdx.x, divisor);
  }
  if (!comes_last(a.counter, gridDim.x)) return;
  loss = sum_of_parts(a.parts);
  __syncthreads();  // the block's memory is free again
  divisor = sum_of_parts(a.parts + gridDim.x);
  if (threadIdx.x != 0) return;
  if (a.given != nullptr) divisor = load(a.given);
  store(a.loss, static_cast<float>(a.scale * loss / divisor));
  store(a.divisor, static_cast<float>(divisor));
}

template <class X, int kLanes>
TUTTI_KERNEL(kLossThreads)
softmax_grad(SoftmaxGradArgs a) {
  TUTTI_SHARED(float, kept, kKeptLogits);
  const SoftmaxRow<X, kLanes> row(a.softmax, kept);
  if (row.works) {
    const float log_sum = row.log_sum(), even = row.even();
    const float own = (1 - a.softmax.smoothing) * row.weight(row.label);
    const float total = own + a.smooth_weight, factor = a.scale / load(a.divisor);
    X* const dx = static_cast<X*>(a.dx) + row.place.in[2];
    for (int64_t k = row.lane; k < a.softmax.classes; k += kLanes) {
      const float target = (k == row.label ? own : 0.0f) + (even > 0 ? even * row.weight(k) : 0.0f),
                  slope = factor * (total * expf(row.logit(k) - log_sum) - target);
      if (a.softmax.together) {
        row.kept_logit(k) = slope;
        continue;
      }
      X value;
      from_float(slope, value);
      store(dx + k * a.dx_step, value);
    }
  }
  if (!a.softmax.together) return;
  __syncthreads();
  row.each_of_block([&](int64_t i, int from) {
    X value;
    from_float(kept[from], value);
    store(static_cast<X*>(a.dx) + i, value);
  });
}

}  // namespace

std::span<const device::DeviceFunction> losses_functions() {
  constexpr unsigned kThreads = kLossThreads;
  static const device::DeviceFunction list[] = {
      device_function<pair_loss<float, float>>("pair_loss.f32.f32", kThreads),
      device_function<pair_loss<float, bf16>>("pair_loss.f32.bf16", kThreads),
      device_function<pair_loss<bf16, float>>("pair_loss.bf16.f32", kThreads),
      device_function<pair_loss<bf16, bf16>>("pair_loss.bf16.bf16", kThreads),
      device_function<pair_loss_grad<float, float>>("pair_loss_grad.f32.f32", kThreads, true),
      device_function<pair_loss_grad<float, bf16>>("pair_loss_grad.f32.bf16", kThreads, true),
      device_function<pair_loss_grad<bf16, float>>("pair_loss_grad.bf16.f32", kThreads, true),
      device_function<pair_loss_grad<bf16, bf16>>("pair_loss_grad.bf16.bf16", kThreads, true),
      device_function<label_weights>("label_weights", kThreads),
      // by type and threads of a row
      device_function<softmax_loss<float, 1>>("softmax_loss.f32.1", kThreads),
      device_function<softmax_loss<float, 32>>("softmax_loss.f32.32", kThreads),
      device_function<softmax_loss<bf16, 1>>("softmax_loss.bf16.1", kThreads),
      device_function<softmax_loss<bf16, 32>>("softmax_loss.bf16.32", kThreads),
      device_function<softmax_grad<float, 1>>("softmax_grad.f32.1", kThreads),
      device_function<softmax_grad<float, 32>>("softmax_grad.f32.32", kThreads),
      device_function<softmax_grad<bf16, 1>>("softmax_grad.bf16.1", kThreads),
      device_function<softmax_grad<bf16, 32>>("softmax_grad.bf16.32", kThreads),
  };
  return list;
}

}  // namespace tutti::backend
