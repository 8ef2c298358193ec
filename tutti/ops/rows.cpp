#include "tutti/ops/rows.h"

#include <algorithm>

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_windows(std::string_view op, int dim, const std::vector<Rows>& windows,
                     const ValueType& type, int64_t parts) {
  const Shape& shape = type.desc.shape;
  require(type.batched && dim >= 1 && dim < shape.rank(),
          "{}: dimension {} of {} is no dimension of a sample", op, dim, shape);
  require(!windows.empty() && windows.front().count() > 0 &&
              std::ranges::all_of(windows,
                                  [&](Rows w) { return w.count() == windows.front().count(); }),
          "{}: windows must have one height", op);
  require(shape[0] % parts == 0, "{}: {} are no samples in {} parts each", op, shape, parts);
}

std::string text_of(const std::vector<Rows>& list) {
  std::string text;
  for (const Rows r : list) text += fmt::format(" {}:{}", r.first, r.last);
  return text;
}

bool share_rows(Rows a, Rows b) { return std::max(a.first, b.first) < std::min(a.last, b.last); }

/// Returns `like` with that many samples and rows.
Shape cut_shape(Shape like, int dim, int64_t samples, int64_t rows) {
  like[0] = samples;
  like[dim] = rows;
  return like;
}

}  // namespace

std::string RowCut::to_string() const {
  std::string text = fmt::format("dim {} slabs {} windows{}", dim, slabs, text_of(windows));
  return others.empty() ? text : text + " others" + text_of(others);
}

std::string GatherRows::attributes() const {
  return fill_ == 0 ? cut_.to_string() : fmt::format("{} fill {}", cut_.to_string(), fill_);
}

bool GatherRows::reads(size_t input, int64_t sample) const {
  const auto window = static_cast<size_t>(sample) % cut_.windows.size();
  return input == 0 || share_rows(cut_.windows[window], cut_.others[input - 1]);
}

std::vector<ValueType> GatherRows::infer(Types in) const {
  require_inputs(name(), in, 1 + cut_.others.size());
  require_windows(name(), cut_.dim, cut_.windows, in[0], cut_.slabs);
  const Shape& x = in[0].desc.shape;
  const int64_t samples = x[0] / cut_.slabs;
  for (size_t i = 0; i < cut_.others.size(); ++i)
    require(in[1 + i].desc.shape == cut_shape(x, cut_.dim, samples, cut_.others[i].count()) &&
                in[1 + i].desc.dtype == in[0].desc.dtype,
            "gather_rows: {} for rows {} to {} of {}", in[1 + i].desc.to_string(),
            cut_.others[i].first, cut_.others[i].last, in[0].desc);
  return {batched_as(cut_shape(x, cut_.dim, samples * static_cast<int64_t>(cut_.windows.size()),
                               cut_.windows.front().count()),
                     in[0].desc.dtype)};
}

std::vector<Value> GatherRows::grad(const GradArgs& args) const {
  std::vector<Value> din(args.node.in.size());
  for (size_t i = 0; i < din.size(); ++i) {
    if (!args.needed[i]) continue;
    const int64_t slabs = i == 0 ? cut_.slabs : 1;
    const Rows rows =
        i == 0 ? Rows{0, args.graph.shape(args.node.in[0])[cut_.dim] * slabs} : cut_.others[i - 1];
    din[i] = args.graph.append1(
        i == 0 ? args.node.name + ".dx" : fmt::format("{}.dx{}", args.node.name, i),
        std::make_shared<AddRows>(
            AddRows::Sum{.dim = cut_.dim, .slabs = slabs, .rows = rows, .windows = {cut_.windows}}),
        {args.dout[0]});
  }
  return din;
}

std::string AddRows::Sum::to_string() const {
  std::string text = fmt::format("dim {} slabs {} rows {}:{}", dim, slabs, rows.first, rows.last);
  for (const auto& list : windows) text += " windows" + text_of(list);
  return text;
}

bool AddRows::reads(size_t input, int64_t sample) const {
  const int64_t height = sum_.rows.count() / sum_.slabs,
                top = sum_.rows.first + sample % sum_.slabs * height;
  return std::ranges::any_of(sum_.windows[input], [&](Rows w) {
    return share_rows(w, {top, top + height});
  });
}

std::vector<ValueType> AddRows::infer(Types in) const {
  require_inputs(name(), in, sum_.windows.size());
  const auto samples_of = [&](size_t i) {
    return in[i].desc.shape[0] / static_cast<int64_t>(sum_.windows[i].size());
  };
  for (size_t i = 0; i < in.size(); ++i) {
    require_windows(name(), sum_.dim, sum_.windows[i], in[i],
                    static_cast<int64_t>(sum_.windows[i].size()));
    require(samples_of(i) == samples_of(0) && in[i].desc.dtype == in[0].desc.dtype &&
                is_float(in[i].desc.dtype),
            "add_rows: {} and {}", in[i].desc, in[0].desc);
  }
  require(sum_.rows.count() % sum_.slabs == 0, "add_rows: {} rows in {} slabs", sum_.rows.count(),
          sum_.slabs);
  return {batched_as(cut_shape(in[0].desc.shape, sum_.dim, samples_of(0) * sum_.slabs,
                               sum_.rows.count() / sum_.slabs),
                     in[0].desc.dtype)};
}

}  // namespace tutti::ops
