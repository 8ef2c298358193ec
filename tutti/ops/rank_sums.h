#pragma once
// Layers whose channels ranks share (Shoeybi et al. 2019): of a layer cut by rows of its weight
// each rank has a sum over its own inputs, and all of these make the result; what a layer cut by
// columns reads, every rank has whole, and its gradient is the sum of what all ranks have of it. A
// rank's loss is the whole one, so whatever all ranks have alike has the same gradient on each.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/rows.h"

namespace tutti {

/// Those who share: peers 0 to ranks - 1 of ops/parts.h.
struct RankGroup {
  int ranks = 1, me = 0;
};

/// (x of each rank, in their order, [N, C, ...], f32 bias [C] where there is one) -> their sum, in
/// this order, and the bias. The gradient goes to this rank's own x alone, as it is.
class SumOfRanks final : public Op {
 public:
  SumOfRanks(RankGroup group, bool bias) : group_(group), bias_(bias) {}
  const RankGroup& group() const { return group_; }
  bool bias() const { return bias_; }
  std::string_view name() const override { return "sum_of_ranks"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankGroup group_;
  bool bias_;
};

/// An op that says something to differentiate alone: a result is one of its inputs. drop_copies
/// (ops/fusion/fuse.h) takes it out, and no backend has a kernel for it.
class RuleOnly : public Op {
 public:
  /// The input that output `output` is.
  virtual int same_as(int output) const = 0;
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
};

/// x -> x, which all ranks have alike and each uses otherwise: the gradient is the sum over ranks,
/// exchanged with `tag`. No kernel.
class ForAllRanks final : public RuleOnly {
 public:
  ForAllRanks(RankGroup group, int tag) : group_(group), tag_(tag) {}
  std::string_view name() const override { return "for_all_ranks"; }
  std::string attributes() const override;
  int same_as(int) const override { return 0; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankGroup group_;
  int tag_;
};

/// What each rank has in the place of `mine`, in the order of ranks. Has no gradient: whoever reads
/// it knows a rule.
std::vector<Value> values_of_ranks(Graph& graph, const std::string& name, const RankGroup& group,
                                   int tag, Value mine);

/// Their sum; `bias` is invalid for none.
Value sum_over_ranks(Graph& graph, const std::string& name, const RankGroup& group, int tag,
                     Value mine, Value bias = {});

}  // namespace tutti
