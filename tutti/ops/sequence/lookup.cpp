#include "tutti/ops/sequence/lookup.h"

#include "tutti/ops/shape_check.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::ops {
namespace {

bool is_matrix(const Shape& w) { return w.rank() == 2 || (w.rank() == 3 && w[2] == 1); }

/// True for vectors [M, C] or [1, M, C].
bool is_rows(const Shape& p) { return p.rank() == 2 || (p.rank() == 3 && p[0] == 1); }

void require_tokens(std::string_view op, const ValueType& tokens) {
  require(tokens.batched && tokens.desc.shape.rank() == 2 && tokens.desc.dtype == DType::i32,
          "{}: needs tokens, i32 [N, positions], met {}", op, tokens.desc);
}

void require_sequence(std::string_view op, const ValueType& x) {
  require_batched(op, x, 3);
  require(x.desc.shape.rank() == 3, "{}: needs a sequence [N, channels, positions], met {}", op,
          x.desc);
}

}  // namespace

std::vector<ValueType> Lookup::infer(Types in) const {
  require_inputs(name(), in, 2);
  const Shape& w = in[0].desc.shape;
  require(!in[0].batched && is_matrix(w) && in[0].desc.dtype == DType::f32,
          "lookup: needs weights, f32 [vocabulary, channels], met {}", in[0].desc);
  require_tokens(name(), in[1]);
  require(is_float(output_), "lookup: the result cannot be {}", name_of(output_));
  const Shape& tokens = in[1].desc.shape;
  return {batched_as({tokens[0], w[1], tokens[1]}, output_)};
}

std::string Lookup::attributes() const {
  return first_ == 0 ? std::string(name_of(output_))
                     : fmt::format("{} first {}", name_of(output_), first_);
}

std::vector<Value> Lookup::grad(const GradArgs& args) const {
  if (!args.needed[0]) return {{}, {}};
  const Node& node = args.node;
  return {
      args.append1(".dw", std::make_shared<LookupGrad>(args.graph.shape(node.in[0]), false, first_),
                   {args.dout[0], node.in[1]}),
      {}};
}

std::optional<Reach> Lookup::reach(Types, int axis, Rows out) const {
  if (axis != 0) return std::nullopt;
  return Reach{.in = {{-1, {}}, {1, out}}, .op = nullptr};
}

std::string LookupGrad::attributes() const {
  return fmt::format("w {}{}{}", w_shape_, adds_ ? " adds" : "",
                     first_ == 0 ? "" : fmt::format(" first {}", first_));
}

std::vector<ValueType> LookupGrad::infer(Types in) const {
  require_inputs(name(), in, adds_ ? 3 : 2);
  require_sequence(name(), in[0]);
  require_tokens(name(), in[1]);
  const Shape &dy = in[0].desc.shape, &tokens = in[1].desc.shape;
  require(is_matrix(w_shape_) && dy[1] == w_shape_[1] && dy[0] == tokens[0] && dy[2] == tokens[1],
          "lookup_grad: dy {}, tokens {} and w {} do not fit", dy, tokens, w_shape_);
  if (adds_)
    require(in[2].desc.shape == w_shape_ && in[2].desc.dtype == DType::f32 && !in[2].batched,
            "lookup_grad: adds to {}, w is {}", in[2].desc, w_shape_);
  return {unbatched_f32(w_shape_)};
}

std::string AddPositions::attributes() const {
  return first_ == 0 ? std::string() : fmt::format("first {}", first_);
}

std::vector<ValueType> AddPositions::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_sequence(name(), in[0]);
  const Shape &x = in[0].desc.shape, &p = in[1].desc.shape;
  require(!in[1].batched && in[1].desc.dtype == DType::f32 && is_rows(p) &&
              p[p.rank() - 1] == x[1] && p[p.rank() - 2] >= first_ + x[2],
          "add_positions: {} for x {}: f32 [{} or more, {}] is needed", in[1].desc, x,
          first_ + x[2], x[1]);
  return {in[0]};
}

std::vector<Value> AddPositions::grad(const GradArgs& args) const {
  std::vector<Value> din{args.dout[0], {}};
  if (args.needed[1])
    din[1] = args.append1(
        ".dp", std::make_shared<AddPositionsGrad>(args.graph.shape(args.node.in[1]), first_),
        {args.dout[0]});
  return din;
}

std::string AddPositionsGrad::attributes() const {
  return first_ == 0 ? fmt::format("p {}", p_shape_)
                     : fmt::format("p {} first {}", p_shape_, first_);
}

std::vector<ValueType> AddPositionsGrad::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_sequence(name(), in[0]);
  const Shape& dy = in[0].desc.shape;
  require(is_rows(p_shape_) && p_shape_[p_shape_.rank() - 1] == dy[1] &&
              p_shape_[p_shape_.rank() - 2] >= first_ + dy[2],
          "add_positions_grad: dy {} for positions {}", dy, p_shape_);
  return {unbatched_f32(p_shape_)};
}

std::vector<ValueType> PrependToken::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_sequence(name(), in[0]);
  Shape y = in[0].desc.shape;
  const Shape& token = in[1].desc.shape;
  require(!in[1].batched && in[1].desc.dtype == DType::f32 && is_rows(token) &&
              token.elements() == y[1] && token[token.rank() - 1] == y[1],
          "prepend_token: {} for x {}: f32 [1, {}] is needed", in[1].desc, y, y[1]);
  ++y[2];
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> PrependToken::grad(const GradArgs& args) const {
  const Shape x = args.graph.shape(args.node.in[0]);
  const auto part = [&](const char* what, SliceRange positions) {
    return args.append1(what,
                        std::make_shared<Slice>(std::vector<SliceRange>{{0, x[1]}, positions}),
                        {args.dout[0]});
  };
  std::vector<Value> din(2);
  if (args.needed[0]) din[0] = part(".dx", {1, x[2] + 1});
  if (args.needed[1])
    din[1] = args.append1(".dtoken",
                          std::make_shared<AddPositionsGrad>(args.graph.shape(args.node.in[1])),
                          {part(".dy", {0, 1})});
  return din;
}

}  // namespace tutti::ops
