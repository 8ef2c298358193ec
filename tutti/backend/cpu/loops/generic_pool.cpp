// Pooling over windows. Lanes are channels; with plain layout a vector holds one channel.

#include <algorithm>
#include <limits>

#include "tutti/backend/cpu/kernel/pooling.h"
#include "tutti/ops/pool.h"

namespace tutti::backend {
namespace {

using simd::Floats, simd::kLanes, simd::Words;

/// Three spatial dimensions; the first is 1 in a 2-D pooling. Positions count in x or y as [d, h,
/// w].
struct Geometry {
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, low{0, 0, 0}, x{1, 1, 1}, y{1, 1, 1};
  bool count_include_pad;

  Geometry(const ops::PoolAttributes& a, const Shape& x_shape, const Shape& y_shape)
      : count_include_pad(a.count_include_pad) {
    for (int d = 0; d < a.spatial; ++d) {
      const auto to = static_cast<size_t>(3 - a.spatial + d), from = static_cast<size_t>(d);
      kernel[to] = a.kernel[from];
      stride[to] = a.stride[from];
      low[to] = a.pad_low[from];
      x[to] = x_shape[d + 2];
      y[to] = y_shape[d + 2];
    }
  }
  /// Returns whether no element of x is in two windows.
  bool apart() const {
    return stride[0] >= kernel[0] && stride[1] >= kernel[1] && stride[2] >= kernel[2];
  }
  /// Returns whether windows cover x, each element once.
  bool tiles() const {
    bool exact = true;
    for (size_t i = 0; i < 3; ++i)
      exact &= stride[i] == kernel[i] && low[i] == 0 && y[i] * kernel[i] == x[i];
    return exact;
  }
  /// Returns the outermost dimension that is walked. A slab is the part of x at one index of it.
  size_t outer() const { return x[0] > 1 || y[0] > 1 ? 0 : 1; }
  int64_t slab() const { return outer() == 0 ? x[1] * x[2] : x[2]; }
  int64_t x_positions() const { return x[0] * x[1] * x[2]; }
  int64_t y_positions() const { return y[0] * y[1] * y[2]; }
};

/// The part of a window that lies in x.
struct Window {
  std::array<int64_t, 3> first, begin, end;  // first: where the whole window begins
  const Geometry& g;

  Window(const Geometry& geometry, int64_t d, int64_t h, int64_t w) : g(geometry) {
    const std::array<int64_t, 3> at{d, h, w};
    for (size_t i = 0; i < 3; ++i) {
      first[i] = at[i] * g.stride[i] - g.low[i];
      begin[i] = std::max(first[i], int64_t{0});
      end[i] = std::min(first[i] + g.kernel[i], g.x[i]);
    }
  }
  /// Calls tap(position in x, place in the whole window), in order.
  template <class Tap>
  void each(Tap tap) const {
    each_below(g.x[0], g.x[1], tap);
  }
  /// Calls tap(position in a ring of the `slabs` slabs that are summed at a time, place).
  template <class Tap>
  void each_in_ring(int64_t slabs, Tap tap) const {
    if (g.outer() == 0)
      each_below(slabs, g.x[1], tap);
    else
      each_below(1, slabs, tap);
  }
  float inverse() const {
    const int64_t inside = (end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]);
    return 1.f / static_cast<float>(g.count_include_pad ? g.kernel[0] * g.kernel[1] * g.kernel[2]
                                                        : inside);
  }

 private:
  /// Calls tap with positions where indices count modulo these extents, which are x's own or
  /// smaller.
  template <class Tap>
  void each_below(int64_t depth, int64_t height, Tap tap) const {
    for (int64_t d = begin[0]; d < end[0]; ++d)
      for (int64_t h = begin[1]; h < end[1]; ++h) {
        const int64_t row =
            ((d < depth ? d : d % depth) * g.x[1] + (h < height ? h : h % height)) * g.x[2];
        int64_t place = ((d - first[0]) * g.kernel[1] + h - first[1]) * g.kernel[2] - first[2];
        for (int64_t w = begin[2]; w < end[2]; ++w) tap(row + w, static_cast<uint32_t>(place + w));
      }
  }
};

template <class F>
void for_each_window(const Geometry& g, F f) {
  int64_t position = 0;
  for (int64_t d = 0; d < g.y[0]; ++d)
    for (int64_t h = 0; h < g.y[1]; ++h)
      for (int64_t w = 0; w < g.y[2]; ++w) f(Window(g, d, h, w), position++);
}

/// True where a new value replaces the maximum: NaN is largest, the first of equals stays. Lanes
/// are all ones or zeros.
inline auto replaces(Floats value, Floats best) {
  return (value > best) | ((value != value) & (best == best));
}

template <class T>
class PoolKernel final : public Kernel {
 public:
  PoolKernel(const KernelRequest& r, const ops::PoolAttributes& a)
      : g_(a, r.in[0].shape, r.out[0].shape), max_(a.kind == ops::PoolKind::max),
        view_(channel_view(r.in[0])) {}

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, planes = view_.samples * view_.channels / b;
    for (int64_t p = 0; p < planes; ++p) {
      const T* const x = static_cast<const T*>(args.in[0]) + p * g_.x_positions() * b;
      const int64_t at = p * g_.y_positions() * b;
      T* const y = static_cast<T*>(args.out[0]) + at;
      if (max_)
        maxima(x, y, static_cast<uint8_t*>(args.out[1]) + at);
      else
        averages(x, y);
    }
  }

 private:
  void maxima(const T* x, T* y, uint8_t* winners) const {
    const int64_t b = view_.block;
    for_each_window(g_, [&](const Window& window, int64_t position) {
      for_each_channel_vector(b, [&](int64_t l, auto lanes) {
        Floats best = simd::splat(-std::numeric_limits<float>::infinity());
        Words winner{};
        bool none = true;  // -infinity wins if there is nothing else
        window.each([&](int64_t tap, uint32_t place) {
          const Floats v = simd::load(x + tap * b + l, lanes);
          if (none) {
            best = v;
            winner = Words{} + place;
            none = false;
            return;
          }
          const auto better = replaces(v, best);
          best = simd::select(better, v, best);
          winner = simd::select(better, Words{} + place, winner);
        });
        simd::store(y + position * b + l, best, lanes);
        simd::store_bytes(winners + position * b + l, winner, lanes);
      });
    });
  }

  void averages(const T* x, T* y) const {
    const int64_t b = view_.block;
    for_each_window(g_, [&](const Window& window, int64_t position) {
      for_each_channel_vector(b, [&](int64_t l, auto lanes) {
        Floats sum{};
        window.each([&](int64_t tap, uint32_t) { sum += simd::load(x + tap * b + l, lanes); });
        simd::store(y + position * b + l, sum * window.inverse(), lanes);
      });
    });
  }

  Geometry g_;
  bool max_;
  ChannelView view_;
};

/// Handles one vector of channels at a time. Where windows are apart dx is written at once; where
/// they overlap it is summed in f32 in the workspace, which holds the slabs that one row of windows
/// covers.
template <class T>
class PoolGradKernel final : public Kernel {
 public:
  PoolGradKernel(const KernelRequest& r, const ops::PoolAttributes& a)
      : g_(a, r.out[0].shape, r.in[0].shape), max_(a.kind == ops::PoolKind::max),
        view_(channel_view(r.out[0])) {}
  size_t workspace_bytes() const override {
    if (g_.apart()) return 0;
    return static_cast<size_t>(slabs() * g_.slab() * std::min<int64_t>(view_.block, kLanes)) *
           sizeof(float);
  }

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, planes = view_.samples * view_.channels / b;
    for (int64_t p = 0; p < planes; ++p) {
      const T* const dy = static_cast<const T*>(args.in[0]) + p * g_.y_positions() * b;
      const uint8_t* const winners =
          max_ ? static_cast<const uint8_t*>(args.in[1]) + p * g_.y_positions() * b : nullptr;
      T* const dx = static_cast<T*>(args.out[0]) + p * g_.x_positions() * b;
      if (g_.apart())
        windows_apart(dy, winners, dx);
      else
        for_each_channel_vector(b, [&](int64_t l, auto lanes) {
          overlapping(dy + l, winners ? winners + l : nullptr, dx + l,
                      static_cast<float*>(args.workspace), lanes);
        });
    }
  }

 private:
  int64_t slabs() const { return std::min(g_.kernel[g_.outer()], g_.x[g_.outer()]); }

  void windows_apart(const T* dy, const uint8_t* winners, T* dx) const {
    const int64_t b = view_.block;
    if (!g_.tiles()) std::fill_n(dx, g_.x_positions() * b, T(0.f));
    for_each_window(g_, [&](const Window& window, int64_t position) {
      for_each_channel_vector(b, [&](int64_t l, auto lanes) {
        const int64_t at = position * b + l;
        spread(
            window, simd::load(dy + at, lanes), winners ? winners + at : nullptr, lanes,
            [&](auto tap) { window.each(tap); },
            [&](int64_t tap, Floats v) { simd::store(dx + tap * b + l, v, lanes); });
      });
    });
  }

  template <class Lanes>
  void overlapping(const T* dy, const uint8_t* winners, T* dx, float* sums, Lanes lanes) const {
    const int64_t b = view_.block;
    const auto zero = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) simd::store(dx + i * b, Floats{}, lanes);
    };
    const int64_t n = lanes.n, ring = slabs(), slab = g_.slab();
    const size_t outer = g_.outer();
    int64_t first = 0, last = 0;  // the slabs in the ring
    const auto finish = [&](int64_t until) {
      for (; first < until; ++first) {
        if (first >= last) {  // it is in no window
          zero(first * slab, (first + 1) * slab);
          continue;
        }
        const float* const from = sums + first % ring * slab * n;
        T* const to = dx + first * slab * b;
        for (int64_t i = 0; i < slab; ++i)
          simd::store(to + i * b, simd::load(from + i * n, lanes), lanes);
      }
    };
    for_each_window(g_, [&](const Window& window, int64_t position) {
      if (window.begin[outer] > first) finish(window.begin[outer]);
      last = std::max(last, first);
      for (; last < window.end[outer]; ++last)
        std::fill_n(sums + last % ring * slab * n, slab * n, 0.f);
      spread(
          window, simd::load(dy + position * b, lanes), winners ? winners + position * b : nullptr,
          lanes, [&](auto tap) { window.each_in_ring(ring, tap); },
          [&](int64_t at, Floats v) {
            simd::store(sums + at * n, simd::load(sums + at * n, lanes) + v, lanes);
          });
    });
    finish(g_.x[outer]);
  }

  /// Adds the gradient of one window's result to its elements: each(tap) names their places in
  /// order.
  template <class Lanes, class Each, class Put>
  void spread(const Window& window, Floats g, const uint8_t* winners, Lanes lanes, Each each,
              Put put) const {
    if (!max_) {
      const Floats part = g * window.inverse();
      each([&](int64_t at, uint32_t) { put(at, part); });
      return;
    }
    const Words winner = simd::load_bytes(winners, lanes);
    each([&](int64_t at, uint32_t place) {
      put(at, simd::select(winner == Words{} + place, g, Floats{}));
    });
  }

  Geometry g_;
  bool max_;
  ChannelView view_;
};

}  // namespace

void register_pool_kernels(KernelTable& table) {
  table.add<ops::Pool>([](const KernelRequest& r, const ops::Pool& op) {
    return pooling_kernel<PoolKernel>(r, op.pool());
  });
  table.add<ops::PoolGrad>([](const KernelRequest& r, const ops::PoolGrad& op) {
    return pooling_kernel<PoolGradKernel>(r, op.pool());
  });
}

}  // namespace tutti::backend
