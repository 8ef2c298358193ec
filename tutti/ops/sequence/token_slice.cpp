#include "tutti/ops/sequence/token_slice.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_slice_logits(std::string_view op, const VocabularySlice& slice, Types in) {
  require_batched(op, in[0], 3);
  const Shape& x = in[0].desc.shape;
  require(x.rank() == 3 && x[1] == slice.count && slice.first >= 0 &&
              slice.first + slice.count <= slice.all,
          "{}: logits {} are not those of {}", op, in[0].desc, slice.to_string());
  require(in[1].batched && in[1].desc.dtype == DType::i32 && in[1].desc.shape == Shape{x[0], x[2]},
          "{}: logits {} need i32 labels [N, positions], met {}", op, in[0].desc, in[1].desc);
}

void require_count(std::string_view op, const ValueType& count) {
  require(!count.batched && count.desc.shape.rank() == 0,
          "{}: the count of tokens is {}, a scalar is needed", op, count.desc);
}

ValueType of_positions(const Shape& x, int64_t numbers) {
  return batched_as({x[0], numbers, x[2]}, DType::f32);
}

}  // namespace

std::string VocabularySlice::to_string() const {
  return fmt::format("tokens {}+{} of {}", first, count, all);
}

std::vector<ValueType> TokenStatistics::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_slice_logits(name(), a_, in);
  return {of_positions(in[0].desc.shape, 3)};
}

std::string TokenLossOfRanks::attributes() const {
  return fmt::format("{} {} ranks {}", a_.to_string(), slice_.to_string(), ranks_);
}

std::vector<ValueType> TokenLossOfRanks::infer(Types in) const {
  require_inputs(name(), in, 3 + static_cast<size_t>(ranks_));
  require_slice_logits(name(), slice_, in);
  require_count(name(), in[2]);
  const Shape& x = in[0].desc.shape;
  const ValueType statistics = of_positions(x, 3), number = of_positions(x, 1);
  for (const ValueType& of_rank : in.subspan(3))
    require(of_rank.batched && of_rank.desc == statistics.desc, "{}: statistics {}, {} are needed",
            name(), of_rank.desc, statistics.desc);
  return {unbatched_f32({}), number, number};
}

std::vector<Value> TokenLossOfRanks::grad(const GradArgs& args) const {
  const Node& node = args.node;
  require(!args.dout[0].valid() && !args.dout[1].valid(),
          "token_loss_of_ranks: '{}' is a loss and must not feed other ops", node.name);
  std::vector<Value> din(node.in.size());
  if (args.needed[0])
    din[0] = args.append1(".dx", std::make_shared<TokenLossOfRanksGrad>(a_, slice_),
                          {node.in[0], node.in[1], node.in[2], node.out[2]});
  return din;
}

std::string TokenLossOfRanksGrad::attributes() const {
  return fmt::format("{} {}", a_.to_string(), slice_.to_string());
}

std::vector<ValueType> TokenLossOfRanksGrad::infer(Types in) const {
  require_inputs(name(), in, 4);
  require_slice_logits(name(), slice_, in);
  require_count(name(), in[2]);
  const ValueType want = of_positions(in[0].desc.shape, 1);
  require(in[3].batched && in[3].desc == want.desc, "{}: the logarithms are {}, {} is needed",
          name(), in[3].desc, want.desc);
  return {in[0]};
}

std::vector<ValueType> TokenRivals::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_slice_logits(name(), a_, in);
  return {of_positions(in[0].desc.shape, 3)};
}

std::string TokenHitsOfRanks::attributes() const {
  return fmt::format("vocabulary {} ranks {}", vocabulary_, ranks_);
}

std::vector<ValueType> TokenHitsOfRanks::infer(Types in) const {
  require_inputs(name(), in, 1 + static_cast<size_t>(ranks_));
  const Shape& labels = in[0].desc.shape;
  require(in[0].batched && in[0].desc.dtype == DType::i32 && labels.rank() == 2 && vocabulary_ >= 1,
          "{}: labels are {}, i32 [N, positions] is needed", name(), in[0].desc);
  const Shape x{labels[0], 1, labels[1]};
  const ValueType rivals = of_positions(x, 3);
  for (const ValueType& of_rank : in.subspan(1))
    require(of_rank.batched && of_rank.desc == rivals.desc, "{}: rivals {}, {} are needed", name(),
            of_rank.desc, rivals.desc);
  return {of_positions(x, 1)};
}

}  // namespace tutti::ops
