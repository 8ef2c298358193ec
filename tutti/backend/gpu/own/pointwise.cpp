// Add, Mul, Scale, activations, dropout, draws.

#include <fmt/format.h>

#include <array>

#include "tutti/backend/gpu/kernels/pointwise.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"

namespace tutti::backend {
namespace {

static_assert(static_cast<int>(PointwiseRule::mish) - static_cast<int>(PointwiseRule::relu) ==
              static_cast<int>(ops::ActivationKind::mish));
static_assert(std::size(kPointwiseF32) == static_cast<size_t>(PointwiseRule::mish_grad) + 1 &&
              std::size(kPointwiseBf16) == std::size(kPointwiseF32));

PointwiseRule rule_of(PointwiseRule first, ops::ActivationKind kind) {
  return static_cast<PointwiseRule>(static_cast<int>(first) + static_cast<int>(kind));
}

bool is_float(DType type) { return type == DType::f32 || type == DType::bf16; }

/// Returns how many packs of 16 bytes `bytes` begin with, at addresses that may be none of packs.
int64_t packs_of(size_t bytes, std::initializer_list<const void*> operands) {
  for (const void* operand : operands)
    if (reinterpret_cast<uintptr_t>(operand) % 16 != 0) return 0;
  return static_cast<int64_t>(bytes / 16);
}

/// Returns blocks for the packs and the elements behind them.
device::Dim3 grid_of(int64_t count, int64_t packs, size_t element_bytes) {
  const auto pack = static_cast<int64_t>(16 / element_bytes);
  return {blocks_for(packs + count - packs * pack, kPointwiseThreads)};
}

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const device::DeviceFunction& function, const KernelRequest& r, float number)
      : function_(function), bytes_(r.out[0].bytes()), element_bytes_(size_of(r.out[0].dtype)),
        pair_(r.in.size() > 1), number_(number) {}

  void run(const KernelArgs& args) override {
    const void* const b = pair_ ? args.in[1] : nullptr;
    const auto count = static_cast<int64_t>(bytes_ / element_bytes_);
    const int64_t packs = packs_of(bytes_, {args.in[0], b, args.out[0]});
    device::launch(*args.stream, function_, grid_of(count, packs, element_bytes_),
                   PointwiseArgs{args.in[0], b, args.out[0], count, packs, number_});
  }

 private:
  const device::DeviceFunction& function_;
  size_t bytes_, element_bytes_;
  bool pair_;
  float number_;
};

KernelCandidate pointwise_candidate(const KernelRequest& r, device::Device& device,
                                    PointwiseRule rule, float number = 0) {
  KernelCandidate c = own_candidate(r, "pointwise");
  const TensorDesc &a = r.in.front(), &b = r.in.back(), &y = r.out[0];
  c.refusal = refusal_of_blocks(c);
  if (!c.refusal.empty()) return c;
  if (!is_float(y.dtype) || a.dtype != y.dtype || b.dtype != y.dtype)
    c.refusal =
        fmt::format("operands are {}, {} and {}", a.to_string(), b.to_string(), y.to_string());
  else if (const auto loops = loops_over<3>({a, b, y});
           loops.size() > 1 ||
           (loops[0].count > 1 && loops[0].step != std::array<int64_t, 3>{1, 1, 1}))
    c.refusal = fmt::format("operands lie in different orders: {}, {} and {}", a.to_string(),
                            b.to_string(), y.to_string());
  const std::string_view function =
      (y.dtype == DType::f32 ? kPointwiseF32 : kPointwiseBf16)[static_cast<size_t>(rule)];
  c.make = [r, number, &function = device::function_named(device, function)] {
    return std::make_unique<PointwiseKernel>(function, r, number);
  };
  return c;
}

/// Whether it is plain or channels last.
bool is_plain_or_last(const TensorDesc& d) {
  return d.layout.is_plain() || d.layout == Layout::channels_last(d.shape.rank());
}

void write_draw_numbers(const StepInfo& step, std::byte* to) {
  const DrawNumbers numbers{static_cast<uint32_t>(step.seed),
                            static_cast<uint32_t>(step.seed >> 32),
                            static_cast<uint32_t>(step.step), static_cast<uint32_t>(step.replica)};
  std::memcpy(to, &numbers, sizeof numbers);
}

class DropoutKernel final : public Kernel {
 public:
  DropoutKernel(const device::DeviceFunction& function, const KernelRequest& r,
                const ops::Dropout& op)
      : function_(function) {
    const Shape& shape = r.in[0].shape;
    args_.samples = shape[0];
    // A plain sample that is complete is one row.
    const bool one_row = op.all() == 0 && r.in[0].layout.is_plain();
    args_.channels = one_row ? 1 : shape[1];
    args_.positions = shape.elements_from(one_row ? 1 : 2);
    args_.first = op.first();
    args_.all = op.all() > 0 ? op.all() : args_.positions;
    args_.blocks = (args_.positions + 6) / 4;  // a row may begin with the last number of a block
    const bool plain = r.in[0].layout.is_plain();
    args_.channel_step = plain ? args_.positions : 1;
    args_.position_step = plain ? 1 : args_.channels;
    args_.threshold = ops::dropout_threshold(op.probability());
    args_.purpose = static_cast<uint32_t>(Purpose::dropout);
    args_.salt = op.salt();
    args_.keep = 1 / (1 - op.probability());
    pack_bytes_ = 4 * size_of(r.in[0].dtype);
    args_.packs = plain && args_.first % 4 == 0 && args_.all % 4 == 0 && args_.positions % 4 == 0;
  }

  size_t number_bytes() const override { return sizeof(DrawNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    write_draw_numbers(step, to);
  }

  void run(const KernelArgs& args) override {
    DropoutArgs a = args_;
    a.x = args.in[0];
    a.y = args.out[0];
    a.numbers = reinterpret_cast<const DrawNumbers*>(args.numbers);
    for (const void* const operand : {a.x, static_cast<const void*>(a.y)})
      a.packs &= reinterpret_cast<uintptr_t>(operand) % pack_bytes_ == 0;
    device::launch(*args.stream, function_,
                   {blocks_for(a.samples * a.channels * a.blocks, kPointwiseThreads)}, a);
  }

 private:
  const device::DeviceFunction& function_;
  DropoutArgs args_{};
  size_t pack_bytes_;
};

KernelCandidate dropout_candidate(const KernelRequest& r, const ops::Dropout& op,
                                  device::Device& device) {
  KernelCandidate c = own_candidate(r, "dropout");
  const TensorDesc& x = r.in[0];
  if (!is_float(x.dtype) || x.layout != r.out[0].layout || !is_plain_or_last(x))
    c.refusal = fmt::format("{} to {}: it takes f32 or bf16, plain or channels last", x.to_string(),
                            r.out[0].to_string());
  const std::string_view function = x.dtype == DType::f32 ? "dropout.f32" : "dropout.bf16";
  c.make = [r, op, &function = device::function_named(device, function)] {
    return std::make_unique<DropoutKernel>(function, r, op);
  };
  return c;
}

class GaussianSampleKernel final : public Kernel {
 public:
  GaussianSampleKernel(const device::DeviceFunction& function, const TensorDesc& z,
                       const ops::GaussianSample& op)
      : function_(function), pack_bytes_(kDrawn * size_of(z.dtype)) {
    args_.count = z.elements();
    args_.channels = z.layout.is_plain() ? 1 : z.shape[1];
    args_.positions = z.shape.elements_from(1) / args_.channels;
    args_.purpose = static_cast<uint32_t>(Purpose::latent);
    args_.salt = op.salt();
    args_.factor = op.factor();
    args_.packs = true;
  }

  size_t number_bytes() const override { return sizeof(DrawNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    write_draw_numbers(step, to);
  }

  void run(const KernelArgs& args) override {
    GaussianSampleArgs a = args_;
    a.mean = args.in[0];
    a.logvar = args.in[1];
    a.z = args.out[0];
    a.numbers = reinterpret_cast<const DrawNumbers*>(args.numbers);
    for (const void* const operand : {a.mean, a.logvar, static_cast<const void*>(a.z)})
      a.packs &= reinterpret_cast<uintptr_t>(operand) % pack_bytes_ == 0;
    device::launch(*args.stream, function_, {blocks_for(a.count, kDrawn * kPointwiseThreads)}, a);
  }

 private:
  const device::DeviceFunction& function_;
  size_t pack_bytes_;
  GaussianSampleArgs args_{};
};

KernelCandidate gaussian_sample_candidate(const KernelRequest& r, const ops::GaussianSample& op,
                                          device::Device& device) {
  KernelCandidate c = own_candidate(r, "gaussian_sample");
  const TensorDesc &mean = r.in[0], &logvar = r.in[1], &z = r.out[0];
  if (!is_float(z.dtype) || mean != z || logvar != z || !is_plain_or_last(z))
    c.refusal = fmt::format(
        "{} and {} to {}: it takes one type, f32 or bf16, and one layout, "
        "plain or channels last",
        mean.to_string(), logvar.to_string(), z.to_string());
  const std::string_view function =
      z.dtype == DType::f32 ? "gaussian_sample.f32" : "gaussian_sample.bf16";
  c.make = [z, op, &function = device::function_named(device, function)] {
    return std::make_unique<GaussianSampleKernel>(function, z, op);
  };
  return c;
}

}  // namespace

void register_pointwise(OwnKernels& table) {
  table.add<ops::Add>([](const KernelRequest& r, const ops::Add&, device::Device& device) {
    return pointwise_candidate(r, device, PointwiseRule::add);
  });
  table.add<ops::Mul>([](const KernelRequest& r, const ops::Mul&, device::Device& device) {
    return pointwise_candidate(r, device, PointwiseRule::mul);
  });
  table.add<ops::Scale>([](const KernelRequest& r, const ops::Scale& op, device::Device& device) {
    return pointwise_candidate(r, device, PointwiseRule::scale, op.factor());
  });
  table.add<ops::Activation>(
      [](const KernelRequest& r, const ops::Activation& op, device::Device& device) {
        return pointwise_candidate(r, device, rule_of(PointwiseRule::relu, op.activation().kind),
                                   op.activation().slope);
      });
  table.add<ops::ActivationGrad>([](const KernelRequest& r, const ops::ActivationGrad& op,
                                    device::Device& device) {
    return pointwise_candidate(r, device, rule_of(PointwiseRule::relu_grad, op.activation().kind),
                               op.activation().slope);
  });
  table.add<ops::Dropout>(dropout_candidate);
  table.add<ops::GaussianSample>(gaussian_sample_candidate);
}

}  // namespace tutti::backend
