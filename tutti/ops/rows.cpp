#include "tutti/ops/rows.h"

#include <algorithm>

#include "tutti/ops/shape_check.h"

namespace tutti {
namespace {

void require_cut(std::string_view op, const RowCut& cut, const ValueType& type, int64_t parts) {
  const Shape& shape = type.desc.shape;
  require(type.batched && cut.dim >= 1 && cut.dim < shape.rank(),
          "{}: dimension {} of {} is no dimension of a sample", op, cut.dim, shape.to_string());
  require(!cut.windows.empty() && cut.windows.front().count() > 0 &&
              std::ranges::all_of(
                  cut.windows, [&](Rows w) { return w.count() == cut.windows.front().count(); }),
          "{}: windows must have one height", op);
  require(shape[0] % parts == 0, "{}: {} are no samples in {} parts each", op, shape.to_string(),
          parts);
}

}  // namespace

std::string RowCut::to_string() const {
  std::string text = fmt::format("dim {} slabs {} windows", dim, slabs);
  for (const Rows w : windows) text += fmt::format(" {}:{}", w.first, w.last);
  return text;
}

std::string GatherRows::attributes() const {
  return fill_ == 0 ? cut_.to_string() : fmt::format("{} fill {}", cut_.to_string(), fill_);
}

std::vector<ValueType> GatherRows::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 1);
  require_cut(name(), cut_, in[0], cut_.slabs);
  Shape y = in[0].desc.shape;
  y[0] = y[0] / cut_.slabs * static_cast<int64_t>(cut_.windows.size());
  y[cut_.dim] = cut_.windows.front().count();
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> GatherRows::grad(const GradArgs& args) const {
  const Value x = args.node.in[0];
  return {args.graph.append1(
      args.node.name + ".dx",
      std::make_shared<AddRows>(cut_, args.graph.shape(x)[cut_.dim] * cut_.slabs), {args.dout[0]})};
}

std::string AddRows::attributes() const {
  return fmt::format("{} of {} rows", cut_.to_string(), rows_);
}

std::vector<ValueType> AddRows::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 1);
  require_cut(name(), cut_, in[0], static_cast<int64_t>(cut_.windows.size()));
  require(rows_ % cut_.slabs == 0 && is_float(in[0].desc.dtype),
          "add_rows: {} rows in {} slabs, of {}", rows_, cut_.slabs, in[0].desc.to_string());
  Shape x = in[0].desc.shape;
  x[0] = x[0] / static_cast<int64_t>(cut_.windows.size()) * cut_.slabs;
  x[cut_.dim] = rows_ / cut_.slabs;
  return {batched_as(x, in[0].desc.dtype)};
}

Reach pointwise_reach(std::span<const ValueType> in, int axis, Rows out) {
  Reach reach;
  for (const ValueType& type : in)
    reach.in.push_back(type.batched ? Reach::Input{2 + axis, out} : Reach::Input{});
  return reach;
}

}  // namespace tutti
