#pragma once
// Layers whose channels ranks share (Shoeybi et al. 2019). In a layer cut by rows of its weight,
// each rank sums over its own inputs, and the sum over ranks is the result. In a layer cut by
// columns, every rank reads the whole input, whose gradient is the sum of all ranks' gradients. A
// rank's loss is the whole loss, so a value that is the same on all ranks has the same gradient on
// each.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"
#include "tutti/ops/rows.h"

namespace tutti::ops {

/// The ranks that share: peers 0 to ranks - 1 of ops/parts.h.
struct RankGroup {
  int ranks = 1, me = 0;
};

/// (x of each rank, in their order, [N, C, ...], f32 bias [C] where there is one) -> their sum, in
/// this order, plus the bias. The gradient goes unchanged to this rank's own x alone.
class SumOfRanks final : public RowByRow<NamedOp<"sum_of_ranks", Walk::per_sample>> {
 public:
  SumOfRanks(RankGroup group, bool bias) : group_(group), bias_(bias) {}
  const RankGroup& group() const { return group_; }
  bool bias() const { return bias_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankGroup group_;
  bool bias_;
};

/// An op that only differentiate needs: each result equals one of its inputs. drop_copies
/// (ops/fusion/fuse.h) removes it, and no backend has a kernel for it.
class RuleOnly : public Op {
 public:
  /// Returns the input that output `output` equals.
  virtual int same_as(int output) const = 0;
  Walk walk(Types) const override { return Walk::per_sample; }
};

/// x -> x, where x is the same on all ranks and each uses it differently: the gradient is the sum
/// over ranks, exchanged with `tag`. No kernel.
class ForAllRanks final : public RuleOnly {
 public:
  ForAllRanks(RankGroup group, int tag) : group_(group), tag_(tag) {}
  std::string_view name() const override { return "for_all_ranks"; }
  std::string attributes() const override;
  int same_as(int) const override { return 0; }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankGroup group_;
  int tag_;
};

/// Returns `mine` of each rank, in the order of ranks. Has no gradient: the op that reads the
/// values has a rule for it.
std::vector<Value> values_of_ranks(Graph& graph, const std::string& name, const RankGroup& group,
                                   int tag, Value mine);

/// Returns the sum of `mine` over ranks; an invalid `bias` means none.
Value sum_over_ranks(Graph& graph, const std::string& name, const RankGroup& group, int tag,
                     Value mine, Value bias = {});

}  // namespace tutti::ops
