#include "tutti/backend/reference/rules.h"
#include "tutti/ops/rank_rows.h"
#include "tutti/ops/rows.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::backend {
namespace {

/// Finds the place of element `i` of a box with the shape `inner` in `outer`: index = start + step
/// * index, per dimension.
struct Placement {
  Shape inner, outer;
  std::array<int64_t, Shape::kMaxRank> start{}, step{1, 1, 1, 1, 1, 1};

  int64_t operator()(int64_t i) const {
    int64_t place = 0, stride = 1;
    for (int d = inner.rank() - 1; d >= 0; --d) {
      const auto k = static_cast<size_t>(d);
      place += (start[k] + step[k] * (i % inner[d])) * stride;
      i /= inner[d];
      stride *= outer[d];
    }
    return place;
  }
};

Placement placement(const std::vector<ops::SliceRange>& ranges, const Shape& inner,
                    const Shape& outer) {
  Placement p{inner, outer};
  for (size_t d = 0; d < ranges.size(); ++d) {
    p.start[d + 1] = ranges[d].start;
    p.step[d + 1] = ranges[d].step;
  }
  return p;
}

void reshape(const RuleCall& call) {
  for (int64_t i = 0; i < call.out[0].size(); ++i) call.out[0][i] = call.in[0][i];
}

Rule scatter(const Placement& p, double background) {
  return {.run = [p, background](const RuleCall& call) {
    call.out[0].fill(background);
    for (int64_t i = 0; i < call.in[0].size(); ++i) call.out[0][p(i)] = call.in[0][i];
  }};
}

Rule gather(const Placement& p) {
  return {.run = [p](const RuleCall& call) {
    for (int64_t i = 0; i < call.out[0].size(); ++i) call.out[0][i] = call.in[0][p(i)];
  }};
}

Rule move_box(const Placement& from, const Placement& to) {
  return {.run = [from, to](const RuleCall& call) {
    call.out[0].fill(0);
    for (int64_t i = 0; i < to.inner.elements(); ++i) call.out[0][to(i)] = call.in[0][from(i)];
  }};
}

Rule concat(const ops::Concat& op) {
  return {.run = [axis = op.axis()](const RuleCall& call) {
    int64_t start = 0;
    for (const PlainTensor& x : call.in) {
      Placement p{x.shape(), call.out[0].shape()};
      p.start[static_cast<size_t>(axis)] = start;
      for (int64_t i = 0; i < x.size(); ++i) call.out[0][p(i)] = x[i];
      start += x.shape()[axis];
    }
  }};
}

/// A tensor as [sample, before, rows, after].
struct RowView {
  RowView(const Shape& shape, int dim)
      : before(1), rows(shape[dim]), after(shape.elements_from(dim + 1)) {
    for (int d = 1; d < dim; ++d) before *= shape[d];
  }
  int64_t at(int64_t sample, int64_t b, int64_t row, int64_t a) const {
    return ((sample * before + b) * rows + row) * after + a;
  }
  int64_t before, rows, after;
};

/// For every element of windows of samples and every one of `rows` of `slabs` that it meets, calls
/// meet(element of the windows' tensor, element of the slabs', or -1 for rows outside). The
/// windows' tensor begins with window number `first`.
struct RowMeeting {
  int dim;
  int64_t slabs;
  graph::Rows rows;
  std::vector<graph::Rows> windows;

  template <class Meet>
  void each(const Shape& slabs_shape, const Shape& windows_shape, int64_t first,
            const Meet& meet) const {
    const RowView slab(slabs_shape, dim), window(windows_shape, dim);
    const auto count = static_cast<int64_t>(windows.size());
    for (int64_t w = 0; w < windows_shape[0]; ++w) {
      const int64_t sample = (first + w) / count;
      const graph::Rows range = windows[static_cast<size_t>((first + w) % count)];
      for (int64_t b = 0; b < window.before; ++b)
        for (int64_t r = 0; r < window.rows; ++r)
          for (int64_t a = 0; a < window.after; ++a) {
            const int64_t row = range.first + r - rows.first;
            const bool inside = row >= 0 && row < rows.count();
            meet(window.at(w, b, r, a),
                 inside ? slab.at(sample * slabs + row / slab.rows, b, row % slab.rows, a) : -1);
          }
    }
  }
};

Rule gather_rows(const ops::GatherRows& op) {
  return {.run = [cut = op.cut(), fill = op.fill()](const RuleCall& call) {
    PlainTensor& y = call.out[0];
    y.fill(static_cast<double>(fill));
    for (size_t i = 0; i < call.in.size(); ++i) {
      const PlainTensor& x = call.in[i];
      const int64_t slabs = i == 0 ? cut.slabs : 1;
      const graph::Rows rows =
          i == 0 ? graph::Rows{0, x.shape()[cut.dim] * slabs} : cut.others[i - 1];
      RowMeeting{cut.dim, slabs, rows, cut.windows}.each(x.shape(), y.shape(), call.first_sample,
                                                         [&](int64_t to, int64_t from) {
                                                           if (from >= 0) y[to] = x[from];
                                                         });
    }
  }};
}

Rule add_rows(const ops::AddRows& op) {
  return {.run = [sum = op.sum()](const RuleCall& call) {
    PlainTensor& dx = call.out[0];
    dx.fill(0);
    const int64_t first = call.first_sample * dx.shape().elements_from(1);
    for (size_t i = 0; i < call.in.size(); ++i)
      RowMeeting{sum.dim, sum.slabs, sum.rows, sum.windows[i]}.each(
          dx.shape(), call.in[i].shape(), 0, [&](int64_t from, int64_t to) {
            if (to >= first && to < first + dx.size()) dx[to - first] += call.in[i][from];
          });
  }};
}

}  // namespace

void register_shape_rules(RuleTable& table) {
  table.add<ops::Reshape>(reshape);
  table.add<ops::Concat>(concat);
  table.add<ops::GatherRows, ops::TakeRows>(gather_rows);
  table.add<ops::AddRows>(add_rows);
  table.add<ops::Slice>([](const ops::Slice& op, const KernelRequest& r) {
    return gather(placement(op.ranges(), r.out[0].shape, r.in[0].shape));
  });
  table.add<ops::SliceGrad>([](const ops::SliceGrad& op, const KernelRequest& r) {
    return scatter(placement(op.ranges(), r.in[0].shape, r.out[0].shape), 0);
  });
  table.add<ops::MoveBox>([](const ops::MoveBox& op, const KernelRequest& r) {
    const Shape &x = r.in[0].shape, &y = r.out[0].shape;
    Shape box = x;
    for (int d = 1; d < x.rank(); ++d) box[d] = op.from()[static_cast<size_t>(d) - 1].count();
    return move_box(placement(op.from(), box, x), placement(op.to(), box, y));
  });
  table.add<ops::Pad>([](const ops::Pad& op, const KernelRequest& r) {
    Placement place{r.in[0].shape, r.out[0].shape};
    for (size_t d = 0; d < op.low().size(); ++d) place.start[d + 1] = op.low()[d];
    return scatter(place, op.value());
  });
}

}  // namespace tutti::backend
