#include "tutti/plan/recompute.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tutti/plan/memory.h"
#include "tutti/plan/result_places.h"

namespace tutti::plan {
namespace {

constexpr double kOperationsAByte = 10;  // arithmetic of a core while it reads or writes one byte
constexpr int kNever = std::numeric_limits<int>::max();

/// A node of a band as a candidate for running again.
struct Maker {
  bool again = false;      ///< it may be run again
  int stored = 0;          ///< number of its results that are stored
  size_t bytes = 0;        ///< bytes of its stored results
  int gone = 0, back = 0;  ///< the bands that bound the longest time without a reader
  double cost = 0, flop = 0;
  bool spans(int band) const { return again && bytes > 0 && gone < band && band < back; }
};

/// Nodes that are run again, by (the band before which they run, their own band).
using Repeats = std::map<std::pair<int, int>, std::set<int>>;

class Recomputing {
 public:
  Recomputing(const Plan& plan, const Schedule& schedule)
      : plan_(plan), graph_(plan.graph), schedule_(schedule), stored_(graph_), uses_(graph_),
        makers_(graph_.nodes().size()) {
    for (const graph::Value v : stored_results(graph_, schedule)) stored_[v] = 1;
    find_uses();
    for (size_t n = 0; n < makers_.size(); ++n)
      if (schedule.band_of[n] >= 0) makers_[n] = maker_of(graph_.nodes()[n]);
  }

  size_t nodes() const { return makers_.size(); }
  const Maker& maker(int n) const { return makers_[static_cast<size_t>(n)]; }

  /// Returns the nodes to run again so that no result of `dropped` is kept; nothing if that is
  /// impossible.
  std::optional<Repeats> repeats_for(const std::set<int>& dropped) const {
    Repeats repeats;
    Needs needs;
    for (const int n : dropped) needs[n].stored = maker(n).back;
    while (!needs.empty()) {
      const auto [n, need] = *needs.begin();  // all readers of its results come after it
      needs.erase(needs.begin());
      std::set<int> before = need.in_tile;
      if (need.stored != kNever) before.insert(need.stored);
      for (const int band : before) {
        if (!maker(n).again) return std::nullopt;
        repeats[{band, band_of(n)}].insert(n);
        for (const graph::Value v : node(n).in) ask_for(v, band, dropped, needs);
      }
    }
    return repeats;
  }

  double cost(const Repeats& repeats) const { return sum(repeats, &Maker::cost); }

  Schedule schedule_with(const Repeats& repeats) const {
    return with_bands_again(schedule_, bands(repeats));
  }
  std::vector<Lifetime> lifetimes(const Schedule& schedule) const {
    return stored_lifetimes(plan_, schedule);
  }

  BandsAgain result(const Repeats& repeats) const {
    return {.bands = bands(repeats),
            .results = static_cast<int>(sum(repeats, &Maker::stored)),
            .flop = sum(repeats, &Maker::flop)};
  }

 private:
  /// The bands before which a node has to be run again.
  struct Need {
    int stored = kNever;    ///< for stored results: the first band
    std::set<int> in_tile;  ///< for results that stay in their band: each band
  };
  using Needs = std::map<int, Need, std::greater<>>;  // by node, the last first

  const graph::Node& node(int n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  int band_of(int n) const { return n < 0 ? -1 : schedule_.band_of[static_cast<size_t>(n)]; }

  void find_uses() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const int band = schedule_.band_of[n];
      for (const graph::Value v : graph_.nodes()[n].in) uses_[v].insert(band);
      for (size_t i = 0; i < graph_.nodes()[n].in.size(); ++i)
        if (graph_.nodes()[n].op->mutates(static_cast<int>(i)))
          changed_.insert(graph_.nodes()[n].in[i].id);
    }
  }

  /// Whether the node is a pure function of values that no pass changes, and only bands read its
  /// results.
  bool may_run_again(const graph::Node& n) const {
    const graph::Walk walk = graph_.walk(n);
    if (walk == graph::Walk::reduce || walk == graph::Walk::exchange) return false;
    for (const graph::Value v : n.in)
      if (const graph::Role role = graph_[v].role;
          role == graph::Role::gradient || role == graph::Role::state ||
          (role != graph::Role::parameter && changed_.contains(v.id)))
        return false;
    return std::ranges::all_of(n.out, [&](graph::Value v) {
      const bool is_output = std::ranges::find(graph_.outputs(), v) != graph_.outputs().end();
      const bool taken_over = !stored_[v] && !graph_.type(v).batched;
      return graph_[v].role == graph::Role::result && !is_output && !taken_over &&
             !uses_[v].contains(-1);
    });
  }

  Maker maker_of(const graph::Node& n) const {
    Maker made{.again = may_run_again(n)};
    made.cost = made.flop = graph_.flop(n);
    std::set<int> bands{schedule_.band_of[static_cast<size_t>(&n - graph_.nodes().data())]};
    for (const graph::Value v : n.out) {
      if (!stored_[v]) continue;
      ++made.stored;
      made.bytes += aligned(plan_.desc(v).bytes());
      bands.insert(uses_[v].begin(), uses_[v].end());
    }
    for (const auto* list : {&n.in, &n.out})
      for (const graph::Value v : *list)
        if (stored_[v]) made.cost += kOperationsAByte * static_cast<double>(plan_.desc(v).bytes());
    for (auto b = bands.begin(); std::next(b) != bands.end(); ++b)
      if (*std::next(b) - *b >= made.back - made.gone) made.gone = *b, made.back = *std::next(b);
    return made;
  }

  /// Notes that `v` is read again before `band`.
  void ask_for(graph::Value v, int band, const std::set<int>& dropped, Needs& needs) const {
    const int made_by = graph_[v].producer;
    if (graph_[v].role != graph::Role::result || band_of(made_by) < 0)
      return;  // it stays until then
    if (!stored_[v]) {
      needs[made_by].in_tile.insert(band);
      return;
    }
    if (!graph_.type(v).batched) return;  // small, so it is not made again
    const bool there =
        dropped.contains(made_by) ? band <= maker(made_by).gone : *uses_[v].rbegin() >= band;
    if (there || !maker(made_by).again) return;
    int& first = needs[made_by].stored;
    first = std::min(first, band);
  }

  template <class T>
  double sum(const Repeats& repeats, T Maker::*what) const {
    double all = 0;
    for (const auto& [bands, nodes] : repeats)
      for (const int n : nodes) all += static_cast<double>(maker(n).*what);
    return all;
  }

  std::vector<BandAgain> bands(const Repeats& repeats) const {
    std::vector<BandAgain> list;
    for (const auto& [bands, nodes] : repeats)
      list.push_back({bands.first, bands.second, {nodes.begin(), nodes.end()}});
    return list;
  }

  const Plan& plan_;
  const graph::Graph& graph_;
  const Schedule& schedule_;
  graph::PerValue<char> stored_;
  graph::PerValue<std::set<int>> uses_;  // bands that read this value; -1: exchanges and updates
  std::set<int32_t> changed_;            // values that some node changes
  std::vector<Maker> makers_;
};

/// Converts a band's number without repetitions into the number with them.
int number_with_repeats(const Schedule& schedule, int band) {
  for (size_t b = 0; b < schedule.bands.size(); ++b)
    if (schedule.bands[b].repeats < 0 && band-- == 0) return static_cast<int>(b);
  return static_cast<int>(schedule.bands.size());
}
/// Converts back; a repetition has the number of the band that it stands before.
int number_without_repeats(const Schedule& schedule, int band) {
  return static_cast<int>(
      std::ranges::count_if(std::span(schedule.bands).first(static_cast<size_t>(band)),
                            [](const Band& b) { return b.repeats < 0; }));
}

/// The nodes dropped so far, and what follows from them.
struct Dropped {
  std::set<int> nodes;
  Repeats repeats;
  Schedule schedule;
  std::vector<Lifetime> lifetimes;
  ArenaPeak peak;
  double cost = 0;

  Dropped(const Recomputing& recomputing, std::set<int> dropped, Repeats again)
      : nodes(std::move(dropped)), repeats(std::move(again)),
        schedule(recomputing.schedule_with(repeats)), lifetimes(recomputing.lifetimes(schedule)),
        peak(arena_peak(lifetimes)), cost(recomputing.cost(repeats)) {}

  bool fits(size_t limit) const {
    return peak.bytes <= limit && plan_arena(lifetimes).bytes <= limit;
  }
  size_t bytes_in(int band) const {
    return bytes_at(lifetimes, number_with_repeats(schedule, band));
  }
};

/// Whether memory falls at the moment of the peak and rises above the peak nowhere.
bool is_smaller(const Dropped& next, const Dropped& now, int band) {
  return next.peak.bytes <= now.peak.bytes && next.bytes_in(band) < now.bytes_in(band);
}

/// Drops one more node: the cheapest per byte of those that are kept over the peak and were not
/// tried in vain. Returns nothing if none is left.
std::optional<Dropped> drop_one(const Recomputing& recomputing, const Dropped& now,
                                std::set<int>& tried) {
  const int band = number_without_repeats(now.schedule, now.peak.moment);
  for (;;) {
    int best = -1;
    double least = 0;
    Repeats with_best;
    for (int n = 0; n < static_cast<int>(recomputing.nodes()); ++n) {
      const Maker& maker = recomputing.maker(n);
      if (!maker.spans(band) || now.nodes.contains(n) || tried.contains(n)) continue;
      std::set<int> more = now.nodes;
      more.insert(n);
      std::optional<Repeats> repeats = recomputing.repeats_for(more);
      if (!repeats) {
        tried.insert(n);
        continue;
      }
      const double price =
          (recomputing.cost(*repeats) - now.cost) / static_cast<double>(maker.bytes);
      if (best < 0 || price < least) best = n, least = price, with_best = std::move(*repeats);
    }
    if (best < 0) return std::nullopt;
    std::set<int> more = now.nodes;
    more.insert(best);
    Dropped next(recomputing, std::move(more), std::move(with_best));
    if (is_smaller(next, now, band)) return next;
    tried.insert(best);
  }
}

/// Keeps results again where later drops have made their recomputation unnecessary.
Dropped without_idle(const Recomputing& recomputing, Dropped now, size_t limit) {
  for (const int n : std::set<int>(now.nodes)) {
    std::set<int> fewer = now.nodes;
    fewer.erase(n);
    std::optional<Repeats> repeats = recomputing.repeats_for(fewer);
    if (!repeats) continue;
    Dropped less(recomputing, std::move(fewer), std::move(*repeats));
    if (less.cost < now.cost && less.fits(limit)) now = std::move(less);
  }
  return now;
}

}  // namespace

BandsAgain recompute_results(const Plan& plan, const Schedule& schedule, size_t limit) {
  const Recomputing recomputing(plan, schedule);
  Dropped now(recomputing, {}, {});
  std::set<int> tried;
  bool again = false;  // may nodes that were tried in vain be tried once more?
  while (!now.fits(limit)) {
    if (std::optional<Dropped> next = drop_one(recomputing, now, tried)) {
      now = std::move(*next);
      again = true;
    } else if (std::exchange(again, false)) {
      tried.clear();
    } else {
      return recomputing.result(now.repeats);
    }
  }
  return recomputing.result(without_idle(recomputing, std::move(now), limit).repeats);
}

}  // namespace tutti::plan
