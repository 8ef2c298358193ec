#include "tutti/ops/sequence/attention.h"

#include <cmath>

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// Throws unless the sequences and the mask fit each other.
void require_attention(std::string_view op, const AttentionAttributes& a, Types in) {
  const size_t sequences = a.sequences();
  require_inputs(op, in, sequences + (a.mask == AttentionMask::none ? 0 : 1));
  require(a.heads >= 1 && a.key_heads >= 1 && a.heads % a.key_heads == 0,
          "{}: {} heads do not share {} heads of keys evenly", op, a.heads, a.key_heads);
  require(a.scale >= 0, "{}: a scale of {}, it must be above 0", op, a.scale);
  for (size_t i = 0; i < sequences; ++i) {
    require_batched(op, in[i], 3);
    const Shape& x = in[i].desc.shape;
    require(x.rank() == 3 && x[0] == in[0].desc.shape[0] && in[i].desc.dtype == in[0].desc.dtype,
            "{}: {} and {} are not sequences [N, channels, positions] of one type", op, in[0].desc,
            in[i].desc);
  }
  const Shape &first = in[0].desc.shape, &last = in[sequences - 1].desc.shape;
  const int64_t groups = a.inputs == AttentionInputs::packed ? a.heads + 2 * a.key_heads : a.heads;
  require(first[1] % groups == 0, "{}: {} channels of {} are no {} heads", op, first[1], first,
          groups);
  const int64_t width = first[1] / groups;
  for (size_t i = 1; i < sequences; ++i)
    require(in[i].desc.shape[1] ==
                    a.key_heads * width * (a.inputs == AttentionInputs::q_and_kv ? 2 : 1) &&
                in[i].desc.shape[2] == last[2],
            "{}: keys and values {} do not fit queries {} of {} heads, {} of keys", op,
            in[i].desc.shape, first, a.heads, a.key_heads);
  require(a.dropout >= 0 && keep_threshold(a.dropout) < 0x10000, "{}: dropout {} is not in [0, 1)",
          op, a.dropout);
  require(a.dropout == 0 || first[2] * last[2] < int64_t{1} << 35,
          "{}: dropout of {} x {} pairs of positions", op, first[2], last[2]);
  require(!a.causal || first[2] <= last[2], "{}: causal, with {} queries and {} keys", op, first[2],
          last[2]);
  if (a.mask == AttentionMask::none) return;
  const ValueType& mask = in[sequences];
  require(mask.batched && mask.desc.dtype == DType::i32 &&
              mask.desc.shape == Shape{first[0], last[2]} &&
              (a.mask == AttentionMask::keys || first[2] == last[2]),
          "{}: the mask is {}, i32 [{}, {}] is needed", op, mask.desc, first[0], last[2]);
}

/// Returns the number of query-key products that are computed; half of them if causal.
double pairs(const AttentionAttributes& a, const AttentionShape& s) {
  const auto all = static_cast<double>(s.queries) * static_cast<double>(s.keys);
  return a.causal ? all - static_cast<double>(s.queries * (s.queries - 1) / 2) : all;
}

double flop_of(const AttentionAttributes& a, Types sequences, double products) {
  std::vector<Shape> shapes;
  for (const ValueType& x : sequences) shapes.push_back(x.desc.shape);
  const AttentionShape s = AttentionShape::of(a, shapes);
  return 2 * products * static_cast<double>(shapes[0][0] * a.heads * s.width) * pairs(a, s);
}

}  // namespace

std::string_view name_of(AttentionMask mask) {
  constexpr std::string_view kNames[] = {"none", "segments", "keys"};
  return kNames[static_cast<size_t>(mask)];
}

std::string_view name_of(AttentionInputs inputs) {
  constexpr std::string_view kNames[] = {"q,k,v", "q,kv", "qkv"};
  return kNames[static_cast<size_t>(inputs)];
}

std::string AttentionAttributes::to_string() const {
  std::string text = fmt::format("heads {} of {} keys {}", heads, key_heads, name_of(inputs));
  if (causal) text += " causal";
  if (scale != 0) text += fmt::format(" scale {}", scale);
  if (mask != AttentionMask::none) text += fmt::format(" mask {}", name_of(mask));
  if (dropout > 0) text += fmt::format(" dropout {} salt {}", dropout, salt);
  if (dropout > 0 && first_head > 0) text += fmt::format(" first head {}", first_head);
  if (whole) text += " whole";
  return text;
}

AttentionShape AttentionShape::of(const AttentionAttributes& a, std::span<const Shape> sequences) {
  const bool packed = a.inputs == AttentionInputs::packed;
  AttentionShape s;
  s.width = sequences[0][1] / (packed ? a.heads + 2 * a.key_heads : a.heads);
  s.queries = sequences[0][2];
  s.keys = sequences[a.sequences() - 1][2];
  s.scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<float>(s.width));
  const int64_t q = a.heads * s.width, k = a.key_heads * s.width;
  switch (a.inputs) {
    case AttentionInputs::packed:
      s.k = {0, q};
      s.v = {0, q + k};
      break;
    case AttentionInputs::q_and_kv:
      s.k = {1, 0};
      s.v = {1, k};
      break;
    case AttentionInputs::separate:
      s.k = {1, 0};
      s.v = {2, 0};
      break;
  }
  return s;
}

std::vector<ValueType> Attention::infer(Types in) const {
  require_attention(name(), a_, in);
  std::vector<Shape> shapes;
  for (const ValueType& x : in) shapes.push_back(x.desc.shape);
  const AttentionShape s = AttentionShape::of(a_, shapes);
  const int64_t batch = shapes[0][0];
  return {batched_as({batch, a_.heads * s.width, s.queries}, in[0].desc.dtype),
          batched_as({batch, a_.heads, s.queries}, DType::f32)};
}

std::vector<Value> Attention::grad(const GradArgs& args) const {
  const Node& node = args.node;
  require(args.dout[0].valid() && !args.dout[1].valid(),
          "attention: only the first result of '{}' has a gradient", node.name);
  std::vector<Value> in{args.dout[0], node.out[0], node.out[1]};
  in.insert(in.end(), node.in.begin(), node.in.end());
  std::vector<Value> din = args.append(".dx", std::make_shared<AttentionGrad>(a_), in);
  din.resize(node.in.size());
  return din;
}

double Attention::flop(Types in, Types) const { return flop_of(a_, in, 2); }

std::vector<ValueType> AttentionGrad::infer(Types in) const {
  require(in.size() > 3, "{}: {} inputs given", name(), in.size());
  const std::vector<ValueType> y = Attention(a_).infer(in.subspan(3));
  for (size_t i = 0; i < 3; ++i) {
    const ValueType& want = y[i == 2 ? 1 : 0];
    require(
        in[i].desc.shape == want.desc.shape && in[i].desc.dtype == want.desc.dtype && in[i].batched,
        "{}: input {} is {}, the results of these sequences are {}", name(), i, in[i].desc,
        want.desc);
  }
  std::vector<ValueType> out(in.begin() + 3,
                             in.begin() + 3 + static_cast<std::ptrdiff_t>(a_.sequences()));
  return out;
}

double AttentionGrad::flop(Types in, Types) const { return flop_of(a_, in.subspan(3), 5); }

}  // namespace tutti::ops
