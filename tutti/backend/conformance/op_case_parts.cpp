#include "tutti/backend/conformance/case_table.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/rows.h"

namespace tutti::backend {
namespace {

/// Returns `like` with so many samples and rows.
Shape with_rows(Shape like, int dim, int64_t samples, int64_t rows) {
  like[0] = samples;
  like[dim] = rows;
  return like;
}

void rows_case(CaseLine& line, OpCase& made) {
  const int dim = line.has("across") ? line.x.rank() - 1 : 2;
  const int64_t slabs = line.whole_number("slabs", 1), height = line.whole_number("height", 1),
                step = line.whole_number("step", 1), before = line.whole_number("before", 0),
                samples = line.x[0] / slabs, rows = line.x[dim] * slabs;
  std::vector<graph::Rows> windows;
  for (int64_t i = 0; i < line.whole_number("windows", 1); ++i)
    windows.push_back({i * step - before, i * step - before + height});
  const Shape window =
      with_rows(line.x, dim, samples * static_cast<int64_t>(windows.size()), height);
  CaseInputs in(made);
  if (line.op == "gather_rows") {
    ops::RowCut cut{.dim = dim, .slabs = slabs, .windows = windows};
    if (const int64_t above = line.whole_number("above", 0); above > 0)
      cut.others.push_back({-above, 0});
    if (const int64_t below = line.whole_number("below", 0); below > 0)
      cut.others.push_back({rows, rows + below});
    in.batched(line.x, line.dtype);
    for (const graph::Rows other : cut.others)
      in.batched(with_rows(line.x, dim, samples, other.count()), line.dtype);
    made.use<ops::GatherRows>(cut, line.real("fill", 0));
  } else {
    ops::AddRows::Sum sum{.dim = dim, .slabs = slabs, .rows = {0, rows}, .windows = {windows}};
    in.batched(window, line.dtype);
    if (line.has("also")) {  // rows that other ranks send back
      sum.windows.push_back({{0, 2}, {rows - 2, rows}});
      in.batched(with_rows(line.x, dim, samples * 2, 2), line.dtype);
    }
    made.use<ops::AddRows>(sum);
  }
}

void parts_case(CaseLine& line, OpCase& made) {
  CaseInputs in(made);
  const Shape& x = line.x;
  const auto ranks = static_cast<size_t>(line.whole_number("ranks", 1));
  if (line.op == "sum_parts") {
    made.use<ops::SumParts>(line.real("scale", 1));
    for (size_t r = 0; r < ranks; ++r) in.fixed(x);
  } else if (line.op == "merge_moments") {
    ops::NormGroup group;
    for (size_t r = 0; r < ranks; ++r) {
      group.peers.push_back(static_cast<int>(r));
      group.counts.push_back(static_cast<int64_t>(10 + 7 * r));
    }
    made.use<ops::MergeMoments>(group, ops::NormStatistics{.running = line.has("running")});
    in.fixed(x).fixed(x, Fill::positive);
    for (size_t r = 0; r < ranks; ++r) in.fixed(x).fixed(x, Fill::positive);
  } else if (line.op == "batch_norm_moments") {
    made.use<ops::BatchNormMoments>();
    in.batched(x, line.dtype, line.has("positive") ? Fill::positive : Fill::normal);
  } else {
    const std::vector<float> weights{0.5f, 2.0f, 1.25f, 0.0f, 3.0f};
    made.use<ops::LabelWeights>(weights);
    made.labels = std::ssize(weights);
    in.batched(x, DType::i32, Fill::label);
  }
}

}  // namespace

void register_parts_cases(CaseTable& table) {
  // EXTENTS describe a slab; there are so many windows of `height` rows, `step` apart, and the
  // first begins `before` rows above the first slab.
  table.add({"gather_rows", "add_rows"}, rows_case)
      .lines({"n4c16h8w5 slabs2 windows4 height6 step4 before1",
              "n3c5h6w7 slabs1 windows1 height6 step1 before0",
              "n6c16d4h4w3 slabs3 windows3 height6 step4 before1",
              "n2c19h8w4 slabs1 windows2 height9 step3 before2",
              "n4c16h4w6 slabs2 windows2 height7 step4 before2 across"});
  table.add({"gather_rows"}, rows_case)
      .lines({"n4c16h8w5 slabs2 windows4 height6 step4 before1 above1 below1",
              "n3c5h6w7 slabs1 windows2 height7 step4 before3 above2 fill1.5"},
             {"f32"})
      .lines({"n4c16h8w5 slabs2 windows4 height6 step4 before1 above1 below1"}, {"bf16"})
      .lines({"n4c3h8w6 slabs2 windows4 height6 step4 before1 below1"}, {"i32"});
  table.add({"add_rows"}, rows_case)
      .lines({"n4c16h8w5 slabs2 windows4 height6 step4 before1 also"}, {"f32"})
      .lines({"n4c5h6w7 slabs2 windows2 height7 step6 before0 also"}, {"bf16"});
  table.add({"sum_parts"}, parts_case).lines({"n333 ranks3 scale0.5", "n1 ranks4"}, {"f32"});
  table.add({"merge_moments"}, parts_case)
      .lines({"n64 ranks2", "n37 ranks5", "n37 ranks3 running"}, {"f32"});
  table.add({"label_weights"}, parts_case).lines({"n3c6h7", "n9", "n2c4h5w6", "n70c9h8"}, {"i32"});
  table.add({"batch_norm_moments"}, parts_case)
      .lines({"n5c16h8w8", "n4c32h5w7", "n3c5h6w7", "n7c19", "n2c16d3h4w5", "n2c152h3w2",
              "n17c3h18w18 positive", "n40c16h16w16 positive"});
}

}  // namespace tutti::backend
