#pragma once
// Samples in slabs: a sample [C, rows, ...] that is cut along one dimension becomes several
// samples of a batch, so that threads, tiles and ranks can share it. GatherRows makes the slabs
// that an op reads (Op::reach), with the rows that neighbours share; AddRows is its adjoint.

#include <string>
#include <vector>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// How samples are cut along one dimension: into `slabs` of equal height on one side, into
/// `windows` of equal height, which may overlap and reach beyond the slabs, on the other. Where
/// ranks share a sample, row 0 is this rank's first row.
struct RowCut {
  int dim = 2;
  int64_t slabs = 1;
  std::vector<Rows> windows;
  std::vector<Rows> others = {};  ///< rows that other ranks hold, below 0 or from the slabs' end on
  std::string to_string() const;
};

/// (x [N * slabs, C, rows / slabs, ...], for each of `others` [N, C, its count, ...]) -> y
/// [N * windows, C, height, ...], any dtype. Slab s of sample n is x[n * slabs + s], window i of it
/// y[n * windows + i]. Rows that no input has hold `fill`.
class GatherRows : public NamedOp<"gather_rows", Walk::across> {
 public:
  explicit GatherRows(RowCut cut, float fill = 0) : cut_(std::move(cut)), fill_(fill) {}
  const RowCut& cut() const { return cut_; }
  float fill() const { return fill_; }
  std::string attributes() const override;
  /// Whether sample `sample` of the results reads this input.
  bool reads(size_t input, int64_t sample) const;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  RowCut cut_;
  float fill_;
};

/// dy[k] [N * windows[k], C, height, ...] -> dx [N * slabs, C, rows / slabs, ...]: each row is the
/// sum of the windows' rows that hold it, in the order of inputs and windows; 0 without one.
class AddRows : public NamedOp<"add_rows", Walk::across> {
 public:
  struct Sum {
    int dim = 2;
    int64_t slabs = 1;
    Rows rows;                               ///< the rows of a sample, over all its slabs
    std::vector<std::vector<Rows>> windows;  ///< the windows of each input
    std::string to_string() const;
  };
  explicit AddRows(Sum sum) : sum_(std::move(sum)) {}
  const Sum& sum() const { return sum_; }
  std::string attributes() const override { return sum_.to_string(); }
  /// Whether sample `sample` of the results reads this input.
  bool reads(size_t input, int64_t sample) const;
  std::vector<ValueType> infer(Types in) const override;

 private:
  Sum sum_;
};

}  // namespace tutti::ops
