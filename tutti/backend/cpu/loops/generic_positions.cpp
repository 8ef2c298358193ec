// Sums and averages over all positions, and their gradients. Lanes are channels; with plain layout
// they are positions.

#include <algorithm>

#include "tutti/backend/cpu/kernel/pooling.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/pool.h"

namespace tutti::backend {
namespace {

using simd::Floats;

/// The divisor of a sum over all positions, or of its gradient.
enum class Divisor { none, positions };

float inverse_of(Divisor divisor, int64_t positions) {
  return divisor == Divisor::none ? 1.f : 1.f / static_cast<float>(positions);
}

/// GlobalAveragePool and SpatialSum.
template <class T>
class OverPositionsKernel final : public Kernel {
 public:
  OverPositionsKernel(const KernelRequest& r, Divisor divisor)
      : view_(channel_view(r.in[0])), inverse_(inverse_of(divisor, view_.positions)) {}

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, positions = view_.positions,
                  planes = view_.samples * view_.channels / b;
    for (int64_t p = 0; p < planes; ++p) {
      const T* const x = static_cast<const T*>(args.in[0]) + p * positions * b;
      T* const y = static_cast<T*>(args.out[0]) + p * b;
      if (b == 1) {  // lanes are positions
        Floats sum{};
        for_each_channel_vector(positions,
                                [&](int64_t i, auto lanes) { sum += simd::load(x + i, lanes); });
        *y = static_cast<T>(simd::sum(sum) * inverse_);
        continue;
      }
      for_each_channel_vector(b, [&](int64_t l, auto lanes) {
        Floats sum{};
        for (int64_t i = 0; i < positions; ++i) sum += simd::load(x + i * b + l, lanes);
        simd::store(y + l, sum * inverse_, lanes);
      });
    }
  }

 private:
  ChannelView view_;
  float inverse_;
};

/// The gradients of both: GlobalAveragePoolGrad and Broadcast.
template <class T>
class ToPositionsKernel final : public Kernel {
 public:
  ToPositionsKernel(const KernelRequest& r, Divisor divisor)
      : view_(channel_view(r.out[0])), inverse_(inverse_of(divisor, view_.positions)) {}

  void run(const KernelArgs& args) override {
    const int64_t b = view_.block, positions = view_.positions,
                  planes = view_.samples * view_.channels / b;
    for (int64_t p = 0; p < planes; ++p) {
      const T* const dy = static_cast<const T*>(args.in[0]) + p * b;
      T* const dx = static_cast<T*>(args.out[0]) + p * positions * b;
      if (b == 1) {
        std::fill_n(dx, positions, static_cast<T>(static_cast<float>(*dy) * inverse_));
        continue;
      }
      for_each_channel_vector(b, [&](int64_t l, auto lanes) {
        const Floats g = simd::load(dy + l, lanes) * inverse_;
        for (int64_t i = 0; i < positions; ++i) simd::store(dx + i * b + l, g, lanes);
      });
    }
  }

 private:
  ChannelView view_;
  float inverse_;
};

}  // namespace

std::string refusal_of_pooling(const KernelRequest& r) {
  const TensorDesc* first = nullptr;
  for (const std::vector<TensorDesc>* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side) {
      if (d.dtype != r.in[0].dtype && d.dtype != DType::u8)  // winners
        return fmt::format("operands of types {} and {}", name_of(d.dtype), name_of(r.in[0].dtype));
      if (!is_dense(d) || d.layout.channel_block(d.shape) == 0)
        return fmt::format("no pooling of {}", d.to_string());
      if (d.shape.rank() < 3) continue;
      if (first && !(first->layout == d.layout))
        return fmt::format("layouts {} and {} differ", first->to_string(), d.to_string());
      first = &d;
    }
  return {};
}

void register_position_kernels(KernelTable& table) {
  const auto add = [&]<class Over, class To>(Divisor divisor) {
    table.add<Over>(
        [=](const KernelRequest& r) { return pooling_kernel<OverPositionsKernel>(r, divisor); });
    table.add<To>(
        [=](const KernelRequest& r) { return pooling_kernel<ToPositionsKernel>(r, divisor); });
  };
  add.operator()<ops::GlobalAveragePool, ops::GlobalAveragePoolGrad>(Divisor::positions);
  add.operator()<ops::SpatialSum, ops::Broadcast>(Divisor::none);
}

}  // namespace tutti::backend
