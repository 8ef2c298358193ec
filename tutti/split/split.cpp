#include "tutti/split/split.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/rows.h"
#include "tutti/split/splitter.h"

namespace tutti::split {
namespace {

/// The smallest range that holds all windows.
graph::Rows hull(const std::vector<graph::Rows>& windows) {
  graph::Rows all = windows.front();
  for (const graph::Rows w : windows)
    all = {std::min(all.first, w.first), std::max(all.last, w.last)};
  return all;
}

graph::Rows meet(graph::Rows a, graph::Rows b) {
  return {std::max(a.first, b.first), std::max({a.first, b.first, std::min(a.last, b.last)})};
}

graph::Rows moved(graph::Rows rows, int64_t by) { return {rows.first + by, rows.last + by}; }

}  // namespace

std::optional<PartNode> Splitter::node_of_part(const graph::Node& n, int part,
                                               int64_t slabs) const {
  const std::vector<graph::ValueType> types = types_in(old_, n);
  PartNode made;
  for (int axis = 0; axis < PartGrid::kAxes; ++axis) {
    if (axis == 1 && grid_.along(1) == 1) break;
    const int64_t extent = rows_of(old_, n, axis);
    const graph::Rows own = grid_.rows(extent, part, axis);
    if (own.count() == 0 || (axis == 0 && own.count() % slabs != 0)) return std::nullopt;
    const graph::Op& op = made.op ? *made.op : *n.op;
    const auto cut =
        reach_of(op, types, axis, axis == 0 ? cut_rows(own, slabs) : std::vector<graph::Rows>{own});
    if (!cut) return std::nullopt;
    if (cut->op) made.op = cut->op;
    made.in.resize(cut->in.size());
    for (size_t i = 0; i < cut->in.size(); ++i) {
      Wanted& wanted = made.in[i];
      if (axis == 0) {
        wanted = {cut->in[i].dim, cut->in[i].windows, {}, cut->padding};
      } else if (cut->in[i].dim >= 0) {
        wanted.across = cut->in[i].windows.front();
      }
    }
  }
  return made;
}

/// Whether every part can compute its own rows of the node.
bool Splitter::is_shared(const graph::Node& n) const {
  if (grid_.parts() == 1) return false;
  for (int part = 0; part < grid_.parts(); ++part)
    if (!node_of_part(n, part, 1)) return false;
  return true;
}

graph::Value copy_bound_value(graph::Graph& graph, const graph::ValueInfo& info,
                              const Shape& shape) {
  switch (info.role) {
    case graph::Role::input: return graph.input(info.name, info.type.desc, info.type.batched);
    case graph::Role::parameter: return graph.parameter(info.name, shape, info.init);
    case graph::Role::statistic: return graph.statistic(info.name, shape, info.init);
    case graph::Role::scalar: return graph.scalar(info.name);
    case graph::Role::table:
    case graph::Role::result: return {};
    case graph::Role::state:
    case graph::Role::gradient: CHECK(false, "'{}' in a forward graph", info.name);
  }
  return {};
}

/// Copies the values that the caller binds, in order, so that a listing of parameters keeps its
/// order.
void Splitter::copy_bound() {
  graph::Graph& graph = result_.graph;
  for (size_t i = 0; i < old_.values().size(); ++i) {
    const graph::ValueInfo& info = old_.values()[i];
    const Shape& shape = info.type.desc.shape;
    held_[i].value = info.role == graph::Role::table
                         ? graph.table(info.name, shape, info.init, info.rows)
                         : copy_bound_value(graph, info, shape);
  }
}

/// Receives the rows of v that this part needs from other parts, and sends the rows that they need,
/// along one axis. `from` is v with `slabs` along axis 0, and has the wanted columns already.
Splitter::Exchanged Splitter::exchange(graph::Value v, graph::Value from, int64_t slabs, int dim,
                                       int axis, const std::vector<graph::Rows>& needed_by_part) {
  Exchanged got;
  if (!held(v).shared) return got;
  const int me = grid_.part();
  const graph::Rows own = rows_of_part(v, dim, me, axis);
  std::vector<ops::ExchangeParts::Give> gives;
  std::vector<ops::ExchangeParts::Get> gets;
  std::vector<graph::Value> given;
  for (int other = 0; other < grid_.parts(); ++other) {
    if (other == me || grid_.at(other, 1 - axis) != grid_.at(me, 1 - axis)) continue;
    const graph::Rows give = meet(needed_by_part[static_cast<size_t>(other)], own);
    if (give.count() > 0) {
      gives.push_back({static_cast<int>(given.size()), grid_.peer_of(other)});
      given.push_back(gather(
          {}, from,
          {.dim = dim, .slabs = axis == 0 ? slabs : 1, .windows = {moved(give, -own.first)}}, 0));
    }
    const graph::Rows get =
        meet(needed_by_part[static_cast<size_t>(me)], rows_of_part(v, dim, other, axis));
    if (get.count() == 0) continue;
    graph::ValueType type = result_.graph.type(from);
    if (axis == 0) type.desc.shape[0] /= slabs;
    type.desc.shape[dim] = get.count();
    gets.push_back({grid_.peer_of(other), type});
    got.rows.push_back(moved(get, -own.first));
  }
  const int tag = std::exchange(tag_, tag_ + 2);
  if (given.empty()) given.push_back(from);
  if (gives.empty() && gets.empty()) return got;
  got.values = result_.graph.append(
      fmt::format("{}.parts{}", old_[v].name, tag),
      std::make_shared<ops::ExchangeParts>(tag, gives, gets, for_result_), given);
  return got;
}

graph::Value Splitter::gather(const Exchanged& others, graph::Value from, ops::RowCut cut,
                              float fill) {
  cut.others = others.rows;
  const int64_t rows = result_.graph.shape(from)[cut.dim] * cut.slabs;
  if (others.rows.empty() && cut.windows == cut_rows({0, rows}, cut.slabs)) return from;
  const auto op = std::make_shared<ops::GatherRows>(std::move(cut), fill);
  std::vector<graph::Value> in{from};
  in.insert(in.end(), others.values.begin(), others.values.end());
  std::string key = op->attributes();
  for (const graph::Value v : in) key += fmt::format(" {}", v.id);
  graph::Value& made = gathered_[key];
  if (!made.valid())
    made = result_.graph
               .append(fmt::format("{}.rows{}", result_.graph[from].name, gathered_.size()), op, in)
               .front();
  return made;
}

/// Returns v with the columns that are wanted along axis 1.
graph::Value Splitter::read_across(graph::Value v, const std::vector<Wanted>& wanted_by_part) {
  const Wanted& mine = wanted_by_part[static_cast<size_t>(grid_.part())];
  if (grid_.along(1) == 1) return held(v).value;
  std::vector<graph::Rows> needed;
  for (const Wanted& wanted : wanted_by_part) needed.push_back(wanted.across);
  const int dim = mine.dim + 1;
  const graph::Rows own = rows_of_part(v, dim, grid_.part(), 1);
  if (std::ranges::all_of(std::views::iota(0, grid_.parts()), [&](int part) {
        return needed[static_cast<size_t>(part)] == rows_of_part(v, dim, part, 1);
      }))
    return held(v).value;
  const Exchanged others = exchange(v, held(v).value, held(v).slabs, dim, 1, needed);
  return gather(others, held(v).value,
                {.dim = dim, .slabs = 1, .windows = {moved(mine.across, -own.first)}},
                mine.padding);
}

graph::Value Splitter::read(graph::Value v, const std::vector<Wanted>& wanted_by_part) {
  const Wanted& mine = wanted_by_part[static_cast<size_t>(grid_.part())];
  if (mine.dim < 0) return held(v).value;
  std::string key = fmt::format("{}:", v.id);
  for (const Wanted& wanted : wanted_by_part) {
    key += fmt::format(" {} {}:{}", wanted.padding, wanted.across.first, wanted.across.last);
    for (const graph::Rows w : wanted.windows) key += fmt::format(" {}:{}", w.first, w.last);
  }
  if (const auto at = gathered_.find(key); at != gathered_.end()) return at->second;
  const graph::Value from = read_across(v, wanted_by_part);
  std::vector<graph::Rows> needed;
  for (const Wanted& wanted : wanted_by_part) needed.push_back(hull(wanted.windows));
  const graph::Rows own = rows_of_part(v, mine.dim, grid_.part(), 0);
  Exchanged others;
  bool all_have_theirs = true;
  for (int part = 0; part < grid_.parts(); ++part)
    all_have_theirs =
        all_have_theirs && needed[static_cast<size_t>(part)] == rows_of_part(v, mine.dim, part, 0);
  if (!all_have_theirs) others = exchange(v, from, held(v).slabs, mine.dim, 0, needed);
  ops::RowCut cut{.dim = mine.dim, .slabs = held(v).slabs, .windows = {}};
  for (const graph::Rows w : mine.windows) cut.windows.push_back(moved(w, -own.first));
  return gathered_[key] = gather(others, from, std::move(cut), mine.padding);
}

std::vector<Wanted> Splitter::all_rows(graph::Value v) const {
  Wanted wanted{kRowsDim, {{0, old_.shape(v)[kRowsDim]}}, {}, 0};
  if (grid_.along(1) > 1) wanted.across = {0, old_.shape(v)[kRowsDim + 1]};
  return std::vector<Wanted>(static_cast<size_t>(grid_.parts()), wanted);
}

graph::Value Splitter::whole(graph::Value v) {
  if (!old_.type(v).batched || (!held(v).shared && held(v).slabs == 1)) return held(v).value;
  return read(v, all_rows(v));
}

void Splitter::add_node(int number) {
  const graph::Node& n = old_.nodes()[static_cast<size_t>(number)];
  const bool shared = is_shared(n);
  const int64_t slabs = shared || grid_.parts() == 1 ? slabs_.slabs_of(number) : 1;
  graph::OpPtr op = n.op;
  std::vector<graph::Value> in;
  if (!shared && slabs == 1) {
    for (const graph::Value v : n.in) in.push_back(whole(v));
  } else {
    std::vector<PartNode> parts;
    for (int part = 0; part < grid_.parts(); ++part)
      // The slabs of other parts do not matter here, only how many rows they need.
      parts.push_back(*node_of_part(n, part, part == grid_.part() ? slabs : 1));
    const PartNode& mine = parts[static_cast<size_t>(grid_.part())];
    if (mine.op) op = mine.op;
    for (size_t k = 0; k < n.in.size(); ++k) {
      std::vector<Wanted> wanted;
      for (const PartNode& part : parts) wanted.push_back(part.in[k]);
      in.push_back(read(n.in[k], wanted));
    }
  }
  if (dynamic_cast<const ops::BatchNormStats*>(n.op.get()) && grid_.peers() > 1 &&
      (shared || grid_.peers() > grid_.parts()))
    return add_shared_stats(n, in[0]);
  if (graph::OpPtr loss = loss_of_part(n, shared)) op = loss;
  const auto* entropy = dynamic_cast<const ops::SoftmaxCrossEntropy*>(op.get());
  if (entropy && entropy->loss().mean_over == ops::MeanOver::given)
    in.push_back(weights_of_labels(n, in[1]));
  const std::vector<graph::Value> out = result_.graph.append(n.name, op, in);
  for (size_t k = 0; k < out.size(); ++k) {
    const bool batched = old_.type(n.out[k]).batched;
    held_[static_cast<size_t>(n.out[k].id)] = {out[k], batched ? slabs : 1, batched && shared};
  }
}

ops::Rewritten Splitter::build() {
  held_.resize(old_.values().size());
  copy_bound();
  for (size_t i = 0; i < old_.nodes().size(); ++i) add_node(static_cast<int>(i));
  for_result_ = true;
  result_.of.resize(old_.values().size());
  for (const graph::Value v : old_.outputs()) {
    if (held(v).shared && !whole_outputs_) continue;
    result_.of[static_cast<size_t>(v.id)] = whole(v);
    result_.graph.mark_output(whole(v));
  }
  for (size_t i = 0; i < old_.values().size(); ++i) {
    const graph::Value v{static_cast<int32_t>(i)};
    if (held_[i].slabs == 1 && !held_[i].shared) result_.of[i] = whole(v);
  }
  return std::move(result_);
}

ops::Rewritten split_samples(const graph::Graph& graph, const SplitSettings& settings) {
  const SlabChoice slabs(graph, settings);
  if (settings.grid.peers() > 1 || !slabs.none()) return Splitter(graph, settings, slabs).build();
  ops::Rewritten same{graph, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    same.of.push_back(graph::Value{static_cast<int32_t>(i)});
  return same;
}

}  // namespace tutti::split
