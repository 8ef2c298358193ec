#include "tutti/ops/rank_sums.h"

#include "tutti/ops/conv.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string SumOfRanks::attributes() const {
  return fmt::format("ranks {} me {}{}", group_.ranks, group_.me, bias_ ? " bias" : "");
}

std::vector<graph::ValueType> SumOfRanks::infer(graph::Types in) const {
  const auto ranks = static_cast<size_t>(group_.ranks);
  require_inputs(name(), in, ranks + (bias_ ? 1 : 0));
  for (const graph::ValueType& x : in.first(ranks)) {
    require_batched(name(), x, 2);
    require(x.desc.shape == in[0].desc.shape && x.desc.dtype == in[0].desc.dtype,
            "sum_of_ranks: {} and {}", in[0].desc.to_string(), x.desc.to_string());
  }
  if (bias_)
    require(!in.back().batched && in.back().desc.dtype == DType::f32 &&
                in.back().desc.shape == Shape{in[0].desc.shape[1]},
            "sum_of_ranks: bias {} does not fit {}", in.back().desc.to_string(),
            in[0].desc.to_string());
  return {in[0]};
}

std::vector<graph::Value> SumOfRanks::grad(const graph::GradArgs& args) const {
  std::vector<graph::Value> din(args.node.in.size());
  din[static_cast<size_t>(group_.me)] = args.dout[0];
  if (bias_ && args.needed.back())
    din.back() = args.graph.append1(args.node.name + ".db", std::make_shared<BiasBackward>(),
                                    {args.dout[0]});
  return din;
}

std::string ForAllRanks::attributes() const {
  return fmt::format("ranks {} me {} tag {}", group_.ranks, group_.me, tag_);
}

std::vector<graph::ValueType> ForAllRanks::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  return {in[0]};
}

std::vector<graph::Value> ForAllRanks::grad(const graph::GradArgs& args) const {
  return {sum_over_ranks(args.graph, args.node.name + ".dx", group_, tag_, args.dout[0])};
}

std::vector<graph::Value> values_of_ranks(graph::Graph& graph, const std::string& name,
                                          const RankGroup& group, int tag, graph::Value mine) {
  NormGroup peers{.peers = {}, .counts = {}, .me = static_cast<size_t>(group.me), .tag = tag};
  for (int rank = 0; rank < group.ranks; ++rank) peers.peers.push_back(rank);
  std::vector<graph::Value> all;
  for (const auto& each : exchange_in_group(graph, name, peers, tag, {mine}))
    all.push_back(each.front());
  return all;
}

graph::Value sum_over_ranks(graph::Graph& graph, const std::string& name, const RankGroup& group,
                            int tag, graph::Value mine, graph::Value bias) {
  std::vector<graph::Value> in = values_of_ranks(graph, name + ".ranks", group, tag, mine);
  if (bias.valid()) in.push_back(bias);
  return graph.append(name, std::make_shared<SumOfRanks>(group, bias.valid()), in).front();
}

}  // namespace tutti::ops
