#include "tutti/split/slab_choice.h"

#include <algorithm>
#include <numeric>

namespace tutti::split {
namespace {

constexpr int kAxis = 0;               // slabs are cut along the outermost spatial dimension
constexpr double kLargeTiles = 32;     // a layer is large from so many times tile_bytes per sample
constexpr double kMostCopied = 0.25;   // bytes of neighbours' rows for each byte of a layer
constexpr double kLeastToWeights = 6;  // bytes of a slab for each byte of weights: a slab's
                                       // gradient of the weights is written, read and added
constexpr int64_t kLeastGain = 4;      // for slabs that threads share unevenly

bool same(const graph::OpPtr& a, const graph::OpPtr& b) {
  return (!a && !b) || (a && b && a->name() == b->name() && a->attributes() == b->attributes());
}

}  // namespace

std::vector<graph::ValueType> types_in(const graph::Graph& graph, const graph::Node& node) {
  std::vector<graph::ValueType> types;
  for (const graph::Value v : node.in) types.push_back(graph.type(v));
  return types;
}

int64_t rows_of(const graph::Graph& graph, const graph::Node& node, int axis) {
  for (const auto* list : {&node.out, &node.in})
    if (!list->empty() && graph.type(list->front()).batched) {
      const Shape& shape = graph.shape(list->front());
      return shape.rank() > 2 + axis ? shape[2 + axis] : 0;
    }
  return 0;
}

std::vector<graph::Rows> cut_rows(graph::Rows rows, int64_t count) {
  std::vector<graph::Rows> windows;
  for (int64_t i = 0; i < count; ++i)
    windows.push_back(
        {rows.first + rows.count() * i / count, rows.first + rows.count() * (i + 1) / count});
  return windows;
}

std::optional<RowReach> reach_of(const graph::Op& op, std::span<const graph::ValueType> types,
                                 int axis, const std::vector<graph::Rows>& windows) {
  RowReach all;
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto one = op.reach(types, axis, windows[w]);
    if (!one) return std::nullopt;
    if (w == 0) {
      all.op = one->op;
      all.padding = one->padding;
      all.in.resize(one->in.size());
    }
    if (!same(all.op, one->op)) return std::nullopt;
    for (size_t i = 0; i < all.in.size(); ++i) {
      RowReach::Input& input = all.in[i];
      input.dim = one->in[i].dim;
      if (input.dim >= types[i].desc.shape.rank()) return std::nullopt;
      input.windows.push_back(one->in[i].rows);
      if (input.windows.back().count() != input.windows.front().count()) return std::nullopt;
    }
  }
  return all;
}

SlabChoice::SlabChoice(const graph::Graph& graph, const SplitSettings& settings)
    : graph_(graph), settings_(settings), region_of_(graph.nodes().size(), -1) {
  for (const graph::Value v : graph.with_role(graph::Role::input))
    if (graph.type(v).batched) batch_ = graph.shape(v)[0];
  find_regions();
  for (auto& [root, region] : regions_) region.slabs = slabs_for(region);
}

bool SlabChoice::none() const {
  return std::ranges::all_of(regions_, [](const auto& r) { return r.second.slabs == 1; });
}

graph::Rows SlabChoice::own_rows(int n) const {
  return settings_.grid.rows(rows_of(graph_, node(n), kAxis), settings_.grid.part(), kAxis);
}

std::optional<RowReach> SlabChoice::reach(int n, int64_t slabs) const {
  const graph::Rows rows = own_rows(n);
  if (rows.count() == 0 || rows.count() % slabs != 0) return std::nullopt;
  return reach_of(*node(n).op, types_in(graph_, node(n)), kAxis, cut_rows(rows, slabs));
}

int64_t SlabChoice::most_slabs(int n) const {
  const int64_t rows = own_rows(n).count();
  for (int64_t slabs = rows; slabs > 1; --slabs)
    if (rows % slabs == 0 && reach(n, slabs)) return slabs;
  return 1;
}

/// A layer that reads its neighbours' rows begins a region. A node that works row by row joins the
/// regions of all its inputs.
void SlabChoice::find_regions() {
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    const int n = static_cast<int>(i);
    const graph::Rows rows = own_rows(n);
    const int64_t slabs = most_slabs(n);
    if (slabs == 1) continue;
    region_of_[i] = n;
    // A transposed convolution of stride 2 makes two rows at a time from whole rows of its input.
    if (slabs != rows.count()) continue;
    const std::optional<RowReach> finest = reach(n, slabs);
    for (size_t k = 0; k < node(n).in.size(); ++k) {
      const graph::Value v = node(n).in[k];
      const int producer = graph_[v].producer, dim = finest->in[k].dim;
      if (dim < 0 || producer < 0 || region_of_[static_cast<size_t>(producer)] < 0) continue;
      const graph::Rows held =
          settings_.grid.rows(graph_.shape(v)[dim], settings_.grid.part(), kAxis);
      if (held.count() % rows.count() == 0 && finest->in[k].windows == cut_rows(held, rows.count()))
        region_of_[static_cast<size_t>(root_of(producer))] = n;
    }
  }
  for (size_t i = 0; i < region_of_.size(); ++i)
    if (region_of_[i] >= 0)
      regions_[root_of(static_cast<int>(i))].nodes.push_back(static_cast<int>(i));
}

/// Returns the bytes of a sample that a rank holds, on average over parts.
double SlabChoice::share_of(graph::Value v) const {
  return static_cast<double>(graph_.type(v).desc.bytes()) /
         static_cast<double>(batch_ * settings_.grid.parts());
}

double SlabChoice::largest_layer(const Region& region) const {
  double most = 0;
  for (const int n : region.nodes) {
    double bytes = 0;
    for (const auto* list : {&node(n).in, &node(n).out})
      for (const graph::Value v : *list)
        if (graph_.type(v).batched) bytes += share_of(v);
    most = std::max(most, bytes);
  }
  return most;
}

/// Whether that many slabs cost little more than fewer, counting copies of neighbours' rows and
/// additions of weights' gradients.
bool SlabChoice::pays(const Region& region, int64_t slabs) const {
  for (const int n : region.nodes) {
    const std::optional<RowReach> cut = reach(n, slabs);
    double activations = 0, weights = 0, copied = 0;
    for (size_t i = 0; i < node(n).in.size(); ++i) {
      const graph::Value v = node(n).in[i];
      if (!graph_.type(v).batched) {
        weights += static_cast<double>(graph_.type(v).desc.bytes());
        continue;
      }
      activations += share_of(v);
      if (graph_.shape(v)[cut->in[i].dim] == 1) continue;  // the same for all slabs
      const double rows = static_cast<double>(cut->in[i].windows.front().count() * slabs) *
                          settings_.grid.along(kAxis) /
                          static_cast<double>(graph_.shape(v)[cut->in[i].dim]);
      copied += std::max(rows - 1, 0.0) * share_of(v);
    }
    for (const graph::Value v : node(n).out)
      if (graph_.type(v).batched) activations += share_of(v);
    if (copied > kMostCopied * activations) return false;
    if (activations / static_cast<double>(slabs) < kLeastToWeights * weights) return false;
  }
  return true;
}

int64_t SlabChoice::slabs_for(const Region& region) const {
  int64_t rows = 0;
  for (const int n : region.nodes) rows = std::gcd(rows, own_rows(n).count());
  const auto possible = [&](int64_t slabs) {
    return rows % slabs == 0 &&
           std::ranges::all_of(region.nodes, [&](int n) { return reach(n, slabs).has_value(); });
  };
  if (settings_.slabs > 0) return possible(settings_.slabs) ? settings_.slabs : 1;
  const auto even = [&](int64_t slabs) { return batch_ * slabs % settings_.threads == 0; };
  const double bytes = largest_layer(region);
  const auto tile = static_cast<double>(settings_.tile_bytes);
  const bool large = bytes > kLargeTiles * tile;
  int64_t best = 1;
  if (even(1) && !large) return best;
  for (int64_t slabs = 2; slabs <= rows; ++slabs) {
    if (!even(slabs) || !possible(slabs)) continue;
    if (even(best) && (!large || !pays(region, slabs))) break;
    best = slabs;
    if (bytes / static_cast<double>(best) <= tile) break;
  }
  return even(best) ? best : uneven_slabs(rows, possible);
}

/// Returns the fewest slabs that give every thread work, or as many as are possible; 1 if too few
/// threads would gain by them. Layers that make rows in pairs cannot give each of 64 threads three
/// rows.
int64_t SlabChoice::uneven_slabs(int64_t rows, const std::function<bool(int64_t)>& possible) const {
  const auto rounds = [&](int64_t samples) {
    return (samples + settings_.threads - 1) / settings_.threads;
  };
  int64_t most = 1;
  for (int64_t slabs = 2; slabs <= rows && batch_ * most < settings_.threads; ++slabs)
    if (possible(slabs)) most = slabs;
  return rounds(batch_) * most >= kLeastGain * rounds(batch_ * most) ? most : 1;
}

}  // namespace tutti::split
