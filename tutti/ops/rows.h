#pragma once
// Samples in slabs: a sample [C, rows, ...] that is cut along one dimension becomes several samples
// of a batch, so that threads, tiles and ranks can share it. GatherRows makes the slabs that an op
// reads (Op::reach), with the rows that neighbours share; AddRows is its adjoint.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

/// How samples are cut along one dimension: into `slabs` of equal height on one side, into
/// `windows` of equal height, which may overlap and reach beyond the sample, on the other.
struct RowCut {
  int dim = 2;
  int64_t slabs = 1;
  std::vector<Rows> windows;
  std::string to_string() const;
};

/// x [N * slabs, C, rows / slabs, ...] -> y [N * windows, C, height, ...], any dtype. Slab s of
/// sample n is x[n * slabs + s], window i of it y[n * windows + i]. Rows outside of the sample hold
/// `fill`.
class GatherRows : public Op {
 public:
  explicit GatherRows(RowCut cut, float fill = 0) : cut_(std::move(cut)), fill_(fill) {}
  const RowCut& cut() const { return cut_; }
  float fill() const { return fill_; }
  std::string_view name() const override { return "gather_rows"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::across; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RowCut cut_;
  float fill_;
};

/// dy [N * windows, C, height, ...] -> dx [N * slabs, C, rows / slabs, ...] of samples with `rows`
/// rows: each row is the sum of those windows' that hold it, in the windows' order; 0 without one.
class AddRows : public Op {
 public:
  AddRows(RowCut cut, int64_t rows) : cut_(std::move(cut)), rows_(rows) {}
  const RowCut& cut() const { return cut_; }
  int64_t rows() const { return rows_; }
  std::string_view name() const override { return "add_rows"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::across; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  RowCut cut_;
  int64_t rows_;
};

/// The reach of an op whose results at a position depend on its inputs at that position.
Reach pointwise_reach(std::span<const ValueType> in, int axis, Rows out);

}  // namespace tutti
