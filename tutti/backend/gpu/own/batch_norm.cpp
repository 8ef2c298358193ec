// Batch normalisation on a device, one pass over memory a kernel.

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tutti/backend/gpu/kernels/batch_norm.h"
#include "tutti/backend/gpu/own/channel_sums.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/device/launch.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/parts.h"

namespace tutti::backend {
namespace {

using device::DeviceFunction;

const float* number_input(const KernelArgs& args, size_t i) {
  return static_cast<const float*>(args.in[i]);
}

NormSecond second_of(const KernelArgs& args, size_t i, std::optional<float> epsilon) {
  return {.values = number_input(args, i),
          .variance = epsilon.has_value(),
          .epsilon = epsilon.value_or(0)};
}

/// Returns the statistics' outputs, with the running averages at inputs `first` and the next.
NormStatisticsOut statistics_out(const KernelArgs& args, size_t first,
                                 const ops::NormStatistics& s) {
  return {.running_mean = static_cast<float*>(args.in[first]),
          .running_var = static_cast<float*>(args.in[first + 1]),
          .mean = static_cast<float*>(args.out[0]),
          .inv_std = static_cast<float*>(args.out[1]),
          .epsilon = s.epsilon,
          .momentum = s.momentum,
          .running = s.running};
}

/// A kernel that goes through activations by channel.
class NormKernel : public Kernel {
 protected:
  NormKernel(const TensorDesc& y, std::string_view function, const device::Device& device)
      : way_(channel_way(y, SumsOver::batch)),
        pass_(&device::function_named(device, fmt::format("{}{}", function, way_.form))) {}
  template <class Args>
  void pass(const KernelArgs& args, const Args& of_pass) const {
    device::launch(*args.stream, *pass_, way_.grid, of_pass);
  }

  ChannelWay way_;

 private:
  const DeviceFunction* pass_;
};

/// A kernel that sums by channel.
class NormSumsKernel : public NormKernel {
 public:
  size_t workspace_bytes() const override { return way_.partial_bytes(2); }
  size_t number_bytes() const override { return way_.counters.bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override { way_.counters.write(to); }

 protected:
  NormSumsKernel(const TensorDesc& y, const std::string& function, std::string_view end,
                 const device::Device& device)
      : NormKernel(y, function, device), end_(&device::function_named(device, end)) {}
  /// Puts the sums' launch and, where the last blocks do not end them, the end's.
  template <class Args>
  void pass_and_end(const KernelArgs& args, Args sums) const {
    sums.end.partials = static_cast<float*>(args.workspace);
    sums.end.chunks = way_.walk.chunks;
    sums.end.channels = way_.walk.channels;
    sums.counters = way_.counters.in(args);
    pass(args, sums);
    if (!sums.counters) device::launch(*args.stream, *end_, way_.ends, sums.end);
  }

 private:
  const DeviceFunction* end_;
};

/// Statistics, or the moments of this rank's part where there are none.
class NormMomentsKernel final : public NormSumsKernel {
 public:
  NormMomentsKernel(const TensorDesc& y, std::optional<ops::NormStatistics> statistics,
                    const device::Device& device)
      : NormSumsKernel(y, "norm_moments", "norm_moments_end", device), statistics_(statistics) {}
  void run(const KernelArgs& args) override {
    NormMomentsArgs sums{.walk = way_.walk, .y = args.in[0], .end = {}, .counters = nullptr};
    sums.end.runs = way_.walk.runs;
    sums.end.per_block = way_.walk.per_block;
    sums.end.of_run = way_.of_run;
    if (statistics_) {
      sums.end.to = statistics_out(args, 1, *statistics_);
    } else {
      sums.end.to.mean = static_cast<float*>(args.out[0]);
      sums.end.to.inv_std = static_cast<float*>(args.out[1]);
    }
    pass_and_end(args, sums);
  }

 private:
  std::optional<ops::NormStatistics> statistics_;
};

class NormMergeKernel final : public Kernel {
 public:
  NormMergeKernel(int64_t channels, const ops::MergeMoments& op, const device::Device& device)
      : channels_(channels), op_(op), merge_(&device::function_named(device, "norm_merge")) {}
  void run(const KernelArgs& args) override {
    const std::vector<int64_t>& counts = op_.group().counts;
    NormMergeArgs merge{};
    for (size_t r = 0; r < counts.size(); ++r) {
      merge.mean[r] = number_input(args, 2 + 2 * r);
      merge.variance[r] = number_input(args, 3 + 2 * r);
      merge.count[r] = counts[r];
    }
    merge.to = statistics_out(args, 0, op_.statistics());
    merge.ranks = static_cast<int32_t>(counts.size());
    merge.channels = static_cast<int32_t>(channels_);
    const auto blocks = static_cast<unsigned>((channels_ + kChannelThreads - 1) / kChannelThreads);
    device::launch(*args.stream, *merge_, {.x = blocks}, merge);
  }

 private:
  int64_t channels_;
  ops::MergeMoments op_;
  const DeviceFunction* merge_;
};

class NormApplyKernel final : public NormKernel {
 public:
  struct Problem {
    bool relu, residual;
    std::optional<float> epsilon;  ///< set where the second statistic is the variance
  };
  NormApplyKernel(const TensorDesc& y, const Problem& p, const device::Device& device)
      : NormKernel(y, "norm_apply", device), p_(p) {}
  void run(const KernelArgs& args) override {
    pass(args, NormApplyArgs{.walk = way_.walk,
                             .y = args.in[0],
                             .residual = p_.residual ? args.in[5] : nullptr,
                             .mean = number_input(args, 1),
                             .gamma = number_input(args, 3),
                             .beta = number_input(args, 4),
                             .second = second_of(args, 2, p_.epsilon),
                             .z = args.out[0],
                             .relu = p_.relu});
  }

 private:
  Problem p_;
};

class NormGradSumsKernel final : public NormSumsKernel {
 public:
  NormGradSumsKernel(const TensorDesc& y, const ops::BatchNormGradReduce& op,
                     const device::Device& device)
      : NormSumsKernel(
            y, fmt::format("norm_grad_sums{}{}", op.relu() ? ".relu" : "", op.two() ? ".two" : ""),
            "norm_grad_sums_end", device),
        relu_(op.relu()), two_(op.two()), epsilon_(op.epsilon()) {}
  void run(const KernelArgs& args) override {
    NormGradSumsArgs sums{.walk = way_.walk,
                          .dz = args.in[0],
                          .y = args.in[1],
                          .z = relu_ ? args.in[4] : nullptr,
                          .dz2 = two_ ? args.in[relu_ ? 5 : 4] : nullptr,
                          .mean = number_input(args, 2),
                          .g = args.out[0],
                          .end = {},
                          .counters = nullptr};
    sums.end.second = second_of(args, 3, epsilon_);
    sums.end.dgamma = static_cast<float*>(args.out[1]);
    sums.end.dbeta = static_cast<float*>(args.out[2]);
    pass_and_end(args, sums);
  }

 private:
  bool relu_, two_;
  std::optional<float> epsilon_;
};

class NormGradApplyKernel final : public NormKernel {
 public:
  NormGradApplyKernel(const TensorDesc& y, const device::Device& device)
      : NormKernel(y, "norm_grad_apply", device),
        inverse_count_(static_cast<float>(1 / static_cast<double>(y.elements() / y.shape[1]))) {}
  void run(const KernelArgs& args) override {
    pass(args, NormGradApplyArgs{.walk = way_.walk,
                                 .g = args.in[0],
                                 .y = args.in[1],
                                 .mean = number_input(args, 2),
                                 .inv_std = number_input(args, 3),
                                 .gamma = number_input(args, 4),
                                 .dgamma = number_input(args, 5),
                                 .dbeta = number_input(args, 6),
                                 .dy = args.out[0],
                                 .inverse_count = inverse_count_});
  }

 private:
  float inverse_count_;
};

class NormGradScaleKernel final : public NormKernel {
 public:
  NormGradScaleKernel(const TensorDesc& y, std::optional<float> epsilon,
                      const device::Device& device)
      : NormKernel(y, "norm_grad_scale", device), epsilon_(epsilon) {}
  void run(const KernelArgs& args) override {
    pass(args, NormGradScaleArgs{.walk = way_.walk,
                                 .g = args.in[0],
                                 .gamma = number_input(args, 2),
                                 .second = second_of(args, 1, epsilon_),
                                 .dy = args.out[0]});
  }

 private:
  std::optional<float> epsilon_;
};

/// Returns why these operands do not fit; empty if they do. Operands like the first are
/// activations, the others are by channel.
std::string refusal_of_norm_operands(const KernelCandidate& c) {
  const TensorDesc& y = c.in[0];
  if (std::string refusal = refusal_of_channels(y); !refusal.empty()) return refusal;
  for (const auto* operands : {&c.in, &c.out})
    for (const TensorDesc& d : *operands)
      if (d.shape.rank() == 1 ? d.dtype != DType::f32 || !d.layout.is_plain() : d != y)
        return fmt::format(
            "{} does not go with {}: activations share type and layout, the rest is "
            "plain f32",
            d.to_string(), y.to_string());
  return {};
}

/// Returns the candidate K(first operand, args..., device).
template <class K, class... Args>
KernelCandidate own_norm(const KernelRequest& r, device::Device& device, const Args&... args) {
  KernelCandidate c = own_candidate(r, "batch_norm");
  c.refusal = refusal_of_norm_operands(c);
  if (c.refusal.empty())
    c.make = [y = c.in[0], &device, args...] { return std::make_unique<K>(y, args..., device); };
  return c;
}

KernelCandidate own_norm_merge(const KernelRequest& r, const ops::MergeMoments& op,
                               device::Device& device) {
  KernelCandidate c = own_candidate(r, "batch_norm");
  if (op.group().counts.size() > kMostNormRanks)
    c.refusal = fmt::format("{} ranks share the statistics, and at most {} can",
                            op.group().counts.size(), kMostNormRanks);
  else
    c.make = [channels = r.out[0].elements(), op, &device] {
      return std::make_unique<NormMergeKernel>(channels, op, device);
    };
  return c;
}

}  // namespace

void register_batch_norm(OwnKernels& table) {
  using Statistics = std::optional<ops::NormStatistics>;
  table.add<ops::BatchNormStats>(
      [](const KernelRequest& r, const ops::BatchNormStats& op, device::Device& device) {
        return own_norm<NormMomentsKernel>(r, device, Statistics(op.statistics()));
      });
  table.add<ops::BatchNormMoments>(
      [](const KernelRequest& r, const ops::BatchNormMoments&, device::Device& device) {
        return own_norm<NormMomentsKernel>(r, device, Statistics());
      });
  table.add<ops::MergeMoments>(own_norm_merge);
  table.add<ops::BatchNormApply>(
      [](const KernelRequest& r, const ops::BatchNormApply& op, device::Device& device) {
        return own_norm<NormApplyKernel>(
            r, device, NormApplyKernel::Problem{op.relu(), op.residual(), std::nullopt});
      });
  table.add<ops::BatchNormInference>(
      [](const KernelRequest& r, const ops::BatchNormInference& op, device::Device& device) {
        return own_norm<NormApplyKernel>(
            r, device, NormApplyKernel::Problem{op.relu(), op.residual(), op.epsilon()});
      });
  table.add<ops::BatchNormGradReduce>(
      [](const KernelRequest& r, const ops::BatchNormGradReduce& op, device::Device& device) {
        return own_norm<NormGradSumsKernel>(r, device, op);
      });
  table.add<ops::BatchNormGradApply>(
      [](const KernelRequest& r, const ops::BatchNormGradApply&, device::Device& device) {
        return own_norm<NormGradApplyKernel>(r, device);
      });
  table.add<ops::BatchNormGradScale>(
      [](const KernelRequest& r, const ops::BatchNormGradScale& op, device::Device& device) {
        return own_norm<NormGradScaleKernel>(r, device, op.epsilon());
      });
}

}  // namespace tutti::backend
