#include "tutti/ops/rank_rows.h"

#include "tutti/ops/parts.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

Value taken_rows(Graph& graph, const std::string& name, Rows rows, Value x) {
  return graph.append1(name, std::make_shared<TakeRows>(RowCut{.dim = 2, .windows = {rows}}), {x});
}

/// Joins the positions of all ranks.
Value join_rows(Graph& graph, const std::string& name, const RankRows& rows, int tag, Value mine) {
  std::vector<ExchangeParts::Give> gives;
  std::vector<ExchangeParts::Get> gets;
  const Rows own = rows.mine();
  RowCut cut{.dim = 2, .windows = {{-own.first, rows.all - own.first}}};
  for (int rank = 0; rank < rows.group.ranks; ++rank) {
    if (rank == rows.group.me) continue;
    const Rows theirs = rows.of(rank);
    ValueType type = graph.type(mine);
    type.desc.shape[2] = theirs.count();
    gives.push_back({0, rank});
    gets.push_back({rank, type});
    cut.others.push_back({theirs.first - own.first, theirs.last - own.first});
  }
  std::vector<Value> in{mine};
  for (const Value v :
       graph.append(name + ".ranks", std::make_shared<ExchangeParts>(tag, gives, gets, true), in))
    in.push_back(v);
  return graph.append1(name, std::make_shared<TakeRows>(std::move(cut)), in);
}

/// Returns own positions of the sum of the ranks' values, each of which covers all positions.
Value sum_rows(Graph& graph, const std::string& name, const RankRows& rows, int tag, Value mine,
               Value bias) {
  std::vector<ExchangeParts::Give> gives;
  std::vector<ExchangeParts::Get> gets;
  std::vector<Value> given;
  const auto ranks = static_cast<size_t>(rows.group.ranks), me = static_cast<size_t>(rows.group.me);
  const Value own = taken_rows(graph, name + ".own", rows.mine(), mine);
  for (int rank = 0; rank < rows.group.ranks; ++rank) {
    if (rank == rows.group.me) continue;
    gives.push_back({static_cast<int>(given.size()), rank});
    gets.push_back({rank, graph.type(own)});
    given.push_back(taken_rows(graph, fmt::format("{}.for{}", name, rank), rows.of(rank), mine));
  }
  std::vector<Value> in =
      graph.append(name + ".ranks", std::make_shared<ExchangeParts>(tag, gives, gets, true), given);
  in.insert(in.begin() + static_cast<std::ptrdiff_t>(me), own);
  CHECK(in.size() == ranks, "{} parts of {} ranks", in.size(), ranks);
  if (bias.valid()) in.push_back(bias);
  return graph.append1(name, std::make_shared<SumOfRanks>(rows.group, bias.valid()), in);
}

void require_rows(std::string_view op, const RankRows& rows, const ValueType& own,
                  const ValueType& all) {
  require(own.batched && all.batched && own.desc.shape.rank() > 2 &&
              own.desc.shape[2] == rows.mine().count() && all.desc.shape[2] == rows.all,
          "{}: {} and {} for {}", op, own.desc, all.desc, rows.to_string());
}

}  // namespace

std::string RankRows::to_string() const {
  return fmt::format("rows {}:{} of {} ranks {} me {}", mine().first, mine().last, all, group.ranks,
                     group.me);
}

std::string AllRows::attributes() const {
  return fmt::format("{} tag {}{}", rows_.to_string(), tag_, sums_ ? " sums" : "");
}

std::vector<ValueType> AllRows::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_rows(name(), rows_, in[0], in[1]);
  return {in[1]};
}

std::vector<Value> AllRows::grad(const GradArgs& args) const {
  const std::string name = args.node.name + ".dx";
  return {sums_ ? sum_rows(args.graph, name, rows_, tag_, args.dout[0], {})
                : taken_rows(args.graph, name, rows_.mine(), args.dout[0]),
          {}};
}

std::string OwnRows::attributes() const {
  return fmt::format("{} tag {}", rows_.to_string(), tag_);
}

std::vector<ValueType> OwnRows::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_rows(name(), rows_, in[1], in[0]);
  return {in[1]};
}

std::vector<Value> OwnRows::grad(const GradArgs& args) const {
  Value dx;
  if (args.needed[0]) dx = join_rows(args.graph, args.node.name + ".dx", rows_, tag_, args.dout[0]);
  return {dx, args.dout[0]};
}

std::string ParametersForAllRanks::attributes() const {
  return fmt::format("ranks {} me {} tag {}", group_.ranks, group_.me, tag_);
}

std::vector<Value> ParametersForAllRanks::grad(const GradArgs& args) const {
  std::vector<Value> mine, din(args.node.in.size());
  NormGroup peers{.peers = {}, .counts = {}, .me = static_cast<size_t>(group_.me), .tag = tag_};
  for (int rank = 0; rank < group_.ranks; ++rank) peers.peers.push_back(rank);
  for (size_t i = 0; i < din.size(); ++i)
    if (args.dout[i].valid() && args.needed[i]) mine.push_back(args.dout[i]);
  if (mine.empty()) return din;
  const auto all = exchange_in_group(args.graph, args.node.name + ".ranks", peers, tag_, mine);
  for (size_t i = 0, k = 0; i < din.size(); ++i) {
    if (!args.dout[i].valid() || !args.needed[i]) continue;
    std::vector<Value> of_ranks;
    for (const std::vector<Value>& of_rank : all) of_ranks.push_back(of_rank[k]);
    ++k;
    din[i] = args.graph.append1(args.graph[args.node.in[i]].name + ".sum",
                                std::make_shared<SumParts>(1.0f), of_ranks);
  }
  return din;
}

Value all_rows(Graph& graph, const std::string& name, const RankRows& rows, bool sums, int tag,
               Value mine) {
  const Value all = join_rows(graph, name, rows, tag, mine);
  return graph.append1(name + ".rule", std::make_shared<AllRows>(rows, sums, tag + 1), {mine, all});
}

Value own_rows_of_sum(Graph& graph, const std::string& name, const RankRows& rows, int tag,
                      Value mine, Value bias) {
  const Value own = sum_rows(graph, name, rows, tag, mine, bias);
  return graph.append1(name + ".rule", std::make_shared<OwnRows>(rows, tag + 1), {mine, own});
}

Value own_rows(Graph& graph, const std::string& name, const RankRows& rows, int tag, Value all) {
  const Value own = taken_rows(graph, name, rows.mine(), all);
  return graph.append1(name + ".rule", std::make_shared<OwnRows>(rows, tag + 1), {all, own});
}

}  // namespace tutti::ops
