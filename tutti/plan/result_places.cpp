#include "tutti/plan/result_places.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tutti/graph/per_value.h"
#include "tutti/plan/layouts.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/tiles.h"

namespace tutti::plan {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

/// Memory of one result, or of several that lie in it one after the other. Moments are positions in
/// the order of execution (Schedule::order).
struct Block {
  std::vector<Moments> when;  ///< each period from being made until the last reader
  bool stored = false;        ///< in the arena; otherwise in tiles
  int last() const { return when.back().last; }
};

/// Unites two lists of periods, merging those that meet.
std::vector<Moments> together(std::vector<Moments> all, const std::vector<Moments>& more) {
  all.insert(all.end(), more.begin(), more.end());
  std::ranges::sort(all, {}, &Moments::first);
  std::vector<Moments> merged;
  for (const Moments& next : all)
    if (!merged.empty() && next.first <= merged.back().last)
      merged.back().last = std::max(merged.back().last, next.last);
    else
      merged.push_back(next);
  return merged;
}

/// The blocks of all results. Each begins as its own owner.
class Blocks {
 public:
  explicit Blocks(const graph::Graph& graph) : owners_(graph), blocks_(graph) {}

  void add(graph::Value v, Block block) {
    owners_[v] = v;
    blocks_[v] = block;
    results_.push_back(v);
  }
  const std::vector<graph::Value>& results() const { return results_; }
  bool has(graph::Value v) const { return owners_[v].valid(); }
  graph::Value owner(graph::Value v) const {
    while (!(owners_[v] == v)) v = owners_[v];
    return v;
  }
  const Block& block_of(graph::Value v) const { return blocks_[owner(v)]; }
  /// Makes `v` lie in the memory of `in` from now on.
  void join(graph::Value v, graph::Value in) {
    const graph::Value from = owner(v), to = owner(in);
    owners_[from] = to;
    Block& joined = blocks_[to];
    joined.when = together(joined.when, blocks_[from].when);
    joined.stored |= blocks_[from].stored;
  }

 private:
  graph::PerValue<graph::Value> owners_;
  graph::PerValue<Block> blocks_;  // an owner's block stands for all values that lie in it
  std::vector<graph::Value> results_;
};

struct Uses {
  graph::PerValue<std::vector<Moments>> when;  ///< when the results of bands live, one period for
                                               ///< each time that they are made
  graph::PerValue<int> last_reader;            ///< position of the last reader; -1: none
  graph::PerValue<int> last_shared;   ///< the last band in which any tile, or an exchange, may
                                      ///< read any sample; -1: none
  graph::PerValue<char> leaves_band;  ///< whether another band than its own, or an update, reads it
  graph::PerValue<char> is_output;

  bool stored(const graph::Graph& graph, graph::Value v) const {
    return !graph.type(v).batched || is_output[v] || leaves_band[v];
  }
};

/// Finds who reads each value, except when bands make and read it.
Uses uses_without_bands(const graph::Graph& graph, const Schedule& schedule) {
  Uses uses{graph::PerValue<std::vector<Moments>>(graph), graph::PerValue<int>(graph, -1),
            graph::PerValue<int>(graph, -1), graph::PerValue<char>(graph),
            graph::PerValue<char>(graph)};
  const auto share_until = [&](const graph::Node& node, int band) {
    for (const graph::Value v : node.in) uses.last_shared[v] = std::max(uses.last_shared[v], band);
  };
  const auto band_of = [&](int n) { return n < 0 ? -1 : schedule.band_of[static_cast<size_t>(n)]; };
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (const graph::Value v : graph.nodes()[n].in) {
      uses.last_reader[v] = std::max(uses.last_reader[v], schedule.order[n]);
      if (schedule.band_of[n] != band_of(graph[v].producer)) uses.leaves_band[v] = 1;
    }
  for (size_t b = 0; b < schedule.bands.size(); ++b) {
    const Band& band = schedule.bands[b];
    if (band.whole)  // it has no tiles, so its results leave the band
      for (const graph::Value v : graph.nodes()[static_cast<size_t>(band.nodes.front())].out)
        uses.leaves_band[v] = 1;
    for (const int n : band.nodes)
      if (const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
          graph.walk(node) == graph::Walk::across)
        share_until(node, static_cast<int>(b));
    // An input of an exchange is read until the exchange is waited for.
    for (const int e : band.waits)
      share_until(graph.nodes()[static_cast<size_t>(e)], static_cast<int>(b));
  }
  for (const int e : schedule.waits_at_end)
    share_until(graph.nodes()[static_cast<size_t>(e)], static_cast<int>(schedule.bands.size()));
  for (const graph::Value v : graph.outputs()) uses.is_output[v] = 1;
  return uses;
}

/// Goes through the bands: a value that is made again lives from then until its last reader, and
/// need not live between its last reader before and then. Values that stay in a band live in both
/// runs of it.
Uses uses_of(const graph::Graph& graph, const Schedule& schedule) {
  Uses uses = uses_without_bands(graph, schedule);
  int position = 0;
  for (const Band& band : schedule.bands)
    for (const int n : band.nodes) {
      const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
      const auto counts = [&](graph::Value v) { return band.repeats < 0 || uses.stored(graph, v); };
      for (const graph::Value v : node.in) {
        if (!counts(v)) continue;
        uses.last_reader[v] = std::max(uses.last_reader[v], position);
        if (!uses.when[v].empty()) uses.when[v].back().last = position;
      }
      for (const graph::Value v : node.out)
        if (counts(v)) uses.when[v].push_back({position, position});
      ++position;
    }
  // Exchanges and updates have positions in the order, too.
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const graph::Value v{static_cast<int32_t>(i)};
    if (std::vector<Moments>& when = uses.when[v]; !when.empty())
      when.back().last =
          uses.is_output[v] ? kForever : std::max(when.back().last, uses.last_reader[v]);
  }
  return uses;
}

/// Returns, for each value that a gradient takes over, that gradient.
graph::PerValue<graph::Value> taken_over(const graph::Graph& graph) {
  graph::PerValue<graph::Value> by(graph);
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    for (const graph::Value v : taken_over_by(graph, g)) by[v] = g;
  return by;
}

Blocks blocks_of(const graph::Graph& graph, const Schedule& schedule, const Uses& uses,
                 const graph::PerValue<graph::Value>& taken) {
  Blocks blocks(graph);
  const auto order = [&](int n) { return schedule.order[static_cast<size_t>(n)]; };
  const auto node = [&](int n) -> const graph::Node& {
    return graph.nodes()[static_cast<size_t>(n)];
  };
  // Received values may arrive at any time between the exchange's start and the wait for it.
  const auto receive = [&](int e, int begin) {
    for (const graph::Value v : node(e).out) {
      const bool kept = uses.is_output[v] || uses.last_reader[v] < 0;
      blocks.add(v, {.when = {{begin, kept ? kForever : std::max(uses.last_reader[v], begin)}},
                     .stored = true});
    }
  };
  for (const int e : schedule.begins) receive(e, 0);
  for (const Band& band : schedule.bands) {
    if (band.repeats >= 0) continue;
    for (const int n : band.nodes)
      for (const graph::Value v : node(n).out)
        if (graph[v].role == graph::Role::result && !taken[v].valid())
          blocks.add(v, {.when = uses.when[v], .stored = uses.stored(graph, v)});
    for (const int e : band.starts) receive(e, order(band.nodes.back()));
  }
  // An update may run when the next forward pass has begun: its results share no memory with the
  // results of bands.
  for (const int n : schedule.updates)
    for (const graph::Value v : node(n).out)
      if (graph[v].role == graph::Role::result)
        blocks.add(v, {.when = {{0, kForever}}, .stored = uses.stored(graph, v)});
  return blocks;
}

/// Whether a band that repeats a part of node `n`'s band makes a value in the memory of `in`, but
/// does not run `n`.
bool made_again_without(const graph::Graph& graph, const Schedule& schedule, int n, graph::Value in,
                        const Blocks& blocks) {
  const auto lies_there = [&](graph::Value v) {
    return blocks.has(v) && blocks.owner(v) == blocks.owner(in);
  };
  return std::ranges::any_of(schedule.bands, [&](const Band& band) {
    if (band.repeats != schedule.band_of[static_cast<size_t>(n)]) return false;
    if (std::ranges::find(band.nodes, n) != band.nodes.end()) return false;
    return std::ranges::any_of(band.nodes, [&](int made_by) {
      return std::ranges::any_of(graph.nodes()[static_cast<size_t>(made_by)].out, lies_there);
    });
  });
}

/// Lets the outputs of node `n` of a band take over the memory of inputs that nothing reads later
/// and no other tile reads at the same time.
void share_in_place(const Plan& plan, const Schedule& schedule, int n, const Uses& uses,
                    const graph::PerValue<graph::Value>& taken, Blocks& blocks) {
  const graph::Graph& graph = plan.graph;
  const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
  const int position = schedule.order[static_cast<size_t>(n)],
            band = schedule.band_of[static_cast<size_t>(n)];
  for (size_t o = 0; o < node.out.size(); ++o) {
    const int from = node.op->in_place(static_cast<int>(o));
    if (from < 0) continue;
    const graph::Value in = node.in[static_cast<size_t>(from)], out = node.out[o];
    if (graph[in].role != graph::Role::result || graph[out].role != graph::Role::result ||
        uses.is_output[in])
      continue;
    if (taken[in].valid() || taken[out].valid()) continue;
    if (!(plan.desc(in) == plan.desc(out)) || graph.type(in).batched != graph.type(out).batched)
      continue;
    const bool read_later = blocks.block_of(in).last() > position || uses.last_shared[in] >= band;
    const bool read_twice = std::ranges::count(node.in, in) > 1;
    if (read_later || read_twice) continue;
    // Arena memory is lent out between two lives of a value, but a tile's value has only one:
    // making it again without `out` would overwrite what lies there by then.
    if (!blocks.block_of(in).stored && uses.stored(graph, out) &&
        made_again_without(graph, schedule, n, in, blocks))
      continue;
    blocks.join(out, in);
  }
}

/// Finds the band of a position; updates come after all bands.
class BandAt {
 public:
  explicit BandAt(const Schedule& schedule) : count_(static_cast<int>(schedule.bands.size())) {
    for (int b = 0; b < count_; ++b)
      bands_.insert(bands_.end(), schedule.bands[static_cast<size_t>(b)].nodes.size(), b);
  }
  int operator()(int position) const {
    const auto p = static_cast<size_t>(position);
    return p < bands_.size() ? bands_[p] : count_;
  }

 private:
  int count_;
  std::vector<int> bands_;
};

/// Blocks that share one arena, and their owners.
struct Arena {
  std::vector<graph::Value> owners;
  std::vector<Lifetime> lifetimes;
  void add(graph::Value owner, Lifetime lifetime) {
    owners.push_back(owner);
    lifetimes.push_back(lifetime);
  }
  /// Places all blocks in `base` and returns the arena's bytes.
  size_t place(Base base, graph::PerValue<Place>& places) const {
    const ArenaPlan plan = plan_arena(lifetimes);
    for (size_t i = 0; i < owners.size(); ++i) places[owners[i]] = {base, plan.offsets[i], 0};
    return plan.bytes;
  }
};

/// Returns the blocks of all results, joined where they share memory.
Blocks joined_blocks(const Plan& plan, const Schedule& schedule) {
  const Uses uses = uses_of(plan.graph, schedule);
  const graph::PerValue<graph::Value> taken = taken_over(plan.graph);
  Blocks blocks = blocks_of(plan.graph, schedule, uses, taken);
  for (const Band& band : schedule.bands)
    for (const int n : band.nodes)
      if (band.repeats < 0) share_in_place(plan, schedule, n, uses, taken, blocks);
  return blocks;
}

/// Lists the owners of the blocks that are stored, or that are not, in the order of values.
std::vector<graph::Value> owners_of(const Blocks& blocks, bool stored) {
  std::vector<graph::Value> owners;
  for (const graph::Value v : blocks.results())
    if (blocks.owner(v) == v && blocks.block_of(v).stored == stored) owners.push_back(v);
  std::ranges::sort(owners, {}, &graph::Value::id);
  return owners;
}

/// Within a band steps follow each other tile by tile, so a stored block lives for whole bands.
Arena stored_arena(const Plan& plan, const Schedule& schedule, const Blocks& blocks) {
  const BandAt band_at(schedule);
  Arena arena;
  for (const graph::Value v : owners_of(blocks, true)) {
    std::vector<Moments> when;
    for (const auto& [first, last] : blocks.block_of(v).when)
      when = together(std::move(when), {{band_at(first), band_at(last)}});
    arena.add(v, {plan.desc(v).bytes(), std::move(when)});
  }
  return arena;
}

/// Returns for each band the arena of the values that stay in it; they live for steps.
std::map<int, Arena> tile_arenas(const Plan& plan, const Schedule& schedule, const Blocks& blocks) {
  const BandAt band_at(schedule);
  std::map<int, Arena> arenas;
  for (const graph::Value v : owners_of(blocks, false)) {
    const Block& block = blocks.block_of(v);
    const int band = band_at(block.when.front().first);
    const auto tile = static_cast<size_t>(plan.bands[static_cast<size_t>(band)].tile);
    arenas[band].add(v, {bytes_of_sample(plan.desc(v)) * tile, block.when});
  }
  return arenas;
}

ResultPlaces assign_offsets(const Plan& plan, const Schedule& schedule, const Blocks& blocks) {
  ResultPlaces made;
  graph::PerValue<Place> places(plan.graph);
  made.arena_bytes = stored_arena(plan, schedule, blocks).place(kArena, places);
  for (const auto& [band, arena] : tile_arenas(plan, schedule, blocks))
    made.tile_scratch_bytes = std::max(made.tile_scratch_bytes, arena.place(kTile, places));
  for (const graph::Value v : blocks.results()) {
    Place place = places[blocks.owner(v)];
    place.stride = plan.graph.type(v).batched ? bytes_of_sample(plan.desc(v)) : 0;
    made.places.emplace_back(v, place);
  }
  return made;
}

}  // namespace

ResultPlaces place_results(const Plan& plan, const Schedule& schedule) {
  ResultPlaces made = assign_offsets(plan, schedule, joined_blocks(plan, schedule));
  for (const graph::Value g : plan.graph.with_role(graph::Role::gradient))
    for (const graph::Value v : taken_over_by(plan.graph, g))
      made.places.emplace_back(v, plan.place(g));
  return made;
}

std::vector<Lifetime> stored_lifetimes(const Plan& plan, const Schedule& schedule) {
  return stored_arena(plan, schedule, joined_blocks(plan, schedule)).lifetimes;
}

std::vector<graph::Value> stored_results(const graph::Graph& graph, const Schedule& schedule) {
  const Uses uses = uses_without_bands(graph, schedule);
  const graph::PerValue<graph::Value> taken = taken_over(graph);
  std::vector<graph::Value> stored;
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    if (schedule.band_of[n] >= 0)
      for (const graph::Value v : graph.nodes()[n].out)
        if (graph[v].role == graph::Role::result && !taken[v].valid() && uses.stored(graph, v))
          stored.push_back(v);
  return stored;
}

}  // namespace tutti::plan
