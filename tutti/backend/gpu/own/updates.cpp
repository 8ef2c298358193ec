// SgdUpdate, AdamUpdate, RmspropUpdate, WeightAverage, LarsUpdate, and the sums of squares that
// rates and clipping need. Elementwise work is the same in any layout, padding included.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "tutti/backend/gpu/kernels/updates.h"
#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/device/launch.h"
#include "tutti/graph/graph.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/update.h"

namespace tutti::backend {
namespace {

static_assert(kUpdateBlock == kSumBlock);

/// The parameters of an update, in the order of its inputs.
class Parameters {
 public:
  Parameters(const KernelRequest& r, const ops::Update& op)
      : leading_(static_cast<size_t>(op.leading())), arity_(static_cast<size_t>(op.arity())) {
    for (size_t i = leading_; i < r.in.size(); i += arity_)
      elements_.push_back(r.in[i].layout.storage_elements(r.in[i].shape));
  }

  size_t count() const { return elements_.size(); }
  int64_t elements(size_t p) const { return elements_[p]; }
  /// Returns operand `i` of parameter p: w, g, or a state.
  float* operand(const KernelArgs& args, size_t p, size_t i) const {
    return i < arity_ ? static_cast<float*>(args.in[leading_ + p * arity_ + i]) : nullptr;
  }
  /// Returns which elements of parameter p the call's window leaves: [first, last).
  std::pair<int64_t, int64_t> inside(const KernelArgs& args, size_t p) const {
    return args.window.inside(operand(args, p, 0), elements_[p]);
  }

 private:
  size_t leading_, arity_;
  std::vector<int64_t> elements_;
};

const float* scalar(const KernelArgs& args, size_t i) {
  return static_cast<const float*>(args.in[i]);
}

/// An update by a rule, of kMostStretches parameters a launch.
template <class Rule>
class UpdateKernel : public Kernel {
 public:
  UpdateKernel(const device::DeviceFunction& function, const KernelRequest& r,
               const ops::Update& op, const Rule& rule)
      : parameters_(r, op), function_(function), rule_(rule) {}
  void run(const KernelArgs& args) override { put(args, rule_); }

 protected:
  void put(const KernelArgs& args, const Rule& rule) const {
    UpdateArgs<Rule> a{scalar(args, 0), scalar(args, 1), rule, {}};
    UpdateStretches& list = a.stretches;
    uint32_t blocks = 0;
    const auto launch = [&] {
      if (blocks > 0) device::launch(*args.stream, function_, {blocks}, a);
      list.count = blocks = 0;
    };
    for (size_t p = 0; p < parameters_.count(); ++p) {
      const auto [first, last] = parameters_.inside(args, p);
      if (first == last) continue;
      const auto at = [&, begin = first](size_t i) {
        float* const operand = parameters_.operand(args, p, i);
        return operand ? operand + begin : nullptr;
      };
      list.at[list.count++] = {
          at(0), at(1), at(2), at(3), last - first, blocks, static_cast<uint32_t>(p)};
      blocks += static_cast<uint32_t>(sum_blocks(last - first));
      if (list.count == kMostStretches) launch();
    }
    launch();
  }

  Parameters parameters_;
  const device::DeviceFunction& function_;
  Rule rule_;
};

class AdamKernel final : public UpdateKernel<AdamRule> {
 public:
  AdamKernel(const device::DeviceFunction& function, const KernelRequest& r,
             const ops::AdamUpdate& op, const AdamRule& rule)
      : UpdateKernel(function, r, op, rule), beta1_(op.adam().beta1), beta2_(op.adam().beta2) {}
  size_t number_bytes() const override { return sizeof(AdamNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    const auto t = static_cast<double>(step.step + 1);
    const AdamNumbers numbers{1 - std::pow(beta1_, t),
                              static_cast<float>(1 / std::sqrt(1 - std::pow(beta2_, t)))};
    std::memcpy(to, &numbers, sizeof numbers);
  }
  void run(const KernelArgs& args) override {
    AdamRule rule = rule_;
    rule.numbers = reinterpret_cast<const AdamNumbers*>(args.numbers);
    put(args, rule);
  }

 private:
  double beta1_, beta2_;
};

/// Reads the weights that the preceding update has written.
class AverageKernel final : public UpdateKernel<AverageRule> {
 public:
  AverageKernel(const device::DeviceFunction& function, const KernelRequest& r,
                const ops::WeightAverage& op, const AverageRule& rule)
      : UpdateKernel(function, r, op, rule), average_(op.average()) {}
  size_t number_bytes() const override { return sizeof(AverageNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    const AverageNumbers numbers{
        step.step < average_.from ? 1.0f : static_cast<float>(1 - average_.decay)};
    std::memcpy(to, &numbers, sizeof numbers);
  }
  void run(const KernelArgs& args) override {
    put(args, {reinterpret_cast<const AverageNumbers*>(args.numbers)});
  }

 private:
  ops::WeightAverageAttributes average_;
};

/// Adds up blocks' sums by parameter, in memory of `work` and `totals`.
struct Trees {
  const device::DeviceFunction& function;
  size_t columns;
  double *work, *totals;  ///< [blocks of all, columns], [parameters, columns]

  struct Sums {
    const float* at;
    int64_t count;
  };
  /// of(p): the Sums of parameter p.
  template <class F>
  void put(device::Stream& stream, size_t parameters, F of) const {
    TreesArgs a{work, totals, static_cast<uint32_t>(columns), 0, {}};
    int64_t before = 0;
    for (size_t p = 0; p < parameters; ++p) {
      const auto place = static_cast<uint32_t>(p) - a.first_parameter;
      const Sums sums = of(p);
      a.at[place] = {sums.at, sums.count, before};
      before += sums.count;
      if (place + 1 < kMostTrees && p + 1 < parameters) continue;
      device::launch(stream, function, {place + 1}, a);
      a.first_parameter = static_cast<uint32_t>(p) + 1;
    }
  }
};

class LarsKernel final : public UpdateKernel<LarsRule> {
 public:
  LarsKernel(const device::DeviceFunction& function, const KernelRequest& r,
             const ops::LarsUpdate& op, const LarsRule& rule, const device::DeviceFunction& trees)
      : UpdateKernel(function, r, op, rule), trees_(trees) {
    for (size_t p = 0; p < parameters_.count(); ++p) blocks_ += sum_blocks(parameters_.elements(p));
  }
  size_t workspace_bytes() const override {
    return (static_cast<size_t>(blocks_) + parameters_.count()) * 2 * sizeof(double);
  }
  void run(const KernelArgs& args) override {
    auto* const work = static_cast<double*>(args.workspace);
    const Trees trees{trees_, 2, work, work + 2 * blocks_};
    const float* sums = scalar(args, ops::Update::kScalars);
    trees.put(*args.stream, parameters_.count(), [&](size_t p) {
      const int64_t count = sum_blocks(parameters_.elements(p));
      return Trees::Sums{std::exchange(sums, sums + 2 * count), count};
    });
    LarsRule rule = rule_;
    rule.squares = trees.totals;
    put(args, rule);
  }

 private:
  const device::DeviceFunction& trees_;
  int64_t blocks_ = 0;
};

/// Sums of squares of the operands `first` and, for two columns, the one behind it.
class SquaresKernel final : public Kernel {
 public:
  SquaresKernel(const device::DeviceFunction& function, const KernelRequest& r,
                const ops::Update& op, size_t first, size_t columns)
      : parameters_(r, op), function_(function), bytes_(r.out[0].bytes()), first_(first),
        columns_(columns) {}

  void run(const KernelArgs& args) override {
    auto* sums = static_cast<float*>(args.out[0]);
    if (args.window.end) args.stream->fill(sums, std::byte{0}, bytes_);
    SquaresArgs a{0, 0, static_cast<uint32_t>(columns_), {}};
    const auto launch = [&] {
      constexpr int64_t kTogether = kUpdateThreads / kSquareLanes;
      if (a.blocks > 0)
        device::launch(*args.stream, function_, {blocks_for(a.blocks, kTogether)}, a);
      a.blocks = a.count = 0;
    };
    for (size_t p = 0; p < parameters_.count(); ++p) {
      const auto [first, last] = parameters_.inside(args, p);
      float* const own = sums + static_cast<size_t>(first / kSumBlock) * columns_;
      sums += static_cast<size_t>(sum_blocks(parameters_.elements(p))) * columns_;
      if (first == last) continue;
      a.at[a.count++] = {
          {parameters_.operand(args, p, first_) + first,
           columns_ > 1 ? parameters_.operand(args, p, first_ + 1) + first : nullptr},
          own,
          last - first,
          a.blocks};
      a.blocks += sum_blocks(last - first);
      if (a.count == kMostStretches) launch();
    }
    launch();
  }

 private:
  Parameters parameters_;
  const device::DeviceFunction& function_;
  size_t bytes_, first_, columns_;
};

class ClipKernel final : public Kernel {
 public:
  ClipKernel(const KernelRequest& r, const ops::ClipScale& op, const device::Device& device)
      : blocks_(op.blocks(r.in)), limit_(op.limit()), trees_(function_named(device, "trees")),
        clip_(function_named(device, "clip")) {
    for (const ops::ClipScale::Blocks& own : blocks_) all_ += own.count;
  }
  size_t workspace_bytes() const override {
    return (static_cast<size_t>(all_) + blocks_.size()) * sizeof(double);
  }
  void run(const KernelArgs& args) override {
    auto* const work = static_cast<double*>(args.workspace);
    const Trees trees{trees_, 1, work, work + all_};
    trees.put(*args.stream, blocks_.size(), [&](size_t p) {
      const ops::ClipScale::Blocks& own = blocks_[p];
      return Trees::Sums{scalar(args, own.input) + own.first, own.count};
    });
    device::launch(
        *args.stream, clip_, {},
        ClipArgs{trees.totals, std::ssize(blocks_), scalar(args, 0), limit_, ops::ClipScale::kEps,
                 static_cast<float*>(args.out[0]), static_cast<float*>(args.out[1])});
  }

 private:
  std::vector<ops::ClipScale::Blocks> blocks_;
  double limit_;
  const device::DeviceFunction &trees_, &clip_;
  int64_t all_ = 0;
};

/// Accepts if each parameter, its gradient and its states have the same layout.
KernelCandidate update_candidate(const KernelRequest& r, const ops::Update& op) {
  KernelCandidate c = own_candidate(r, "update");
  const auto leading = static_cast<size_t>(op.leading()), arity = static_cast<size_t>(op.arity());
  for (size_t i = leading; i < r.in.size(); ++i) {
    const TensorDesc& w = r.in[i - (i - leading) % arity];
    if (!(r.in[i] == w))
      c.refusal = fmt::format("a parameter is {} and its gradient or state {}", w.to_string(),
                              r.in[i].to_string());
  }
  return c;
}

/// Returns a candidate for the kernel K, which is made of a function, the op, its rule and `more`.
template <class K, class O, class Rule, class... More>
KernelCandidate ruled(const KernelRequest& r, const O& op, const device::DeviceFunction& function,
                      const Rule& rule, const More&... more) {
  KernelCandidate c = update_candidate(r, op);
  c.make = [r, op, &function, rule, &more...] {
    return std::make_unique<K>(function, r, op, rule, more...);
  };
  return c;
}

float narrow(double x) { return static_cast<float>(x); }

float limit_of(double clip) {
  return clip > 0 ? narrow(clip) : std::numeric_limits<float>::infinity();
}

KernelCandidate sgd(const KernelRequest& r, const ops::SgdUpdate& op, device::Device& device) {
  const ops::SgdAttributes& a = op.sgd();
  return ruled<UpdateKernel<SgdRule>>(
      r, op, function_named(device, "sgd"),
      SgdRule{narrow(a.rate), narrow(a.momentum), narrow(a.weight_decay), limit_of(a.clip),
              a.nesterov});
}

KernelCandidate adam(const KernelRequest& r, const ops::AdamUpdate& op, device::Device& device) {
  const ops::AdamAttributes& a = op.adam();
  return ruled<AdamKernel>(r, op, function_named(device, "adam"),
                           AdamRule{.numbers = nullptr,
                                    .weight_decay = a.decoupled ? a.weight_decay : 0,
                                    .factor = narrow(a.rate),
                                    .beta1 = narrow(a.beta1),
                                    .beta2 = narrow(a.beta2),
                                    .new1 = narrow(1 - a.beta1),
                                    .new2 = narrow(1 - a.beta2),
                                    .eps = narrow(a.eps),
                                    .decay = narrow(a.decoupled ? 0 : a.weight_decay),
                                    .limit = limit_of(a.clip)});
}

KernelCandidate rmsprop(const KernelRequest& r, const ops::RmspropUpdate& op,
                        device::Device& device) {
  const ops::RmspropAttributes& a = op.rmsprop();
  return ruled<UpdateKernel<RmspropRule>>(
      r, op, function_named(device, "rmsprop"),
      RmspropRule{narrow(a.rate), narrow(a.rho), narrow(1 - a.rho), narrow(a.eps),
                  narrow(a.weight_decay), limit_of(a.clip)});
}

KernelCandidate lars(const KernelRequest& r, const ops::LarsUpdate& op, device::Device& device) {
  const ops::LarsAttributes& a = op.lars();
  return ruled<LarsKernel>(r, op, function_named(device, "lars"),
                           LarsRule{nullptr, a.trust, a.weight_decay, a.eps, narrow(a.rate),
                                    narrow(a.momentum), narrow(a.weight_decay)},
                           function_named(device, "trees"));
}

/// Returns the maker of a kernel of squares.
template <class O>
auto squares_of(size_t first, size_t columns) {
  return [first, columns](const KernelRequest& r, const O& op, device::Device& device) {
    KernelCandidate c = update_candidate(r, op);
    c.make = [r, op, first, columns, &function = function_named(device, "squares")] {
      return std::make_unique<SquaresKernel>(function, r, op, first, columns);
    };
    return c;
  };
}

}  // namespace

void register_updates(OwnKernels& table) {
  table.add<ops::SgdUpdate>(sgd);
  table.add<ops::AdamUpdate>(adam);
  table.add<ops::RmspropUpdate>(rmsprop);
  table.add<ops::LarsUpdate>(lars);
  table.add<ops::WeightAverage>(
      [](const KernelRequest& r, const ops::WeightAverage& op, device::Device& device) {
        return ruled<AverageKernel>(r, op, function_named(device, "average"), AverageRule{});
      });
  table.add<ops::ParameterNorms>(squares_of<ops::ParameterNorms>(0, 2));
  table.add<ops::GradientSquares>(squares_of<ops::GradientSquares>(1, 1));
  table.add<ops::ClipScale>(
      [](const KernelRequest& r, const ops::ClipScale& op, device::Device& device) {
        KernelCandidate c = own_candidate(r, "update");
        c.make = [r, op, &device] { return std::make_unique<ClipKernel>(r, op, device); };
        return c;
      });
}

}  // namespace tutti::backend
