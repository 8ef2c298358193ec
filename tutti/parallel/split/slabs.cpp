#include "tutti/parallel/split/slabs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "tutti/ops/rows.h"

namespace tutti {
namespace {

constexpr int kAxis = 0;           // slabs are cut along the outermost spatial dimension
constexpr int kDim = 2 + kAxis;    // of every result
constexpr size_t kLargeTiles = 32;  // a layer is large from so many times tile_bytes a sample on
constexpr double kMostCopied = 1.5;  // rows that slabs may read for each row of a sample
constexpr double kLeastToWeights = 6;  // bytes of a slab for each byte of weights: a slab's weight
                                       // gradient is written, read and added

bool same(const OpPtr& a, const OpPtr& b) {
  return (!a && !b) || (a && b && a->name() == b->name() && a->attributes() == b->attributes());
}

/// What a node reads when its results are made in slabs.
struct SlabReach {
  OpPtr op;
  float padding = 0;
  struct Input {
    int dim = -1;
    std::vector<Rows> windows;
  };
  std::vector<Input> in;
};

/// Nodes whose values are cut alike.
struct Region {
  std::vector<int> nodes;
  int64_t slabs = 1;
};

class Splitter {
 public:
  Splitter(const Graph& old, const SlabSettings& settings)
      : old_(old), settings_(settings), region_of_(old.nodes().size(), -1) {
    for (const Value v : old.with_role(Role::input))
      if (old.type(v).batched) batch_ = old.shape(v)[0];
    find_regions();
    for (auto& [root, region] : regions_) region.slabs = slabs_for(region);
  }

  bool changes() const {
    return std::ranges::any_of(regions_, [](const auto& r) { return r.second.slabs > 1; });
  }
  Rewritten build();

 private:
  struct Made {
    Value value;
    int64_t slabs = 1;
  };

  const Node& node(int n) const { return old_.nodes()[static_cast<size_t>(n)]; }
  std::vector<ValueType> types_in(const Node& n) const;
  int64_t rows_of(const Node& n) const;
  std::optional<SlabReach> reach(const Node& n, int64_t slabs) const;
  bool reads_slabs_alone(const SlabReach::Input& input, Value v) const;
  void find_regions();
  int root_of(int n) const {
    while (region_of_[static_cast<size_t>(n)] != n) n = region_of_[static_cast<size_t>(n)];
    return n;
  }
  int64_t slabs_for(const Region& region) const;
  bool pays(const Region& region, int64_t slabs) const;
  size_t largest_layer(const Region& region) const;
  int64_t slabs_of(int n) const {
    return region_of_[static_cast<size_t>(n)] < 0 ? 1 : regions_.at(root_of(n)).slabs;
  }
  Value windows_of(Value v, const SlabReach::Input& input, float fill, int64_t slabs);
  Value whole(Value v);
  void copy_bound();

  const Graph& old_;
  const SlabSettings settings_;
  int64_t batch_ = 1;
  std::vector<int> region_of_;  // by node: another node of its region, itself for the root; -1: none
  std::map<int, Region> regions_;
  std::vector<Made> made_;
  std::map<std::string, Value> gathered_;
  Rewritten result_;
};

std::vector<ValueType> Splitter::types_in(const Node& n) const {
  std::vector<ValueType> types;
  for (const Value v : n.in) types.push_back(old_.type(v));
  return types;
}

/// Those that are dealt out: of the results, or of the first input where there are only sums.
int64_t Splitter::rows_of(const Node& n) const {
  for (const auto* list : {&n.out, &n.in})
    if (!list->empty() && old_.type(list->front()).batched)
      return old_.shape(list->front()).rank() > kDim ? old_.shape(list->front())[kDim] : 0;
  return 0;
}

std::optional<SlabReach> Splitter::reach(const Node& n, int64_t slabs) const {
  const int64_t rows = rows_of(n);
  if (rows == 0 || rows % slabs != 0) return std::nullopt;
  const std::vector<ValueType> types = types_in(n);
  SlabReach all;
  for (int64_t s = 0; s < slabs; ++s) {
    const auto one = n.op->reach(types, kAxis, {s * rows / slabs, (s + 1) * rows / slabs});
    if (!one) return std::nullopt;
    if (s == 0) {
      all.op = one->op;
      all.padding = one->padding;
      all.in.resize(one->in.size());
    }
    if (!same(all.op, one->op)) return std::nullopt;
    for (size_t i = 0; i < all.in.size(); ++i) {
      SlabReach::Input& input = all.in[i];
      input.dim = one->in[i].dim;
      if (input.dim >= old_.shape(n.in[i]).rank()) return std::nullopt;
      input.windows.push_back(one->in[i].rows);
      if (input.windows.back().count() != input.windows.front().count()) return std::nullopt;
    }
  }
  return all;
}

/// Each slab of the result needs the same slab of v and nothing else.
bool Splitter::reads_slabs_alone(const SlabReach::Input& input, Value v) const {
  if (input.dim < 0) return false;
  const auto slabs = static_cast<int64_t>(input.windows.size());
  const int64_t rows = old_.shape(v)[input.dim];
  for (int64_t s = 0; s < slabs; ++s)
    if (rows % slabs != 0 || input.windows[static_cast<size_t>(s)] !=
                                 Rows{s * rows / slabs, (s + 1) * rows / slabs})
      return false;
  return true;
}

/// A layer that reads its neighbours' rows begins a region. What works slab by slab joins the
/// regions of all that it reads.
void Splitter::find_regions() {
  for (size_t i = 0; i < old_.nodes().size(); ++i) {
    const int n = static_cast<int>(i);
    const int64_t rows = rows_of(node(n));
    if (rows < 2 || !reach(node(n), 2)) {
      if (rows < 2 || !reach(node(n), rows)) continue;
    }
    const std::optional<SlabReach> finest = reach(node(n), rows);
    region_of_[i] = n;
    for (size_t k = 0; finest && k < node(n).in.size(); ++k) {
      const int producer = old_[node(n).in[k]].producer;
      if (producer >= 0 && region_of_[static_cast<size_t>(producer)] >= 0 &&
          reads_slabs_alone(finest->in[k], node(n).in[k]))
        region_of_[static_cast<size_t>(root_of(producer))] = n;
    }
  }
  for (size_t i = 0; i < region_of_.size(); ++i)
    if (region_of_[i] >= 0)
      regions_[root_of(static_cast<int>(i))].nodes.push_back(static_cast<int>(i));
}

size_t Splitter::largest_layer(const Region& region) const {
  size_t most = 0;
  for (const int n : region.nodes) {
    size_t bytes = 0;
    for (const auto* list : {&node(n).in, &node(n).out})
      for (const Value v : *list)
        if (old_.type(v).batched)
          bytes += old_.type(v).desc.bytes() / static_cast<size_t>(batch_);
    most = std::max(most, bytes);
  }
  return most;
}

/// Whether so many slabs cost little more than fewer: in rows that are copied, and in gradients of
/// weights that are added.
bool Splitter::pays(const Region& region, int64_t slabs) const {
  for (const int n : region.nodes) {
    const std::optional<SlabReach> cut = reach(node(n), slabs);
    double activations = 0, weights = 0;
    for (size_t i = 0; i < node(n).in.size(); ++i) {
      const Value v = node(n).in[i];
      const auto bytes = static_cast<double>(old_.type(v).desc.bytes());
      if (!old_.type(v).batched) {
        weights += bytes;
        continue;
      }
      activations += bytes / static_cast<double>(batch_);
      const double copied = static_cast<double>(cut->in[i].windows.front().count() * slabs) /
                            static_cast<double>(old_.shape(v)[cut->in[i].dim]);
      if (copied > kMostCopied) return false;
    }
    for (const Value v : node(n).out)
      if (old_.type(v).batched)
        activations += static_cast<double>(old_.type(v).desc.bytes()) / static_cast<double>(batch_);
    if (weights > 0 &&
        activations / static_cast<double>(slabs) < kLeastToWeights * weights)
      return false;
  }
  return true;
}

int64_t Splitter::slabs_for(const Region& region) const {
  int64_t rows = 0;
  for (const int n : region.nodes) rows = std::gcd(rows, rows_of(node(n)));
  const auto possible = [&](int64_t slabs) {
    return rows % slabs == 0 && std::ranges::all_of(region.nodes, [&](int n) {
             return reach(node(n), slabs).has_value();
           });
  };
  if (settings_.slabs > 0) return possible(settings_.slabs) ? settings_.slabs : 1;
  const auto even = [&](int64_t slabs) { return batch_ * slabs % settings_.threads == 0; };
  const size_t bytes = largest_layer(region);
  const bool large = bytes > kLargeTiles * settings_.tile_bytes;
  int64_t best = 1;
  if (even(1) && !large) return best;
  for (int64_t slabs = 2; slabs <= rows; ++slabs) {
    if (!even(slabs) || !possible(slabs)) continue;
    const bool needed = !even(best);
    if (!needed && (!large || !pays(region, slabs))) break;
    best = slabs;
    if (bytes / static_cast<size_t>(best) <= settings_.tile_bytes) break;
  }
  return best;
}

/// Values that the caller binds, in their order, so that a listing of parameters keeps its own.
void Splitter::copy_bound() {
  Graph& graph = result_.graph;
  for (size_t i = 0; i < old_.values().size(); ++i) {
    const ValueInfo& info = old_.values()[i];
    Value& made = made_[i].value;
    switch (info.role) {
      case Role::input: made = graph.input(info.name, info.type.desc, info.type.batched); break;
      case Role::parameter:
        made = graph.parameter(info.name, info.type.desc.shape, info.init);
        break;
      case Role::statistic:
        made = graph.statistic(info.name, info.type.desc.shape, info.init);
        break;
      case Role::scalar: made = graph.scalar(info.name); break;
      case Role::state:
      case Role::gradient: CHECK(false, "'{}' in a forward graph", info.name);
      case Role::result: break;
    }
  }
}

Value Splitter::windows_of(Value v, const SlabReach::Input& input, float fill, int64_t slabs) {
  const Made& made = made_[static_cast<size_t>(v.id)];
  if (input.dim < 0 || (made.slabs == slabs && reads_slabs_alone(input, v))) return made.value;
  const auto gather = std::make_shared<GatherRows>(
      RowCut{.dim = input.dim, .slabs = made.slabs, .windows = input.windows}, fill);
  Value& gathered = gathered_[fmt::format("{} {}", v.id, gather->attributes())];
  if (!gathered.valid())
    gathered = result_.graph.append1(
        fmt::format("{}.rows{}", old_[v].name, gathered_.size()), gather, {made.value});
  return gathered;
}

Value Splitter::whole(Value v) {
  if (!old_.type(v).batched || made_[static_cast<size_t>(v.id)].slabs == 1)
    return made_[static_cast<size_t>(v.id)].value;
  return windows_of(v, {.dim = kDim, .windows = {{0, old_.shape(v)[kDim]}}}, 0, 1);
}

Rewritten Splitter::build() {
  made_.resize(old_.values().size());
  copy_bound();
  for (size_t i = 0; i < old_.nodes().size(); ++i) {
    const Node& n = old_.nodes()[i];
    const int64_t slabs = slabs_of(static_cast<int>(i));
    OpPtr op = n.op;
    std::vector<Value> in;
    if (slabs == 1) {
      for (const Value v : n.in) in.push_back(whole(v));
    } else {
      const SlabReach cut = *reach(n, slabs);
      if (cut.op) op = cut.op;
      for (size_t k = 0; k < n.in.size(); ++k)
        in.push_back(windows_of(n.in[k], cut.in[k], cut.padding, slabs));
    }
    const std::vector<Value> out = result_.graph.append(n.name, op, in);
    for (size_t k = 0; k < out.size(); ++k)
      made_[static_cast<size_t>(n.out[k].id)] = {out[k], old_.type(n.out[k]).batched ? slabs : 1};
  }
  for (const Value v : old_.outputs()) result_.graph.mark_output(whole(v));
  result_.of.resize(old_.values().size());
  for (size_t i = 0; i < old_.values().size(); ++i) {
    const Value v{static_cast<int32_t>(i)};
    const bool is_output = std::ranges::find(old_.outputs(), v) != old_.outputs().end();
    if (made_[i].slabs == 1 || is_output) result_.of[i] = whole(v);
  }
  return std::move(result_);
}

}  // namespace

Rewritten split_into_slabs(const Graph& graph, const SlabSettings& settings) {
  Splitter splitter(graph, settings);
  if (splitter.changes()) return splitter.build();
  Rewritten same{graph, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    same.of.push_back(Value{static_cast<int32_t>(i)});
  return same;
}

}  // namespace tutti
