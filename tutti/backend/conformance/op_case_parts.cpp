#include <memory>

#include "tutti/backend/conformance/op_case_line.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/rows.h"

namespace tutti {
namespace {

int64_t whole_number(CaseLine& line, const char* word, int64_t otherwise) {
  return static_cast<int64_t>(line.number(word, static_cast<double>(otherwise)));
}

/// Returns `like` with so many samples and rows.
Shape with_rows(Shape like, int dim, int64_t samples, int64_t rows) {
  like[0] = samples;
  like[dim] = rows;
  return like;
}

void rows_case(CaseLine& line, OpCase& made) {
  const int dim = line.has("across") ? line.x.rank() - 1 : 2;
  const int64_t slabs = whole_number(line, "slabs", 1), height = whole_number(line, "height", 1),
                step = whole_number(line, "step", 1), before = whole_number(line, "before", 0),
                samples = line.x[0] / slabs, rows = line.x[dim] * slabs;
  std::vector<Rows> windows;
  for (int64_t i = 0; i < whole_number(line, "windows", 1); ++i)
    windows.push_back({i * step - before, i * step - before + height});
  const Shape window =
      with_rows(line.x, dim, samples * static_cast<int64_t>(windows.size()), height);
  CaseInputs in(made);
  if (line.op == "gather_rows") {
    RowCut cut{.dim = dim, .slabs = slabs, .windows = windows};
    if (const int64_t above = whole_number(line, "above", 0); above > 0)
      cut.others.push_back({-above, 0});
    if (const int64_t below = whole_number(line, "below", 0); below > 0)
      cut.others.push_back({rows, rows + below});
    in.batched(line.x, line.dtype);
    for (const Rows other : cut.others)
      in.batched(with_rows(line.x, dim, samples, other.count()), line.dtype);
    made.problem.op = std::make_shared<GatherRows>(cut, static_cast<float>(line.number("fill", 0)));
  } else {
    AddRows::Sum sum{.dim = dim, .slabs = slabs, .rows = {0, rows}, .windows = {windows}};
    in.batched(window, line.dtype);
    if (line.has("also")) {  // rows that other ranks send back
      sum.windows.push_back({{0, 2}, {rows - 2, rows}});
      in.batched(with_rows(line.x, dim, samples * 2, 2), line.dtype);
    }
    made.problem.op = std::make_shared<AddRows>(sum);
  }
}

}  // namespace

void parts_case(CaseLine& line, OpCase& made) {
  if (line.op.ends_with("_rows")) return rows_case(line, made);
  CaseInputs in(made);
  const Shape& x = line.x;
  const auto ranks = static_cast<size_t>(whole_number(line, "ranks", 1));
  if (line.op == "sum_parts") {
    made.problem.op = std::make_shared<SumParts>(static_cast<float>(line.number("scale", 1)));
    for (size_t r = 0; r < ranks; ++r) in.fixed(x);
  } else if (line.op == "merge_moments") {
    NormGroup group;
    for (size_t r = 0; r < ranks; ++r) {
      group.peers.push_back(static_cast<int>(r));
      group.counts.push_back(static_cast<int64_t>(10 + 7 * r));
    }
    made.problem.op =
        std::make_shared<MergeMoments>(group, NormStatistics{.running = line.has("running")});
    in.fixed(x).fixed(x, Fill::positive);
    for (size_t r = 0; r < ranks; ++r) in.fixed(x).fixed(x, Fill::positive);
  } else if (line.op == "batch_norm_moments") {
    made.problem.op = std::make_shared<BatchNormMoments>();
    in.batched(x, line.dtype);
  } else {
    const std::vector<float> weights{0.5f, 2.0f, 1.25f, 0.0f, 3.0f};
    made.problem.op = std::make_shared<LabelWeights>(weights);
    made.labels = std::ssize(weights);
    in.batched(x, DType::i32, Fill::label);
  }
}

}  // namespace tutti
