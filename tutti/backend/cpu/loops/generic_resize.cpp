// Repeats elements by whole factors; the gradient sums them. Lanes are channels; with the plain
// layout, whose channels lie apart, one element at a time.

#include "tutti/backend/cpu/kernel/pooling.h"
#include "tutti/ops/resize.h"

namespace tutti::backend {
namespace {

using simd::Floats;

/// Three spatial dimensions of x [N, C, spatial...] and of y; missing ones are 1.
struct ResizePlaces {
  std::array<int64_t, 3> x{1, 1, 1}, y{1, 1, 1}, factor{1, 1, 1}, first{0, 0, 0};

  ResizePlaces(const ops::ResizeAttributes& a, const Shape& x_shape, const Shape& y_shape) {
    for (int d = 2; d < x_shape.rank(); ++d) {
      const auto to = static_cast<size_t>(5 - x_shape.rank() + d - 2),
                 from = static_cast<size_t>(d - 2);
      x[to] = x_shape[d];
      y[to] = y_shape[d];
      factor[to] = a.factor[from];
      first[to] = a.first[from];
    }
  }
  int64_t source(size_t d, int64_t i) const { return (first[d] + i) / factor[d]; }
  /// Return the positions of y that show position i of x: [begin, end).
  int64_t begin(size_t d, int64_t i) const {
    return std::clamp<int64_t>(i * factor[d] - first[d], 0, y[d]);
  }
  int64_t end(size_t d, int64_t i) const { return begin(d, i + 1); }
};

template <class T>
class ResizeKernel final : public Kernel {
 public:
  ResizeKernel(const KernelRequest& r, const ops::ResizeAttributes& a)
      : view_(channel_view(r.in[0])), p_(a, r.in[0].shape, r.out[0].shape) {}

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, planes = view_.samples * view_.channels / b;
    const T* x = static_cast<const T*>(args.in[0]);
    T* y = static_cast<T*>(args.out[0]);
    for (int64_t p = 0; p < planes; ++p, x += p_.x[0] * p_.x[1] * p_.x[2] * b)
      for (int64_t i = 0; i < p_.y[0]; ++i)
        for (int64_t j = 0; j < p_.y[1]; ++j, y += p_.y[2] * b)
          write_row(x + (p_.source(0, i) * p_.x[1] + p_.source(1, j)) * p_.x[2] * b, y);
  }

 private:
  void write_row(const T* x, T* y) const {
    const int64_t b = view_.block;
    for (int64_t k = 0; k < p_.y[2]; ++k) std::copy_n(x + p_.source(2, k) * b, b, y + k * b);
  }

  ChannelView view_;
  ResizePlaces p_;
};

template <class T>
class ResizeGradKernel final : public Kernel {
 public:
  ResizeGradKernel(const KernelRequest& r, const ops::ResizeAttributes& a)
      : view_(channel_view(r.out[0])), p_(a, r.out[0].shape, r.in[0].shape) {}

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, planes = view_.samples * view_.channels / b;
    const T* dy = static_cast<const T*>(args.in[0]);
    T* dx = static_cast<T*>(args.out[0]);
    for (int64_t p = 0; p < planes; ++p, dy += p_.y[0] * p_.y[1] * p_.y[2] * b)
      for (int64_t i = 0; i < p_.x[0]; ++i)
        for (int64_t j = 0; j < p_.x[1]; ++j)
          for (int64_t k = 0; k < p_.x[2]; ++k, dx += b)
            for_each_channel_vector(b, [&](int64_t l, auto lanes) {
              simd::store(dx + l, sum_at(dy + l, {i, j, k}, lanes), lanes);
            });
  }

 private:
  template <class Lanes>
  Floats sum_at(const T* dy, const std::array<int64_t, 3>& at, Lanes lanes) const {
    Floats sum{};
    for (int64_t i = p_.begin(0, at[0]); i < p_.end(0, at[0]); ++i)
      for (int64_t j = p_.begin(1, at[1]); j < p_.end(1, at[1]); ++j)
        for (int64_t k = p_.begin(2, at[2]); k < p_.end(2, at[2]); ++k)
          sum += simd::load(dy + ((i * p_.y[1] + j) * p_.y[2] + k) * view_.block, lanes);
    return sum;
  }

  ChannelView view_;
  ResizePlaces p_;
};

}  // namespace

void register_resize_kernels(KernelTable& table) {
  table.add<ops::Resize>([](const KernelRequest& r, const ops::Resize& op) {
    return pooling_kernel<ResizeKernel>(r, op.resize());
  });
  table.add<ops::ResizeGrad>([](const KernelRequest& r, const ops::ResizeGrad& op) {
    return pooling_kernel<ResizeGradKernel>(r, op.resize());
  });
}

}  // namespace tutti::backend
