#include "tutti/plan/bands.h"

#include <algorithm>
#include <set>

#include "tutti/base/error.h"
#include "tutti/plan/exchange_kind.h"

namespace tutti {
Walk walk_of(const Graph& graph, const Node& node) {
  std::vector<ValueType> types;
  for (const Value v : node.in) types.push_back(graph.type(v));
  return node.op->walk(types);
}

namespace {

// What takes a network longer than a band's barriers cost is a reason to part bands: a large
// gradient ends its band, so that its exchange begins while the rest is computed, and a large
// weight begins one where it is first read, so that what comes before need not wait for its update.
// (Networks without batch norm would otherwise be one band.) Whatever the buckets are: where bands
// end is part of the arithmetic.
constexpr size_t kLarge = size_t{1} << 20;  // bytes

bool makes_large_gradient(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.out, [&](Value v) {
    return graph[v].role == Role::gradient && graph.type(v).desc.bytes() >= kLarge;
  });
}

/// Samples that the node walks over: those of what it makes for each, else of what it sums; 0:
/// none.
int64_t samples_of(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.out, &node.in})
    for (const Value v : *list)
      if (graph.type(v).batched) return graph.shape(v)[0];
  return 0;
}

/// Nodes that read each value, exchanges and updates included.
std::vector<std::vector<int>> readers_of(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.values().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (const Value v : graph.nodes()[n].in)
      readers[static_cast<size_t>(v.id)].push_back(static_cast<int>(n));
  return readers;
}

/// Node `n` is the first reader of a large value that the step updates.
bool needs_large_update(const Graph& graph, size_t n,
                        const std::vector<std::vector<int>>& readers) {
  return std::ranges::any_of(graph.nodes()[n].in, [&](Value v) {
    const std::vector<int>& all = readers[static_cast<size_t>(v.id)];
    return !graph.type(v).batched && graph.type(v).desc.bytes() >= kLarge &&
           all.front() == static_cast<int>(n) && graph[v].producer < 0 &&
           std::ranges::any_of(all, [&](int reader) {
             return graph.nodes()[static_cast<size_t>(reader)].op->in_update();
           });
  });
}

/// Moves cheap per-sample nodes whose only readers are in one later band into that band: their
/// results then need not be stored. Repeats, since moving one can free the node before it. Reading
/// a value later keeps that value longer, so a node moves only if every batched input is read in
/// its new band, or later, anyway, or is itself produced by a node that moves.
void sink_cheap_nodes(const Graph& graph, std::vector<int>& band_of,
                      const std::vector<std::vector<int>>& readers) {
  const auto band_of_value = [&](Value v) {
    return graph[v].producer < 0 ? -1 : band_of[static_cast<size_t>(graph[v].producer)];
  };
  const auto read_across = [&](Value v) {
    return std::ranges::any_of(readers[static_cast<size_t>(v.id)], [&](int reader) {
      return walk_of(graph, graph.nodes()[static_cast<size_t>(reader)]) == Walk::across;
    });
  };
  const auto first_of = [&](int band) -> const Node& {
    return graph.nodes()[static_cast<size_t>(std::ranges::find(band_of, band) - band_of.begin())];
  };
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    const Walk walk = walk_of(graph, node);
    if (band_of[n] < 0 || (walk != Walk::per_sample && walk != Walk::across)) continue;
    std::vector<ValueType> in, out;
    for (const Value v : node.in) in.push_back(graph.type(v));
    for (const Value v : node.out) out.push_back(graph.type(v));
    if (node.op->flop(in, out) > 0) continue;
    std::set<int> later;
    bool is_output = false;
    for (const Value v : node.out) {
      is_output |= std::ranges::find(graph.outputs(), v) != graph.outputs().end();
      for (const int reader : readers[static_cast<size_t>(v.id)])
        later.insert(band_of[static_cast<size_t>(reader)]);
    }
    if (is_output || later.size() != 1 || *later.begin() <= band_of[n]) continue;
    const int target = *later.begin();
    if (samples_of(graph, node) != samples_of(graph, first_of(target)) ||
        std::ranges::any_of(node.out, [&](Value v) { return read_across(v); }))
      continue;
    const bool inputs_live = std::ranges::all_of(node.in, [&](Value v) {
      if (!graph.type(v).batched || graph[v].producer < 0 || band_of_value(v) < band_of[n])
        return true;
      return std::ranges::any_of(readers[static_cast<size_t>(v.id)], [&](int r) {
        return static_cast<size_t>(r) != n && band_of[static_cast<size_t>(r)] > band_of_value(v);
      });
    });
    const bool chain = node.in.size() == 1 && readers[static_cast<size_t>(node.in[0].id)].size() ==
                                                  1;  // its producer may follow
    if (inputs_live || chain) band_of[n] = target;
  }
}

/// Numbers the bands anew without those whose nodes have all moved away; the last number.
int leave_out_empty(std::vector<int>& band_of, std::vector<bool>& whole_band) {
  std::vector<int> number(whole_band.size(), -1);
  for (const int b : band_of)
    if (b >= 0) number[static_cast<size_t>(b)] = 0;
  int last = -1;
  for (size_t b = 0; b < number.size(); ++b) {
    if (number[b] < 0) continue;
    number[b] = ++last;
    whole_band[static_cast<size_t>(last)] = whole_band[b];
  }
  for (int& b : band_of)
    if (b >= 0) b = number[static_cast<size_t>(b)];
  return last;
}

}  // namespace

Schedule make_schedule(const Graph& graph) {
  const size_t count = graph.nodes().size();
  Schedule schedule;
  schedule.band_of.assign(count, -1);
  schedule.order.assign(count, -1);
  const auto readers = readers_of(graph);

  std::vector<int> buckets, exchanges;
  std::vector<bool> whole_band;
  std::vector<int> reduced_in(graph.values().size(), -1);  // band that reduces this value
  std::vector<int> made_in(graph.values().size(), -1);     // band that makes it, sample by sample
  int64_t samples_in_band = 0;
  int band = -1;
  bool open = false;  // may the current band take more nodes?
  for (size_t n = 0; n < count; ++n) {
    const Node& node = graph.nodes()[n];
    if (node.op->in_update()) {
      schedule.updates.push_back(static_cast<int>(n));
      continue;
    }
    const Walk walk = walk_of(graph, node);
    if (const ExchangeKind kind = exchange_kind(graph, node); kind != ExchangeKind::none) {
      (kind == ExchangeKind::gradients ? buckets : exchanges).push_back(static_cast<int>(n));
      for (const Value v : node.out) reduced_in[static_cast<size_t>(v.id)] = band;
      continue;
    }
    const bool whole = walk == Walk::whole;
    const bool waits = std::ranges::any_of(node.in, [&](Value v) {
      return band >= 0 && (reduced_in[static_cast<size_t>(v.id)] == band ||
                           (walk == Walk::across && made_in[static_cast<size_t>(v.id)] == band));
    });
    const int64_t samples = samples_of(graph, node);
    if (!open || whole || waits || samples != samples_in_band ||
        needs_large_update(graph, n, readers)) {
      ++band;
      whole_band.push_back(whole);
      samples_in_band = samples;
    }
    open = !whole && !makes_large_gradient(graph, node);
    schedule.band_of[n] = band;
    for (const Value v : node.out)
      (graph.type(v).batched ? made_in : reduced_in)[static_cast<size_t>(v.id)] = band;
  }
  sink_cheap_nodes(graph, schedule.band_of, readers);
  band = leave_out_empty(schedule.band_of, whole_band);

  schedule.bands.resize(static_cast<size_t>(band + 1));
  for (size_t n = 0; n < count; ++n)
    if (schedule.band_of[n] >= 0)
      schedule.bands[static_cast<size_t>(schedule.band_of[n])].nodes.push_back(static_cast<int>(n));
  for (size_t b = 0; b < schedule.bands.size(); ++b) {
    schedule.bands[b].whole = whole_band[b];
    if (!whole_band[b])
      schedule.bands[b].samples =
          samples_of(graph, graph.nodes()[static_cast<size_t>(schedule.bands[b].nodes.front())]);
    CHECK(!whole_band[b] || schedule.bands[b].nodes.size() == 1,
          "band {} is computed as a whole and has {} nodes; the executor runs one", b,
          schedule.bands[b].nodes.size());
  }
  const auto complete_after = [&](int e) -> Band& {
    int last = 0;
    for (const Value v : graph.nodes()[static_cast<size_t>(e)].in)
      if (graph[v].producer >= 0)
        last = std::max(last, schedule.band_of[static_cast<size_t>(graph[v].producer)]);
    return schedule.bands[static_cast<size_t>(last)];
  };
  for (const int e : exchanges) {
    complete_after(e).starts.push_back(e);
    int first = band + 1;
    for (const Value v : graph.nodes()[static_cast<size_t>(e)].out)
      for (const int reader : readers[static_cast<size_t>(v.id)])
        if (const int b = schedule.band_of[static_cast<size_t>(reader)]; b >= 0)
          first = std::min(first, b);
    CHECK(first > band || &schedule.bands[static_cast<size_t>(first)] > &complete_after(e),
          "{}: read before it is there", graph.nodes()[static_cast<size_t>(e)].name);
    (first > band ? schedule.waits_at_end : schedule.bands[static_cast<size_t>(first)].waits)
        .push_back(e);
  }
  for (const int e : buckets) complete_after(e).starts.push_back(e);
  int position = 0;
  for (const Band& b : schedule.bands) {
    for (const int n : b.nodes) schedule.order[static_cast<size_t>(n)] = position++;
    for (const int e : b.waits) schedule.order[static_cast<size_t>(e)] = position - 1;
  }
  for (const int e : schedule.waits_at_end) schedule.order[static_cast<size_t>(e)] = position - 1;
  for (const int n : schedule.updates) schedule.order[static_cast<size_t>(n)] = position++;
  return schedule;
}

}  // namespace tutti
