// LarsUpdate, LambMoments and LambUpdate, whose rates need norms of parameters, and the sums of
// squares for them and for clipping.

#include <cmath>
#include <cstring>

#include "tutti/backend/gpu/own/own_update.h"
#include "tutti/backend/gpu/own/strides.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/norm_update.h"

namespace tutti::backend {
namespace {

LambDirection lamb_direction(const ops::LambAttributes& a) {
  return {.numbers = nullptr, .eps = as_float(a.eps), .decay = as_float(a.weight_decay)};
}

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

/// An update whose rates depend on norms of its parameters.
template <class Rule>
class NormedUpdate : public OwnUpdate<Rule> {
 public:
  NormedUpdate(const device::DeviceFunction& function, const KernelRequest& r,
               const ops::Update& op, const Rule& rule, const device::DeviceFunction& trees)
      : OwnUpdate<Rule>(function, r, op, rule), trees_(trees) {
    for (size_t p = 0; p < this->parameters_.count(); ++p)
      blocks_ += sum_blocks(this->parameters_.elements(p));
  }
  size_t workspace_bytes() const override {
    return (static_cast<size_t>(blocks_) + this->parameters_.count()) * 2 * sizeof(double);
  }
  void run(const KernelArgs& args) override { put_with_norms(args, this->rule_); }

 protected:
  void put_with_norms(const KernelArgs& args, Rule rule) const {
    auto* const work = static_cast<double*>(args.workspace);
    const Trees trees{trees_, 2, work, work + 2 * blocks_};
    const float* sums = scalar_input(args, ops::Update::kScalars);
    trees.put(*args.stream, this->parameters_.count(), [&](size_t p) {
      const int64_t count = sum_blocks(this->parameters_.elements(p));
      return Trees::Sums{std::exchange(sums, sums + 2 * count), count};
    });
    rule.squares = trees.totals;
    this->put(args, rule);
  }

 private:
  const device::DeviceFunction& trees_;
  int64_t blocks_ = 0;
};

void write_lamb_numbers(const ops::LambAttributes& a, const StepInfo& step, std::byte* to) {
  const auto t = static_cast<double>(step.step + 1);
  const LambNumbers numbers{static_cast<float>(1 / (1 - std::pow(a.beta1, t))),
                            static_cast<float>(1 / std::sqrt(1 - std::pow(a.beta2, t)))};
  std::memcpy(to, &numbers, sizeof numbers);
}

class LambKernel final : public NormedUpdate<LambRule> {
 public:
  LambKernel(const device::DeviceFunction& function, const KernelRequest& r,
             const ops::LambUpdate& op, const LambRule& rule, const device::DeviceFunction& trees)
      : NormedUpdate(function, r, op, rule, trees), lamb_(op.lamb()) {}
  size_t number_bytes() const override { return sizeof(LambNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    write_lamb_numbers(lamb_, step, to);
  }
  void run(const KernelArgs& args) override {
    LambRule rule = rule_;
    rule.direction.numbers = reinterpret_cast<const LambNumbers*>(args.numbers);
    put_with_norms(args, rule);
  }

 private:
  ops::LambAttributes lamb_;
};

/// Puts a launch of kernels that share sums of squares, unless there is nothing to add, and begins
/// the next one.
template <class Args>
void launch_squares(device::Stream& stream, const device::DeviceFunction& function, Args& a) {
  constexpr int64_t kTogether = kUpdateThreads / kSquareLanes;
  if (a.blocks > 0) device::launch(stream, function, {blocks_for(a.blocks, kTogether)}, a);
  a.blocks = a.count = 0;
}

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
      if (a.count == kMostSquareStretches) launch_squares(*args.stream, function_, a);
    }
    launch_squares(*args.stream, function_, a);
  }

 private:
  UpdatedParameters parameters_;
  const device::DeviceFunction& function_;
  size_t bytes_, first_, columns_;
};

class LambMomentsKernel final : public Kernel {
 public:
  LambMomentsKernel(const device::DeviceFunction& function, const KernelRequest& r,
                    const ops::LambMoments& op)
      : parameters_(r, op), function_(function), bytes_(r.out[0].bytes()), lamb_(op.lamb()) {}
  size_t number_bytes() const override { return sizeof(LambNumbers); }
  void write_numbers(const StepInfo& step, std::byte* to) const override {
    write_lamb_numbers(lamb_, step, to);
  }

  void run(const KernelArgs& args) override {
    auto* sums = static_cast<float*>(args.out[0]);
    if (args.window.end) args.stream->fill(sums, std::byte{0}, bytes_);
    LambMomentsArgs a{.scale = scalar_input(args, 1),
                      .direction = lamb_direction(lamb_),
                      .beta1 = as_float(lamb_.beta1),
                      .beta2 = as_float(lamb_.beta2),
                      .new1 = as_float(1 - lamb_.beta1),
                      .new2 = as_float(1 - lamb_.beta2),
                      .blocks = 0,
                      .count = 0,
                      .at = {}};
    a.direction.numbers = reinterpret_cast<const LambNumbers*>(args.numbers);
    for (size_t p = 0; p < parameters_.count(); ++p) {
      const auto [first, last] = parameters_.inside(args, p);
      float* const own = sums + 2 * (first / kSumBlock);
      sums += 2 * sum_blocks(parameters_.elements(p));
      if (first == last) continue;
      const auto at = [&, begin = first](size_t i) {
        return parameters_.operand(args, p, i) + begin;
      };
      a.at[a.count++] = {at(0), at(1), at(2), at(3), own, last - first, a.blocks};
      a.blocks += sum_blocks(last - first);
      if (a.count == kMostLambStretches) launch_squares(*args.stream, function_, a);
    }
    launch_squares(*args.stream, function_, a);
  }

 private:
  UpdatedParameters parameters_;
  const device::DeviceFunction& function_;
  size_t bytes_;
  ops::LambAttributes lamb_;
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
      return Trees::Sums{scalar_input(args, own.input) + own.first, own.count};
    });
    device::launch(*args.stream, clip_, {},
                   ClipArgs{trees.totals, std::ssize(blocks_), scalar_input(args, 0), limit_,
                            ops::ClipScale::kEps, static_cast<float*>(args.out[0]),
                            static_cast<float*>(args.out[1])});
  }

 private:
  std::vector<ops::ClipScale::Blocks> blocks_;
  double limit_;
  const device::DeviceFunction &trees_, &clip_;
  int64_t all_ = 0;
};

KernelCandidate lars(const KernelRequest& r, const ops::LarsUpdate& op, device::Device& device) {
  const ops::LarsAttributes& a = op.lars();
  return ruled_update<NormedUpdate<LarsRule>>(
      r, op, function_named(device, "lars"),
      LarsRule{nullptr, a.trust, a.weight_decay, a.eps, as_float(a.rate), as_float(a.momentum),
               as_float(a.weight_decay)},
      function_named(device, "trees"));
}

KernelCandidate lamb(const KernelRequest& r, const ops::LambUpdate& op, device::Device& device) {
  const ops::LambAttributes& a = op.lamb();
  return ruled_update<LambKernel>(
      r, op, function_named(device, "lamb"),
      LambRule{.squares = nullptr, .direction = lamb_direction(a), .factor = as_float(a.rate)},
      function_named(device, "trees"));
}

KernelCandidate lamb_moments(const KernelRequest& r, const ops::LambMoments& op,
                             device::Device& device) {
  KernelCandidate c = update_candidate(r, op);
  c.make = [r, op, &function = function_named(device, "lamb_moments")] {
    return std::make_unique<LambMomentsKernel>(function, r, op);
  };
  return c;
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

void register_norm_updates(OwnKernels& table) {
  table.add<ops::LarsUpdate>(lars);
  table.add<ops::LambMoments>(lamb_moments);
  table.add<ops::LambUpdate>(lamb);
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
