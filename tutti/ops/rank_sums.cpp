#include "tutti/ops/rank_sums.h"

#include "tutti/ops/conv.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string SumOfRanks::attributes() const {
  return fmt::format("ranks {} me {}{}", group_.ranks, group_.me, bias_ ? " bias" : "");
}

std::vector<ValueType> SumOfRanks::infer(Types in) const {
  const auto ranks = static_cast<size_t>(group_.ranks);
  require_inputs(name(), in, ranks + (bias_ ? 1 : 0));
  for (const ValueType& x : in.first(ranks)) {
    require_batched(name(), x, 2);
    require(x.desc.shape == in[0].desc.shape && x.desc.dtype == in[0].desc.dtype,
            "sum_of_ranks: {} and {}", in[0].desc, x.desc);
  }
  if (bias_)
    require(!in.back().batched && in.back().desc.dtype == DType::f32 &&
                in.back().desc.shape == Shape{in[0].desc.shape[1]},
            "sum_of_ranks: bias {} does not fit {}", in.back().desc, in[0].desc);
  return {in[0]};
}

std::vector<Value> SumOfRanks::grad(const GradArgs& args) const {
  std::vector<Value> din(args.node.in.size());
  din[static_cast<size_t>(group_.me)] = args.dout[0];
  if (bias_ && args.needed.back())
    din.back() = args.append1(".db", std::make_shared<BiasBackward>(), {args.dout[0]});
  return din;
}

std::string ForAllRanks::attributes() const {
  return fmt::format("ranks {} me {} tag {}", group_.ranks, group_.me, tag_);
}

std::vector<ValueType> ForAllRanks::infer(Types in) const {
  require_inputs(name(), in, 1);
  return {in[0]};
}

std::vector<Value> ForAllRanks::grad(const GradArgs& args) const {
  return {sum_over_ranks(args.graph, args.node.name + ".dx", group_, tag_, args.dout[0])};
}

std::vector<Value> values_of_ranks(Graph& graph, const std::string& name, const RankGroup& group,
                                   int tag, Value mine) {
  NormGroup peers{.peers = {}, .counts = {}, .me = static_cast<size_t>(group.me), .tag = tag};
  for (int rank = 0; rank < group.ranks; ++rank) peers.peers.push_back(rank);
  std::vector<Value> all;
  for (const auto& each : exchange_in_group(graph, name, peers, tag, {mine}))
    all.push_back(each.front());
  return all;
}

Value sum_over_ranks(Graph& graph, const std::string& name, const RankGroup& group, int tag,
                     Value mine, Value bias) {
  std::vector<Value> in = values_of_ranks(graph, name + ".ranks", group, tag, mine);
  if (bias.valid()) in.push_back(bias);
  return graph.append1(name, std::make_shared<SumOfRanks>(group, bias.valid()), in);
}

}  // namespace tutti::ops
