// Losses and their gradients.

#include "tutti/backend/gpu/kernels/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "tutti/backend/gpu/own/block_counters.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/device/launch.h"
#include "tutti/ops/losses.h"

namespace tutti::backend {
namespace {

/// A loss of two operands of one shape, and the numbers that it needs.
struct PairLossProblem {
  PairLoss kind;
  float delta = 0, pos_weight = 0;
  float scale;
  double divisor;  ///< the batch, in samples or elements

  PairLossProblem(const ops::PointwiseLossAttributes& a, const TensorDesc& x)
      : delta(a.delta), pos_weight(a.pos_weight), scale(a.scale),
        divisor(static_cast<double>(x.elements())) {
    switch (a.kind) {
      case ops::PointwiseLossKind::mse: kind = PairLoss::mse; break;
      case ops::PointwiseLossKind::mae: kind = PairLoss::mae; break;
      case ops::PointwiseLossKind::huber: kind = PairLoss::huber; break;
      case ops::PointwiseLossKind::bce_with_logits: kind = PairLoss::bce_with_logits; break;
    }
  }
  /// The divergence of Gaussians.
  PairLossProblem(float factor, const TensorDesc& mean)
      : kind(PairLoss::gaussian_kl), scale(factor), divisor(static_cast<double>(mean.shape[0])) {}
};

class PairLossOnDevice final : public Kernel {
 public:
  PairLossOnDevice(const KernelRequest& r, const PairLossProblem& p, const device::Device& device)
      : function_(&device::function_named(
            device,
            fmt::format("pair_loss.{}.{}", name_of(r.in[0].dtype), name_of(r.in[1].dtype)))),
        blocks_(blocks_for(r.in[0].elements(), kLossRun)) {
    args_.total.scale = static_cast<double>(p.scale);
    args_.total.divisor = p.divisor;
    args_.elements = r.in[0].elements();
    args_.loops = kernel_loops(loops_over<2>({r.in[0], r.in[1]}));
    args_.kind = p.kind;
    args_.delta = p.delta;
    args_.pos_weight = p.pos_weight;
  }
  size_t workspace_bytes() const override { return blocks_ * sizeof(double); }
  size_t number_bytes() const override { return counter_.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override { counter_.write(to); }
  void run(const KernelArgs& args) override {
    PairLossArgs a = args_;
    a.x = args.in[0];
    a.t = args.in[1];
    a.total.parts = static_cast<double*>(args.workspace);
    a.total.counter = counter_.in(args);
    a.total.total = static_cast<float*>(args.out[0]);
    device::launch(*args.stream, *function_, {blocks_}, a);
  }

 private:
  const device::DeviceFunction* function_;
  unsigned blocks_;
  BlockCounters counter_{1};
  PairLossArgs args_{};
};

class PairLossGradOnDevice final : public Kernel {
 public:
  PairLossGradOnDevice(const KernelRequest& r, const PairLossProblem& p,
                       const device::Device& device)
      : function_(&device::function_named(
            device,
            fmt::format("pair_loss_grad.{}.{}", name_of(r.in[0].dtype), name_of(r.in[1].dtype)))) {
    args_.elements = r.in[0].elements();
    args_.loops = kernel_loops(loops_over<4>({r.in[0], r.in[1], r.out[0], r.out.back()}));
    args_.kind = p.kind;
    args_.delta = p.delta;
    args_.pos_weight = p.pos_weight;
    args_.factor = static_cast<float>(static_cast<double>(p.scale) / p.divisor);
  }
  void run(const KernelArgs& args) override {
    PairLossGradArgs a = args_;
    a.x = args.in[0];
    a.t = args.in[1];
    a.dx = args.out[0];
    if (a.kind == PairLoss::gaussian_kl) a.dt = args.out[1];
    device::launch(*args.stream, *function_, {blocks_for(a.elements, function_->threads)}, a);
  }

 private:
  const device::DeviceFunction* function_;
  PairLossGradArgs args_{};
};

bool is_type_of_losses(DType type) { return type == DType::f32 || type == DType::bf16; }

template <class K>
KernelCandidate own_pair_loss(const KernelRequest& r, const PairLossProblem& p,
                              const device::Device& device) {
  KernelCandidate c = own_candidate(r, "losses");
  c.refusal = refusal_of_blocks(c);
  if (!is_type_of_losses(r.in[0].dtype) || !is_type_of_losses(r.in[1].dtype))
    c.refusal = fmt::format("no loss of {} and {}", name_of(r.in[0].dtype), name_of(r.in[1].dtype));
  if (c.refusal.empty()) c.make = [r, p, &device] { return std::make_unique<K>(r, p, device); };
  return c;
}

/// Weights of classes among a kernel's numbers: there may be more of them than a launch has room
/// for.
class ClassWeights {
 public:
  explicit ClassWeights(std::vector<float> weights) : weights_(std::move(weights)) {}
  size_t bytes() const { return weights_.size() * sizeof(float); }
  void write(std::byte* to) const {
    if (!weights_.empty()) std::memcpy(to, weights_.data(), bytes());
  }
  /// Returns them in memory of the device, if this is where write() has written; null if there are
  /// none.
  const float* in(const std::byte* numbers) const {
    return weights_.empty() ? nullptr : reinterpret_cast<const float*>(numbers);
  }
  const std::vector<float>& all() const { return weights_; }

 private:
  std::vector<float> weights_;
};

/// The distances of classes and the rows of a softmax. `dx` has the shape of `x`.
struct SoftmaxShape {
  SoftmaxArgs args{};
  int64_t dx_step;
  int lanes;  ///< threads of a row

  SoftmaxShape(const TensorDesc& x, const TensorDesc& labels, const TensorDesc& dx,
               float smoothing) {
    const Strides of_x = strides_of(x), of_labels = strides_of(labels), of_dx = strides_of(dx);
    std::vector<StridedLoop<3>> rows{{x.shape[0], {of_x[0], of_labels[0], of_dx[0]}}};
    for (size_t d = 2; d < of_x.size(); ++d)
      rows.push_back({x.shape[static_cast<int>(d)], {of_x[d], of_labels[d - 1], of_dx[d]}});
    args.rows = labels.elements();
    args.classes = x.shape[1];
    args.loops = kernel_loops(merged_loops(std::move(rows)));
    args.x_step = of_x[1];
    args.smoothing = smoothing;
    dx_step = of_dx[1];
    // A warp reads neighbours: classes of one row or, where these are few or far apart, of many
    // rows.
    constexpr int64_t kFewClasses = 16;
    lanes = args.x_step == 1 && args.classes > kFewClasses ? 32 : 1;
    args.kept = kLossThreads / lanes * (args.classes | 1) <= kKeptLogits;
    args.together = args.kept && args.x_step == 1 && x.layout == dx.layout;
  }
  unsigned blocks() const { return blocks_for(args.rows, kLossThreads / lanes); }
  const device::DeviceFunction* kernel(std::string_view name, DType type,
                                       const device::Device& device) const {
    return &device::function_named(device, fmt::format("{}.{}.{}", name, name_of(type), lanes));
  }
};

class SoftmaxOnDevice final : public Kernel {
 public:
  SoftmaxOnDevice(const KernelRequest& r, const ops::SoftmaxCrossEntropyAttributes& a,
                  const device::Device& device)
      : shape_(r.in[0], r.in[1], r.in[0], a.label_smoothing), weights_(a.class_weights),
        mean_over_(a.mean_over), scale_(a.scale),
        function_(shape_.kernel("softmax_loss", r.in[0].dtype, device)) {}
  size_t number_bytes() const override { return counter_.bytes() + weights_.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override {
    counter_.write(to);
    weights_.write(to + counter_.bytes());
  }
  size_t workspace_bytes() const override { return 2 * shape_.blocks() * sizeof(double); }

  void run(const KernelArgs& args) override {
    const bool given = mean_over_ == ops::MeanOver::given;
    SoftmaxLossArgs a{.softmax = shape_.args,
                      .parts = static_cast<double*>(args.workspace),
                      .count_labels = mean_over_ == ops::MeanOver::labels,
                      .counter = counter_.in(args),
                      .given = given ? static_cast<const float*>(args.in[2]) : nullptr,
                      .loss = static_cast<float*>(args.out[0]),
                      .divisor = static_cast<float*>(args.out[1]),
                      .scale = static_cast<double>(scale_)};
    a.softmax.x = args.in[0];
    a.softmax.labels = static_cast<const int32_t*>(args.in[1]);
    a.softmax.weights = weights_.in(args.numbers + counter_.bytes());
    device::launch(*args.stream, *function_, {shape_.blocks()}, a);
  }

 private:
  SoftmaxShape shape_;
  ClassWeights weights_;
  ops::MeanOver mean_over_;
  float scale_;
  BlockCounters counter_{1};
  const device::DeviceFunction* function_;
};

class SoftmaxGradOnDevice final : public Kernel {
 public:
  SoftmaxGradOnDevice(const KernelRequest& r, const ops::SoftmaxCrossEntropyAttributes& a,
                      const device::Device& device)
      : shape_(r.in[0], r.in[1], r.out[0], a.label_smoothing), weights_(a.class_weights),
        scale_(a.scale), function_(shape_.kernel("softmax_grad", r.in[0].dtype, device)) {
    const float even = a.label_smoothing / static_cast<float>(shape_.args.classes);
    for (int64_t k = 0; k < shape_.args.classes; ++k)
      smooth_weight_ +=
          even * (a.class_weights.empty() ? 1 : a.class_weights[static_cast<size_t>(k)]);
  }
  size_t number_bytes() const override { return weights_.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override { weights_.write(to); }

  void run(const KernelArgs& args) override {
    SoftmaxGradArgs a{.softmax = shape_.args,
                      .dx = args.out[0],
                      .divisor = static_cast<const float*>(args.in[2]),
                      .dx_step = shape_.dx_step,
                      .scale = scale_,
                      .smooth_weight = smooth_weight_};
    a.softmax.x = args.in[0];
    a.softmax.labels = static_cast<const int32_t*>(args.in[1]);
    a.softmax.weights = weights_.in(args.numbers);
    device::launch(*args.stream, *function_, {shape_.blocks()}, a);
  }

 private:
  SoftmaxShape shape_;
  ClassWeights weights_;
  float scale_, smooth_weight_ = 0;
  const device::DeviceFunction* function_;
};

/// Reads labels in the order of memory, whatever the layout.
class LabelWeightsOnDevice final : public Kernel {
 public:
  LabelWeightsOnDevice(const KernelRequest& r, const ops::LabelWeights& op,
                       const device::Device& device)
      : count_(r.in[0].elements()), weights_(op.weights()),
        function_(&device::function_named(device, "label_weights")),
        blocks_(blocks_for(count_, kLossRun)) {}
  size_t number_bytes() const override { return counter_.bytes() + weights_.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override {
    counter_.write(to);
    weights_.write(to + counter_.bytes());
  }
  size_t workspace_bytes() const override { return blocks_ * sizeof(double); }
  void run(const KernelArgs& args) override {
    const LabelWeightArgs a{.labels = static_cast<const int32_t*>(args.in[0]),
                            .weights = weights_.in(args.numbers + counter_.bytes()),
                            .total = {.parts = static_cast<double*>(args.workspace),
                                      .counter = counter_.in(args),
                                      .total = static_cast<float*>(args.out[0]),
                                      .scale = 1,
                                      .divisor = 1},
                            .count = count_,
                            .classes = std::ssize(weights_.all())};
    device::launch(*args.stream, *function_, {blocks_}, a);
  }

 private:
  int64_t count_;
  ClassWeights weights_;
  const device::DeviceFunction* function_;
  unsigned blocks_;
  BlockCounters counter_{1};
};

KernelCandidate own_label_weights(const KernelRequest& r, const ops::LabelWeights& op,
                                  const device::Device& device) {
  KernelCandidate c = own_candidate(r, "losses");
  c.refusal = refusal_of_blocks(c);
  if (c.refusal.empty())
    c.make = [r, op, &device] { return std::make_unique<LabelWeightsOnDevice>(r, op, device); };
  return c;
}

template <class K, class O>
KernelCandidate own_softmax(const KernelRequest& r, const O& op, const device::Device& device) {
  KernelCandidate c = own_candidate(r, "losses");
  c.refusal = refusal_of_blocks(c);
  if (!is_type_of_losses(r.in[0].dtype))
    c.refusal = fmt::format("no softmax of {}", name_of(r.in[0].dtype));
  if (c.refusal.empty())
    c.make = [r, a = op.loss(), &device] { return std::make_unique<K>(r, a, device); };
  return c;
}

}  // namespace

void register_losses(OwnKernels& table) {
  table.add<ops::PointwiseLoss>(
      [](const KernelRequest& r, const ops::PointwiseLoss& op, const device::Device& device) {
        return own_pair_loss<PairLossOnDevice>(r, {op.loss(), r.in[0]}, device);
      });
  table.add<ops::PointwiseLossGrad>(
      [](const KernelRequest& r, const ops::PointwiseLossGrad& op, const device::Device& device) {
        return own_pair_loss<PairLossGradOnDevice>(r, {op.loss(), r.in[0]}, device);
      });
  table.add<ops::GaussianKL>(
      [](const KernelRequest& r, const ops::GaussianKL& op, const device::Device& device) {
        return own_pair_loss<PairLossOnDevice>(r, {op.scale(), r.in[0]}, device);
      });
  table.add<ops::GaussianKLGrad>(
      [](const KernelRequest& r, const ops::GaussianKLGrad& op, const device::Device& device) {
        return own_pair_loss<PairLossGradOnDevice>(r, {op.scale(), r.in[0]}, device);
      });
  table.add<ops::SoftmaxCrossEntropy>(own_softmax<SoftmaxOnDevice, ops::SoftmaxCrossEntropy>);
  table.add<ops::SoftmaxCrossEntropyGrad>(
      own_softmax<SoftmaxGradOnDevice, ops::SoftmaxCrossEntropyGrad>);
  table.add<ops::LabelWeights>(own_label_weights);
}

}  // namespace tutti::backend
