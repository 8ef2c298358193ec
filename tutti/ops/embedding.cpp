#include "tutti/ops/embedding.h"

#include "tutti/ops/shape_check.h"

namespace tutti {
namespace {

std::string bag_text(const BagColumns& columns) {
  return fmt::format("columns {}+{}", columns.first, columns.count);
}

void require_table(std::string_view op, const ValueType& table, const ValueType& rows,
                   const BagColumns& columns) {
  require(!table.batched && table.desc.shape.rank() == 2 && table.desc.dtype == DType::f32,
          "{}: needs an f32 table [rows, width], met {}", op, table.desc.to_string());
  require(rows.batched && rows.desc.shape.rank() == 2 && rows.desc.dtype == DType::i32,
          "{}: needs numbers of rows, i32 [N, columns], met {}", op, rows.desc.to_string());
  require(columns.first >= 0 && columns.count > 0 &&
              columns.first + columns.count <= rows.desc.shape[1],
          "{}: {} of {} columns", op, bag_text(columns), rows.desc.shape[1]);
}

}  // namespace

std::string EmbeddingBag::attributes() const { return bag_text(columns_); }

std::vector<ValueType> EmbeddingBag::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 2);
  require_table(name(), in[0], in[1], columns_);
  return {batched_as({in[1].desc.shape[0], in[0].desc.shape[1]}, DType::f32)};
}

double EmbeddingBag::flop(std::span<const ValueType>, std::span<const ValueType> out) const {
  return static_cast<double>(out[0].desc.elements() * (columns_.count - 1));
}

std::string TableUpdate::attributes() const { return bag_text(columns_); }

std::vector<ValueType> TableUpdate::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 5);
  require_table(name(), in[2], in[4], columns_);
  const Shape& dy = in[3].desc.shape;
  require(in[3].batched && in[3].desc.dtype == DType::f32 && dy.rank() == 2 &&
              dy[0] == in[4].desc.shape[0] && dy[1] == in[2].desc.shape[1],
          "{}: dy is {}, the table {} and the rows {}", name(), in[3].desc.to_string(),
          in[2].desc.to_string(), in[4].desc.to_string());
  return {};
}

}  // namespace tutti
