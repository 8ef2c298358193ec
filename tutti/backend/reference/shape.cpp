#include "tutti/backend/reference/rules.h"
#include "tutti/ops/shape_ops.h"

namespace tutti {
namespace {

/// Where the element `i` of a box with the shape `inner` lies in `outer`: index = start + step *
/// index, per dimension.
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

Placement placement(const std::vector<SliceRange>& ranges, const Shape& inner, const Shape& outer) {
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

Rule concat(const Concat& op) {
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

}  // namespace

Rule shape_rule(const KernelRequest& request) {
  const Op* op = request.op;
  if (dynamic_cast<const Reshape*>(op)) return {.run = reshape};
  if (const auto* c = dynamic_cast<const Concat*>(op)) return concat(*c);
  if (const auto* s = dynamic_cast<const Slice*>(op))
    return gather(placement(s->ranges(), request.out[0].shape, request.in[0].shape));
  if (const auto* s = dynamic_cast<const SliceGrad*>(op))
    return scatter(placement(s->ranges(), request.in[0].shape, request.out[0].shape), 0);
  if (const auto* p = dynamic_cast<const Pad*>(op)) {
    Placement place{request.in[0].shape, request.out[0].shape};
    for (size_t d = 0; d < p->low().size(); ++d) place.start[d + 1] = p->low()[d];
    return scatter(place, p->value());
  }
  return {};
}

}  // namespace tutti
