#include <algorithm>
#include <map>
#include <numeric>

#include "tutti/ops/reorder.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/plan.h"
#include "tutti/plan/tune.h"

namespace tutti {
namespace {

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
size_t index(Value v) { return static_cast<size_t>(v.id); }

/// The state of one compilation; each method is one phase, in the order of compile_with_layout.
class Compiler {
 public:
  Compiler(const Graph& graph, const Backend& backend, const PlanOptions& options)
      : graph_(graph), backend_(backend), schedule_(make_schedule(graph)) {
    plan_.graph = graph;
    plan_.options = options;
    plan_.descs.resize(graph.values().size());
    plan_.places.resize(graph.values().size());
    last_reader_.assign(graph.values().size(), -1);
  }

  Plan compile() {
    find_batch();
    find_lifetimes();
    choose_layouts();
    choose_tiles();
    lay_out_variables();
    choose_kernels();
    place_variables();
    place_results();
    resolve_places();
    return std::move(plan_);
  }

 private:
  const Node& node(int n) const { return graph_.nodes()[static_cast<size_t>(n)]; }

  void find_batch() {
    for (const ValueInfo& info : graph_.values())
      if (info.role == Role::input && info.type.batched) plan_.batch = info.type.desc.shape[0];
    if (plan_.batch <= 0) throw ConfigError("the graph has no batched input");
    for (const ValueInfo& info : graph_.values())
      if (info.type.batched && info.type.desc.shape[0] != plan_.batch)
        throw ConfigError(fmt::format("'{}' has {} samples, the batch has {}", info.name,
                                      info.type.desc.shape[0], plan_.batch));
  }

  void find_lifetimes() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      for (const Value v : graph_.nodes()[n].in)
        last_reader_[index(v)] = std::max(last_reader_[index(v)], schedule_.order[n]);
  }

  void choose_layouts() {
    for (size_t i = 0; i < graph_.values().size(); ++i) {
      const ValueInfo& info = graph_.values()[i];
      TensorDesc& desc = plan_.descs[i] = info.type.desc;
      if (!info.type.batched || desc.shape.rank() < 3 || is_output(Value{static_cast<int32_t>(i)}))
        continue;  // the caller reads outputs as plain
      const std::vector<Layout> offered = backend_.activation_layouts(desc.shape, desc.dtype);
      for (const Layout& layout : offered)
        if (layout.to_string(desc.shape.rank()) == plan_.options.layout) desc.layout = layout;
    }
    plan_.layout = plan_.options.layout;
  }

  bool is_output(Value v) const {
    return std::ranges::find(graph_.outputs(), v) != graph_.outputs().end();
  }

  size_t sample_bytes(Value v) const {
    const TensorDesc& desc = plan_.descs[index(v)];
    return desc.bytes() / static_cast<size_t>(std::max<int64_t>(desc.shape[0], 1));
  }

  /// A tile's whole working set should fit the core's own cache.
  void choose_tiles() {
    const size_t budget =
        plan_.options.tile_bytes ? plan_.options.tile_bytes : backend_.tile_bytes();
    const int64_t share = (plan_.batch + plan_.options.threads - 1) / plan_.options.threads;
    for (const Band& band : schedule_.bands) {
      std::vector<Value> touched;
      for (const int n : band.nodes)
        for (const auto* list : {&node(n).in, &node(n).out})
          for (const Value v : *list)
            if (graph_.type(v).batched && std::ranges::find(touched, v) == touched.end())
              touched.push_back(v);
      size_t bytes = 0;
      for (const Value v : touched) bytes += sample_bytes(v);
      const auto fits = static_cast<int64_t>(bytes == 0 ? 1 : std::max<size_t>(1, budget / bytes));
      const int tiles = tiles_of(share, std::min(fits, share));
      PlanBand planned;
      planned.whole = band.whole;
      planned.tile = band.whole ? 0 : (share + tiles - 1) / tiles;
      plan_.bands.push_back(std::move(planned));
    }
  }

  /// What is known of a node's operands before its kernel is chosen.
  Step describe(int n, int64_t tile) {
    Step step;
    step.node = n;
    step.name = node(n).name;
    std::vector<ValueType> types;
    for (const Value v : node(n).in) types.push_back(graph_.type(v));
    step.walk = node(n).op->walk(types);
    step.request.op = node(n).op.get();
    const auto add = [&](Value v, std::vector<TensorDesc>& descs, std::vector<bool>& batched) {
      TensorDesc desc = plan_.descs[index(v)];
      if (graph_.type(v).batched) desc.shape[0] = tile;
      descs.push_back(desc);
      batched.push_back(graph_.type(v).batched);
    };
    for (size_t i = 0; i < node(n).in.size(); ++i) {
      const Value v = node(n).in[i];
      add(v, step.request.in, step.in_batched);
      step.request.in_free.push_back(graph_[v].role == Role::parameter && !node(n).op->in_update());
    }
    for (const Value v : node(n).out) {
      add(v, step.request.out, step.out_batched);
      step.request.out_free.push_back(false);
    }
    return step;
  }

  /// Parameters take the layout in which the backward pass produces their gradient, so that a
  /// gradient is never reordered.
  void lay_out_variables() {
    if (plan_.options.variables) {
      for (const Value p : graph_.with_role(Role::parameter)) {
        const Variable* variable = plan_.options.variables->find_parameter(graph_[p].name);
        CHECK(variable, "parameter '{}' is not among the variables of the training plan",
              graph_[p].name);
        plan_.descs[index(p)] = variable->desc;
      }
      return;
    }
    for (size_t b = 0; b < schedule_.bands.size(); ++b)
      for (const int n : schedule_.bands[b].nodes)
        for (size_t o = 0; o < node(n).out.size(); ++o) {
          const Value g = node(n).out[o];
          if (graph_[g].role != Role::gradient || graph_[g].producer != n) continue;
          Step step = describe(n, plan_.bands[b].tile);
          step.request.out_free[o] = true;
          const KernelCandidate& chosen = pick(step);
          plan_.descs[index(g)].layout = chosen.out[o].layout;
          plan_.descs[index(graph_[g].of)].layout = chosen.out[o].layout;
        }
    for (const Value s : graph_.with_role(Role::state))
      plan_.descs[index(s)].layout = plan_.descs[index(graph_[s].of)].layout;
    lay_out_update_results();
  }

  /// Results of updates are sized by how their parameters lie in memory.
  void lay_out_update_results() {
    for (const int n : schedule_.updates) {
      std::vector<ValueType> types;
      for (const Value v : node(n).in)
        types.push_back({plan_.descs[index(v)], graph_.type(v).batched});
      const std::vector<ValueType> results = node(n).op->infer(types);
      for (size_t o = 0; o < results.size(); ++o)
        plan_.descs[index(node(n).out[o])] = results[o].desc;
    }
  }

  KernelCandidate pick(Step& step) {
    const std::vector<KernelCandidate> candidates = backend_.candidates(step.request);
    try {
      const KernelCandidate& chosen =
          choose(step.request, candidates, plan_.options.measure, plan_.options.choices);
      step.kernel = chosen.name;
      for (const KernelCandidate& c : candidates)
        if (&c != &chosen)
          step.refused.push_back(c.name + ": " +
                                 (c.refusal.empty() ? "slower, or not first" : c.refusal));
      return chosen;
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("layer '{}': {}", step.name, error.what()));
    }
  }

  void choose_kernels() {
    for (size_t b = 0; b < schedule_.bands.size(); ++b) {
      PlanBand& band = plan_.bands[b];
      for (const int n : schedule_.bands[b].nodes)
        band.steps.push_back(choose_kernel(n, band.tile));
      for (const Step& step : band.steps) band.reduces |= step.walk == Walk::reduce;
    }
    for (const int n : schedule_.updates) {
      if (describe(n, 0).walk != Walk::exchange)
        plan_.updates.push_back({.step = choose_kernel(n, 0)});
      else
        producer_of(node(n).in[0]).sums_norms = true;
    }
  }

  UpdateStep& producer_of(Value v) {
    const auto at = std::ranges::find(plan_.updates, graph_[v].producer,
                                      [](const UpdateStep& update) { return update.step.node; });
    CHECK(at != plan_.updates.end(), "'{}' is not made by an update", graph_[v].name);
    return *at;
  }

  Step choose_kernel(int n, int64_t tile) {
    Step step = describe(n, tile);
    const KernelCandidate chosen = pick(step);
    for (size_t i = 0; i < chosen.in.size(); ++i) {
      Place place{.base = -1,
                  .offset = index(node(n).in[i]),
                  .stride = 0};  // resolved when everything has a place
      if (step.request.in_free[i] && !(chosen.in[i] == plan_.descs[index(node(n).in[i])]))
        place = {.base = kPacked, .offset = packed(node(n).in[i], chosen.in[i]), .stride = 0};
      step.in.push_back(place);
    }
    for (const Value v : node(n).out)
      step.out.push_back({.base = -1, .offset = index(v), .stride = 0});
    step.request.in = chosen.in;
    step.request.out = chosen.out;
    step.request.in_free.assign(chosen.in.size(), false);
    step.request.out_free.assign(chosen.out.size(), false);
    return step;
  }

  /// Offset in the packed arena of `parameter` as `wanted`; adds the step that makes it, once.
  size_t packed(Value parameter, const TensorDesc& wanted) {
    const std::string key = fmt::format("{} {}", parameter.id, wanted.to_string());
    if (const auto at = packed_.find(key); at != packed_.end()) return at->second;
    const size_t offset = packed_[key] = plan_.packed_bytes;
    plan_.packed_bytes += aligned(wanted.bytes());
    Step step;
    step.name = graph_[parameter].name + " as " + wanted.to_string();
    step.walk = Walk::whole;
    reorders_.push_back(std::make_shared<Reorder>(wanted.dtype));
    plan_.pack_ops.push_back(reorders_.back());
    step.request = {
        reorders_.back().get(), {plan_.descs[index(parameter)]}, {wanted}, {false}, {false}};
    pick(step);
    step.in_batched = step.out_batched = {false};
    step.in = {{.base = -1, .offset = index(parameter), .stride = 0}};
    step.out = {{.base = kPacked, .offset = offset, .stride = 0}};
    plan_.packs.push_back(std::move(step));
    return offset;
  }

  bool is_bucket(const Node& n) const {
    std::vector<ValueType> types;
    for (const Value v : n.in) types.push_back(graph_.type(v));
    return n.op->walk(types) == Walk::exchange && !n.op->in_update();
  }

  void place_variables() {
    Variables& variables = plan_.variables;
    if (plan_.options.variables) {
      variables = *plan_.options.variables;
    } else {
      std::vector<Value> order = graph_.with_role(
          Role::gradient);  // by bucket, and in a bucket in the order of production
      std::map<int, int> bucket_of;
      for (const Node& n : graph_.nodes())
        if (is_bucket(n))
          for (const Value g : n.in)
            bucket_of.emplace(g.id, static_cast<int>(&n - graph_.nodes().data()));
      std::ranges::sort(order, {}, [&](Value g) {
        return std::pair(bucket_of.contains(g.id) ? bucket_of.at(g.id) : 0,
                         schedule_.order[static_cast<size_t>(graph_[g].producer)]);
      });
      std::vector<Value> parameters;
      for (const Value g : order) parameters.push_back(graph_[g].of);
      for (const Value p : graph_.with_role(Role::parameter))
        if (std::ranges::find(parameters, p) == parameters.end()) parameters.push_back(p);
      for (const Value p : parameters) {
        variables.parameters.push_back(
            {graph_[p].name, plan_.descs[index(p)], variables.parameter_bytes, graph_[p].init});
        variables.parameter_bytes += aligned(plan_.descs[index(p)].bytes());
      }
      for (const Value s : graph_.with_role(Role::statistic)) {
        variables.statistics.push_back(
            {graph_[s].name, plan_.descs[index(s)], variables.statistic_bytes, graph_[s].init});
        variables.statistic_bytes += aligned(plan_.descs[index(s)].bytes());
      }
    }
    for (const Value p : graph_.with_role(Role::parameter))
      plan_.places[index(p)] = {kParameters, variables.find_parameter(graph_[p].name)->offset, 0};
    for (const Value g : graph_.with_role(Role::gradient))
      plan_.places[index(g)] = {kGradients,
                                variables.find_parameter(graph_[graph_[g].of].name)->offset, 0};
    for (const Value s : graph_.with_role(Role::statistic)) {
      const Variable* variable = variables.find_statistic(graph_[s].name);
      CHECK(variable, "statistic '{}' is not among the variables of the training plan",
            graph_[s].name);
      plan_.places[index(s)] = {kStatistics, variable->offset, 0};
    }
    place_state();
    size_t scalars = 0;
    for (const Value s : graph_.with_role(Role::scalar))
      plan_.places[index(s)] = {kScalars, 64 * scalars++, 0};
    plan_.inputs = graph_.with_role(Role::input);
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const Value v = plan_.inputs[i];
      plan_.places[index(v)] = {kFirstInput + static_cast<int>(i), 0,
                                graph_.type(v).batched ? sample_bytes(v) : 0};
    }
  }

  /// Optimizer state "PARAMETER.KIND" lies at its parameter's offset in the arena of its kind.
  void place_state() {
    Variables& variables = plan_.variables;
    for (const Value s : graph_.with_role(Role::state)) {
      const std::string& parameter = graph_[graph_[s].of].name;
      const std::string kind =
          graph_[s].name.substr(std::min(graph_[s].name.size(), parameter.size() + 1));
      auto at = std::ranges::find(variables.state_kinds, kind);
      if (at == variables.state_kinds.end()) at = variables.state_kinds.insert(at, kind);
      const auto k = static_cast<size_t>(at - variables.state_kinds.begin());
      plan_.places[index(s)] = {
          kState, k * variables.parameter_bytes + variables.find_parameter(parameter)->offset, 0};
    }
  }

  int band_of(int n) const { return schedule_.band_of[static_cast<size_t>(n)]; }

  /// Results that never leave their band live in the thread's tile scratch; all others in the
  /// arena. An output may take over the memory of an input nobody reads afterwards.
  void place_results() {
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
          const size_t i = index(v);
          results.push_back(v.id);
          first[i] = schedule_.order[static_cast<size_t>(step.node)];
          last[i] =
              is_output(v) ? static_cast<int>(count) * 2 : std::max(last_reader_[i], first[i]);
          stored[i] = !graph_.type(v).batched || is_output(v) || leaves_band(v);
        }
    };
    for (const PlanBand& band : plan_.bands) std::ranges::for_each(band.steps, collect);
    for (const UpdateStep& update : plan_.updates) {
      collect(update.step);
      // An update may run while the next forward has begun: what it leaves shares no memory with
      // results of bands.
      for (const Value v : node(update.step.node).out)
        first[index(v)] = 0, last[index(v)] = static_cast<int>(count) * 2;
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

  bool leaves_band(Value v) const {
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      if (std::ranges::find(graph_.nodes()[n].in, v) != graph_.nodes()[n].in.end() &&
          band_of(static_cast<int>(n)) != band_of(graph_[v].producer))
        return true;
    return false;
  }

  template <class Find>
  void share_in_place(int n, std::vector<int>& owner, const Find& find, std::vector<int>& last) {
    for (size_t o = 0; o < node(n).out.size(); ++o) {
      const int from = node(n).op->in_place(static_cast<int>(o));
      if (from < 0) continue;
      const Value in = node(n).in[static_cast<size_t>(from)], out = node(n).out[o];
      if (graph_[in].role != Role::result || graph_[out].role != Role::result || is_output(in))
        continue;
      if (!(plan_.descs[index(in)] == plan_.descs[index(out)]) ||
          graph_.type(in).batched != graph_.type(out).batched)
        continue;
      const int me = schedule_.order[static_cast<size_t>(n)];
      bool read_later = last_reader_[index(in)] > me;
      for (size_t v = 0; v < owner.size();
           ++v)  // whoever shares the input's memory must be dead, too
        if (find(static_cast<int>(v)) == find(in.id)) read_later |= last[v] > me;
      const bool read_twice = std::ranges::count(node(n).in, in) > 1;
      if (!read_later && !read_twice) owner[static_cast<size_t>(find(out.id))] = find(in.id);
    }
  }

  /// Within a band steps follow each other tile by tile, so a stored value lives for whole bands; a
  /// tile value for steps.
  template <class Find>
  void assign_offsets(const std::vector<int>& results,
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
        full.push_back({plan_.descs[index(v)].bytes(), band_of_position(span.first),
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

  void resolve_places() {
    const auto resolve = [&](std::vector<Place>& list) {
      for (Place& place : list)
        if (place.base == -1) place = plan_.places[place.offset];
    };
    for (Step& step : plan_.packs) resolve(step.in);
    for (PlanBand& band : plan_.bands)
      for (Step& step : band.steps) resolve(step.in), resolve(step.out);
    std::map<int, int> bucket_of;  // gradient value -> bucket
    for (size_t b = 0; b < schedule_.bands.size(); ++b)
      for (const int e : schedule_.bands[b].exchanges) {
        PlanBucket bucket;
        bucket.offset = SIZE_MAX;
        size_t end = 0;
        for (const Value g : node(e).in) {
          bucket_of[g.id] = static_cast<int>(plan_.buckets.size());
          bucket.offset = std::min(bucket.offset, plan_.places[index(g)].offset);
          end =
              std::max(end, plan_.places[index(g)].offset + aligned(plan_.descs[index(g)].bytes()));
        }
        bucket.bytes = end - bucket.offset;
        plan_.bands[b].ready.push_back(static_cast<int>(plan_.buckets.size()));
        plan_.buckets.push_back(bucket);
      }
    for (UpdateStep& update : plan_.updates) {
      resolve(update.step.in);
      resolve(update.step.out);
      for (size_t i = 0; i < update.step.in.size(); ++i) {
        const auto at = bucket_of.find(node(update.step.node).in[i].id);
        if (at == bucket_of.end()) continue;
        CHECK(update.bucket < 0 || update.bucket == at->second, "{} reads gradients of two buckets",
              update.step.name);
        update.bucket = at->second;
        Place& place = update.step.in[i];
        place.base = kFirstInput + static_cast<int>(plan_.inputs.size()) + at->second;
        place.offset -= plan_.buckets[static_cast<size_t>(at->second)].offset;
      }
      CHECK(update.bucket >= 0, "{} reads the gradient of no bucket", update.step.name);
    }
    describe_buckets();
  }

  /// What becomes possible when a bucket's sum has arrived, and until when that has to be done.
  void describe_buckets() {
    const auto holder = [&](Place parameter) -> PlanBucket* {
      for (PlanBucket& bucket : plan_.buckets)
        if (parameter.offset >= bucket.offset && parameter.offset < bucket.offset + bucket.bytes)
          return &bucket;
      return nullptr;  // a parameter that is not trained
    };
    for (PlanBucket& bucket : plan_.buckets)
      bucket.first_use = static_cast<int>(plan_.bands.size());
    for (size_t u = 0; u < plan_.updates.size(); ++u)
      plan_.buckets[static_cast<size_t>(plan_.updates[u].bucket)].updates.push_back(
          static_cast<int>(u));
    for (size_t k = 0; k < plan_.packs.size(); ++k)
      if (PlanBucket* bucket = holder(plan_.packs[k].in[0]))
        bucket->packs.push_back(static_cast<int>(k));
    for (size_t n = 0; n < graph_.nodes().size(); ++n)
      for (const Value v : graph_.nodes()[n].in)
        if (PlanBucket* bucket =
                graph_[v].role == Role::parameter && band_of(static_cast<int>(n)) >= 0
                    ? holder(plan_.places[index(v)])
                    : nullptr)
          bucket->first_use = std::min(bucket->first_use, band_of(static_cast<int>(n)));
  }

  const Graph& graph_;
  const Backend& backend_;
  const Schedule schedule_;
  Plan plan_;
  std::vector<int> last_reader_;          // execution position of the last reader
  std::map<std::string, size_t> packed_;  // parameter and desc -> offset
  std::vector<std::shared_ptr<const Reorder>> reorders_;
};

}  // namespace

Plan compile_with_layout(const Graph& graph, const Backend& backend, const PlanOptions& options) {
  return Compiler(graph, backend, options).compile();
}

}  // namespace tutti
