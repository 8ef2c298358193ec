#include "tutti/plan/bands.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/graph/per_value.h"
#include "tutti/plan/exchange_kind.h"

namespace tutti::plan {
namespace {

// Start a new band where waiting for the network would cost more than one barrier: a large
// gradient ends its band, so that its exchange begins while the rest is computed, and a large
// weight begins a band where it is first read, so that earlier work need not wait for its update.
// (Networks without batch norm would otherwise be one band.) Buckets play no part: where bands end
// is part of the arithmetic.
constexpr size_t kLarge = size_t{1} << 20;  // bytes

bool makes_large_gradient(const graph::Graph& graph, const graph::Node& node) {
  return std::ranges::any_of(node.out, [&](graph::Value v) {
    return graph[v].role == graph::Role::gradient && graph.type(v).desc.bytes() >= kLarge;
  });
}

/// Samples that the node walks over, taken from a batched output or else from a batched input; 0 if
/// it has neither.
int64_t samples_of(const graph::Graph& graph, const graph::Node& node) {
  for (const auto* list : {&node.out, &node.in})
    for (const graph::Value v : *list)
      if (graph.type(v).batched) return graph.shape(v)[0];
  return 0;
}

/// Nodes that read each value, exchanges and updates included.
std::vector<std::vector<int>> readers_of(const graph::Graph& graph) {
  std::vector<std::vector<int>> readers(graph.values().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (const graph::Value v : graph.nodes()[n].in)
      readers[static_cast<size_t>(v.id)].push_back(static_cast<int>(n));
  return readers;
}

/// Node `n` is the first reader of a large value that the step updates.
bool needs_large_update(const graph::Graph& graph, size_t n,
                        const std::vector<std::vector<int>>& readers) {
  return std::ranges::any_of(graph.nodes()[n].in, [&](graph::Value v) {
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
void sink_cheap_nodes(const graph::Graph& graph, std::vector<int>& band_of,
                      const std::vector<std::vector<int>>& readers) {
  const auto band_of_value = [&](graph::Value v) {
    return graph[v].producer < 0 ? -1 : band_of[static_cast<size_t>(graph[v].producer)];
  };
  const auto read_across = [&](graph::Value v) {
    return std::ranges::any_of(readers[static_cast<size_t>(v.id)], [&](int reader) {
      return graph.walk(graph.nodes()[static_cast<size_t>(reader)]) == graph::Walk::across;
    });
  };
  const auto first_of = [&](int band) -> const graph::Node& {
    return graph.nodes()[static_cast<size_t>(std::ranges::find(band_of, band) - band_of.begin())];
  };
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const graph::Node& node = graph.nodes()[n];
    const graph::Walk walk = graph.walk(node);
    if (band_of[n] < 0 || (walk != graph::Walk::per_sample && walk != graph::Walk::across))
      continue;
    if (graph.flop(node) > 0) continue;
    std::set<int> later;
    bool is_output = false;
    for (const graph::Value v : node.out) {
      is_output |= std::ranges::find(graph.outputs(), v) != graph.outputs().end();
      for (const int reader : readers[static_cast<size_t>(v.id)])
        later.insert(band_of[static_cast<size_t>(reader)]);
    }
    if (is_output || later.size() != 1 || *later.begin() <= band_of[n]) continue;
    const int target = *later.begin();
    if (samples_of(graph, node) != samples_of(graph, first_of(target)) ||
        graph.walk(first_of(target)) == graph::Walk::whole ||
        std::ranges::any_of(node.out, [&](graph::Value v) { return read_across(v); }))
      continue;
    const bool inputs_live = std::ranges::all_of(node.in, [&](graph::Value v) {
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

/// Renumbers the bands without those that have become empty. Returns the last number.
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

/// Cuts the graph's nodes into bands, in their order.
class BandCutter {
 public:
  explicit BandCutter(const graph::Graph& graph)
      : graph_(graph), readers_(readers_of(graph)), reduced_in_(graph, -1), made_in_(graph, -1),
        band_of_(graph.nodes().size(), -1) {}

  /// Adds the next node; `n` is neither an update nor an exchange.
  void add(size_t n) {
    const graph::Node& node = graph_.nodes()[n];
    const graph::Walk walk = graph_.walk(node);
    const bool whole = walk == graph::Walk::whole;
    const int64_t samples = samples_of(graph_, node);
    const bool ends_exchange = waits_for_exchange(node);
    if (!open_ || whole || ends_exchange || waits(node, walk) || samples != samples_ ||
        needs_large_update(graph_, n, readers_)) {
      whole_.push_back(whole);
      samples_ = samples;
    }
    open_ = !whole && !makes_large_gradient(graph_, node);
    band_of_[n] = band();
    for (const graph::Value v : node.out)
      (graph_.type(v).batched ? made_in_ : reduced_in_)[v] = band();
  }
  /// Notes that the exchange's outputs are complete when the band that is the last one so far is
  /// over.
  void add_exchange(const graph::Node& node) {
    for (const graph::Value v : node.out) reduced_in_[v] = band();
    if (!node.op->begins_at_once()) return;
    open_ = false;
    under_way_.push_back(&node);
  }

  /// Call this after all nodes. Moves the result out of this object.
  void finish(Schedule& schedule) {
    sink_cheap_nodes(graph_, band_of_, readers_);
    const int last = leave_out_empty(band_of_, whole_);
    schedule.bands.resize(static_cast<size_t>(last + 1));
    for (size_t n = 0; n < band_of_.size(); ++n)
      if (band_of_[n] >= 0)
        schedule.bands[static_cast<size_t>(band_of_[n])].nodes.push_back(static_cast<int>(n));
    for (size_t b = 0; b < schedule.bands.size(); ++b) {
      Band& band = schedule.bands[b];
      band.whole = whole_[b];
      if (!band.whole)
        band.samples = samples_of(graph_, graph_.nodes()[static_cast<size_t>(band.nodes.front())]);
      CHECK(!band.whole || band.nodes.size() == 1,
            "band {} is computed as a whole and has {} nodes; the executor runs one", b,
            band.nodes.size());
    }
    schedule.band_of = std::move(band_of_);
  }
  const std::vector<std::vector<int>>& readers() const { return readers_; }

 private:
  int band() const { return static_cast<int>(whole_.size()) - 1; }
  /// Whether the node reads values that are complete only at the end of the present band.
  bool waits(const graph::Node& node, graph::Walk walk) const {
    return band() >= 0 && std::ranges::any_of(node.in, [&](graph::Value v) {
             return reduced_in_[v] == band() ||
                    (walk == graph::Walk::across && made_in_[v] == band());
           });
  }

  /// Whether the node is the first to read the output of an exchange that began at once: the nodes
  /// computed meanwhile are a band of their own.
  bool waits_for_exchange(const graph::Node& node) {
    const auto reads = [&](const graph::Node* exchange) {
      return std::ranges::any_of(node.in, [&](graph::Value v) {
        return std::ranges::find(exchange->out, v) != exchange->out.end();
      });
    };
    return std::erase_if(under_way_, reads) > 0;
  }

  const graph::Graph& graph_;
  const std::vector<std::vector<int>> readers_;
  std::vector<const graph::Node*> under_way_;  // exchanges that no band waits for yet
  graph::PerValue<int> reduced_in_;            // the band that reduces this value
  graph::PerValue<int> made_in_;               // the band that makes this value, sample by sample
  std::vector<int> band_of_;
  std::vector<bool> whole_;  // by band
  int64_t samples_ = 0;      // samples of the last band
  bool open_ = false;        // may the last band take more nodes?
};

/// A band starts an exchange once it has made the inputs, and waits for it where it reads the
/// outputs.
void place_exchanges(const graph::Graph& graph, const std::vector<int>& exchanges,
                     const std::vector<std::vector<int>>& readers, Schedule& schedule) {
  const auto count = static_cast<int>(schedule.bands.size());
  for (const int e : exchanges) {
    const graph::Node& node = graph.nodes()[static_cast<size_t>(e)];
    int last = 0, first = count;
    for (const graph::Value v : node.in)
      if (graph[v].producer >= 0)
        last = std::max(last, schedule.band_of[static_cast<size_t>(graph[v].producer)]);
    for (const graph::Value v : node.out)
      for (const int reader : readers[static_cast<size_t>(v.id)])
        if (const int b = schedule.band_of[static_cast<size_t>(reader)]; b >= 0)
          first = std::min(first, b);
    if (node.in.empty()) last = -1;
    (last < 0 ? schedule.begins : schedule.bands[static_cast<size_t>(last)].starts).push_back(e);
    if (exchange_kind(graph, node) == ExchangeKind::gradients) continue;
    CHECK(first > last, "{}: read before it is there", node.name);
    (first == count ? schedule.waits_at_end : schedule.bands[static_cast<size_t>(first)].waits)
        .push_back(e);
  }
}

/// Numbers the nodes in the order of execution.
void number_nodes(Schedule& schedule) {
  schedule.order.assign(schedule.band_of.size(), -1);
  int position = 0;
  for (const Band& b : schedule.bands) {
    for (const int n : b.nodes) {
      if (b.repeats < 0) schedule.order[static_cast<size_t>(n)] = position;
      ++position;
    }
    for (const int e : b.waits) schedule.order[static_cast<size_t>(e)] = position - 1;
  }
  for (const int e : schedule.waits_at_end) schedule.order[static_cast<size_t>(e)] = position - 1;
  for (const int n : schedule.updates) schedule.order[static_cast<size_t>(n)] = position++;
}

}  // namespace

Schedule make_schedule(const graph::Graph& graph) {
  Schedule schedule;
  BandCutter cutter(graph);
  std::vector<int> buckets, exchanges;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const graph::Node& node = graph.nodes()[i];
    const auto n = static_cast<int>(i);
    const ExchangeKind kind = exchange_kind(graph, node);
    if (node.op->in_update()) {
      schedule.updates.push_back(n);
    } else if (kind == ExchangeKind::none) {
      cutter.add(i);
    } else {
      (kind == ExchangeKind::gradients ? buckets : exchanges).push_back(n);
      cutter.add_exchange(node);
    }
  }
  cutter.finish(schedule);
  // Exchanges that bands wait for come before buckets, which the update waits for.
  exchanges.insert(exchanges.end(), buckets.begin(), buckets.end());
  place_exchanges(graph, exchanges, cutter.readers(), schedule);
  number_nodes(schedule);
  return schedule;
}

Schedule with_bands_again(const Schedule& schedule, std::span<const BandAgain> again) {
  Schedule longer = schedule;
  longer.bands.clear();
  std::vector<int> number;  // new number of each earlier band
  auto next = again.begin();
  for (size_t b = 0; b < schedule.bands.size(); ++b) {
    for (; next != again.end() && next->before == static_cast<int>(b); ++next) {
      const Band& first = schedule.bands[static_cast<size_t>(next->of)];
      longer.bands.push_back({.nodes = next->nodes,
                              .whole = first.whole,
                              .samples = first.samples,
                              .starts = {},
                              .waits = {},
                              .repeats = number[static_cast<size_t>(next->of)]});
    }
    number.push_back(static_cast<int>(longer.bands.size()));
    longer.bands.push_back(schedule.bands[b]);
  }
  CHECK(next == again.end(), "a band that is computed again before band {}", next->before);
  for (int& b : longer.band_of)
    if (b >= 0) b = number[static_cast<size_t>(b)];
  number_nodes(longer);
  return longer;
}

}  // namespace tutti::plan
