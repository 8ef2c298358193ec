#include "tutti/plan/compiler.h"

#include <numeric>

#include "tutti/plan/memory.h"

namespace tutti {

void Compiler::place_results() {
  const size_t count = graph_.values().size();
  std::vector<int> owner(count);
  std::iota(owner.begin(), owner.end(), 0);
  const auto find = [&](int v) {
    while (owner[static_cast<size_t>(v)] != v) v = owner[static_cast<size_t>(v)];
    return v;
  };
  std::vector<int> first(count, -1), last(count, -1);  // execution positions
  std::vector<bool> stored(count, false);
  std::vector<int> results;
  const auto collect = [&](const Step& step) {
    for (const Value v : node(step.node).out)
      if (graph_[v].role == Role::result) {
        const size_t i = index_of(v);
        results.push_back(v.id);
        first[i] = schedule_.order[static_cast<size_t>(step.node)];
        last[i] = is_output(v) ? static_cast<int>(count) * 2 : std::max(last_reader_[i], first[i]);
        stored[i] = !graph_.type(v).batched || is_output(v) || leaves_band(v);
      }
  };
  for (const PlanBand& band : plan_.bands) std::ranges::for_each(band.steps, collect);
  // What is received may arrive from the moment when the exchange begins.
  for (const Band& band : schedule_.bands)
    for (const int e : band.starts)
      for (const Value v : node(e).out) {
        results.push_back(v.id);
        first[index_of(v)] = schedule_.order[static_cast<size_t>(band.nodes.back())];
        last[index_of(v)] = std::max(last_reader_[index_of(v)], first[index_of(v)]);
        stored[index_of(v)] = true;
      }
  for (const Step& update : plan_.updates) {
    collect(update);
    // An update may run while the next forward has begun: what it leaves shares no memory with
    // results of bands.
    for (const Value v : node(update.node).out)
      first[index_of(v)] = 0, last[index_of(v)] = static_cast<int>(count) * 2;
  }
  for (const PlanBand& band : plan_.bands)
    for (const Step& step : band.steps) share_in_place(step.node, owner, find, last);
  for (const int v : results)
    if (stored[static_cast<size_t>(v)]) stored[static_cast<size_t>(find(v))] = true;

  std::map<int, std::pair<int, int>> spans;  // owner -> first and last execution position
  for (const int v : results) {
    const int o = find(v);
    auto [at, fresh] =
        spans.try_emplace(o, first[static_cast<size_t>(v)], last[static_cast<size_t>(v)]);
    at->second.first = std::min(at->second.first, first[static_cast<size_t>(v)]);
    at->second.second = std::max(at->second.second, last[static_cast<size_t>(v)]);
  }
  assign_offsets(results, spans, find, stored);
}

bool Compiler::leaves_band(Value v) const {
  for (size_t n = 0; n < graph_.nodes().size(); ++n)
    if (std::ranges::find(graph_.nodes()[n].in, v) != graph_.nodes()[n].in.end() &&
        band_of(static_cast<int>(n)) != band_of(graph_[v].producer))
      return true;
  return false;
}

template <class Find>
void Compiler::share_in_place(int n, std::vector<int>& owner, const Find& find,
                              std::vector<int>& last) {
  for (size_t o = 0; o < node(n).out.size(); ++o) {
    const int from = node(n).op->in_place(static_cast<int>(o));
    if (from < 0) continue;
    const Value in = node(n).in[static_cast<size_t>(from)], out = node(n).out[o];
    if (graph_[in].role != Role::result || graph_[out].role != Role::result || is_output(in))
      continue;
    if (!(plan_.descs[index_of(in)] == plan_.descs[index_of(out)]) ||
        graph_.type(in).batched != graph_.type(out).batched)
      continue;
    const int me = schedule_.order[static_cast<size_t>(n)];
    bool read_later = last_reader_[index_of(in)] > me;
    for (size_t v = 0; v < owner.size();
         ++v)  // whoever shares the input's memory must be dead, too
      if (find(static_cast<int>(v)) == find(in.id)) read_later |= last[v] > me;
    const bool read_twice = std::ranges::count(node(n).in, in) > 1;
    if (!read_later && !read_twice) owner[static_cast<size_t>(find(out.id))] = find(in.id);
  }
}

template <class Find>
void Compiler::assign_offsets(const std::vector<int>& results,
                              const std::map<int, std::pair<int, int>>& spans, const Find& find,
                              const std::vector<bool>& stored) {
  std::vector<int> band_at;  // execution position -> band
  for (size_t b = 0; b < plan_.bands.size(); ++b)
    band_at.insert(band_at.end(), plan_.bands[b].steps.size(), static_cast<int>(b));
  const auto band_of_position = [&](int p) {
    return static_cast<size_t>(p) < band_at.size() ? band_at[static_cast<size_t>(p)]
                                                   : static_cast<int>(plan_.bands.size());
  };

  std::vector<Lifetime> full;
  std::vector<int> full_owner;
  std::map<int, std::vector<std::pair<Lifetime, int>>> tiles;  // by band
  for (const auto& [o, span] : spans) {
    const Value v{o};
    if (stored[static_cast<size_t>(o)]) {
      full.push_back({plan_.descs[index_of(v)].bytes(), band_of_position(span.first),
                      band_of_position(span.second)});
      full_owner.push_back(o);
    } else {
      const int b = band_of_position(span.first);
      tiles[b].push_back(
          {{sample_bytes(v) * static_cast<size_t>(plan_.bands[static_cast<size_t>(b)].tile),
            span.first, span.second},
           o});
    }
  }
  const ArenaPlan arena = plan_arena(full);
  plan_.arena_bytes = arena.bytes;
  for (size_t i = 0; i < full.size(); ++i)
    plan_.places[static_cast<size_t>(full_owner[i])] = {kArena, arena.offsets[i], 0};
  for (const auto& [b, list] : tiles) {
    std::vector<Lifetime> blocks;
    for (const auto& [lifetime, o] : list) blocks.push_back(lifetime);
    const ArenaPlan scratch = plan_arena(blocks);
    plan_.tile_scratch_bytes = std::max(plan_.tile_scratch_bytes, scratch.bytes);
    for (size_t i = 0; i < list.size(); ++i)
      plan_.places[static_cast<size_t>(list[i].second)] = {kTile, scratch.offsets[i], 0};
  }
  for (const int v : results) {
    Place place = plan_.places[static_cast<size_t>(find(v))];
    place.stride = graph_.type(Value{v}).batched ? sample_bytes(Value{v}) : 0;
    plan_.places[static_cast<size_t>(v)] = place;
  }
}

}  // namespace tutti
