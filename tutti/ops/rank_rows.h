#pragma once
// Positions that ranks share between layers whose channels they share (Korthikanti et al. 2022):
// where all ranks would compute the same, each computes its own positions, dimension 2 of a
// sequence. A sum over ranks (ops/rank_sums.h) then goes to each rank for its positions alone, and
// the positions are joined before the next shared layer: each of these exchanges is half of a whole
// sum.

#include <string>
#include <vector>

#include "tutti/ops/rank_sums.h"
#include "tutti/ops/rows.h"

namespace tutti::ops {

/// Divides `all` positions among the ranks.
struct RankRows {
  RankGroup group;
  int64_t all = 0;
  Rows of(int rank) const { return {all * rank / group.ranks, all * (rank + 1) / group.ranks}; }
  Rows mine() const { return of(group.me); }
  std::string to_string() const;
};

/// GatherRows without a gradient: another op's rule covers it.
class TakeRows final : public WithoutGradient<GatherRows> {
 public:
  using WithoutGradient::WithoutGradient;
};

/// (x of own positions, x of all positions, joined from all ranks) -> the second. Gradient of the
/// first: where ranks use it differently (`sums`), own positions of the sum of dy over ranks; where
/// all ranks compute the same with it, own positions of dy. No kernel, as ForAllRanks.
class AllRows final : public RuleOnly {
 public:
  AllRows(RankRows rows, bool sums, int tag) : rows_(rows), sums_(sums), tag_(tag) {}
  std::string_view name() const override { return "all_rows"; }
  std::string attributes() const override;
  int same_as(int) const override { return 1; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankRows rows_;
  bool sums_;
  int tag_;
};

/// (x of all positions, y of own positions, made from it) -> the second. Gradients: the first gets
/// dy of all ranks' positions, the second dy. No kernel.
class OwnRows final : public RuleOnly {
 public:
  OwnRows(RankRows rows, int tag) : rows_(rows), tag_(tag) {}
  std::string_view name() const override { return "own_rows"; }
  std::string attributes() const override;
  int same_as(int) const override { return 1; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankRows rows_;
  int tag_;
};

/// Parameters -> the same parameters, which each rank uses for its own positions: their gradients
/// are sums over ranks, in one exchange. No kernel.
class ParametersForAllRanks final : public RuleOnly {
 public:
  ParametersForAllRanks(RankGroup group, int tag) : group_(group), tag_(tag) {}
  std::string_view name() const override { return "parameters_for_all_ranks"; }
  std::string attributes() const override;
  Walk walk(Types) const override { return Walk::whole; }
  int same_as(int output) const override { return output; }
  std::vector<ValueType> infer(Types in) const override { return {in.begin(), in.end()}; }
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RankGroup group_;
  int tag_;
};

/// The ops that the builders below add have tags `tag` and, for the gradient, `tag` + 1.
/// Joins x of all positions from the ranks' own positions; `sums` as in AllRows.
Value all_rows(Graph& graph, const std::string& name, const RankRows& rows, bool sums, int tag,
               Value mine);
/// Returns own positions of the sum over ranks; an invalid `bias` means none.
Value own_rows_of_sum(Graph& graph, const std::string& name, const RankRows& rows, int tag,
                      Value mine, Value bias = {});
/// Returns own positions of a value that is the same on all ranks.
Value own_rows(Graph& graph, const std::string& name, const RankRows& rows, int tag, Value all);

}  // namespace tutti::ops
