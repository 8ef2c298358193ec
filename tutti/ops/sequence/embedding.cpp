#include "tutti/ops/sequence/embedding.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_table(std::string_view op, const ValueType& table, const ValueType& rows,
                   const Bag& bag) {
  require(!table.batched && table.desc.shape.rank() == 2 && table.desc.dtype == DType::f32,
          "{}: needs an f32 table [rows, width], met {}", op, table.desc);
  require(rows.desc.shape.rank() == 2 && rows.desc.dtype == DType::i32,
          "{}: needs numbers of rows, i32 [N, columns], met {}", op, rows.desc);
  require(bag.first >= 0 && bag.count > 0 && bag.first + bag.count <= rows.desc.shape[1],
          "{}: {} of {} columns", op, bag.to_string(), rows.desc.shape[1]);
}

void require_weights(std::string_view op, const ValueType& weights, const ValueType& rows,
                     const Bag& bag) {
  require(weights.desc.dtype == DType::f32 && weights.batched == rows.batched &&
              weights.desc.shape == Shape{rows.desc.shape[0], bag.count},
          "{}: needs a weight of each row, f32 {}, met {}", op,
          Shape{rows.desc.shape[0], bag.count}, weights.desc);
}

}  // namespace

std::string Bag::to_string() const {
  std::string text = fmt::format("columns {}+{}", first, count);
  if (mean) text += " mean";
  if (weighted) text += " weighted";
  if (first_row > 0) text += fmt::format(" from row {}", first_row);
  return text;
}

std::vector<ValueType> EmbeddingBag::infer(Types in) const {
  require_inputs(name(), in, a_.weighted ? 3 : 2);
  require_table(name(), in[0], in[1], a_);
  require(in[1].batched, "{}: needs the rows of a batch, met {}", name(), in[1].desc);
  if (a_.weighted) require_weights(name(), in[2], in[1], a_);
  return {batched_as({in[1].desc.shape[0], in[0].desc.shape[1]}, DType::f32)};
}

double EmbeddingBag::flop(Types, Types out) const {
  return static_cast<double>(out[0].desc.elements() * (a_.count - 1));
}

std::string TableUpdate::attributes() const {
  std::string text = bag_.to_string();
  if (has_state())
    text += fmt::format(" {} epsilon {}", words(rule_.kind)[static_cast<size_t>(rule_.kind)],
                        rule_.epsilon);
  return text;
}

std::vector<ValueType> TableUpdate::infer(Types in) const {
  const size_t dy = has_state() ? 4 : 3;
  require_inputs(name(), in, dy + (bag_.weighted ? 3 : 2));
  require_table(name(), in[2], in[dy + 1], bag_);
  const Shape& table = in[2].desc.shape;
  require(in[dy].desc.dtype == DType::f32 &&
              in[dy].desc.shape == Shape{in[dy + 1].desc.shape[0], table[1]},
          "{}: dy is {}, the table {} and the rows {}", name(), in[dy].desc, in[2].desc,
          in[dy + 1].desc.to_string());
  if (has_state())
    require(in[3].desc.dtype == DType::f32 &&
                in[3].desc.shape == Shape{table[0], rule_.state_width(table[1])},
            "{}: the sum is {}, the table {}", name(), in[3].desc, in[2].desc);
  if (bag_.weighted) require_weights(name(), in[dy + 2], in[dy + 1], bag_);
  return {};
}

}  // namespace tutti::ops
