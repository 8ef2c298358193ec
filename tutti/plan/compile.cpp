#include "tutti/plan/compiler.h"

namespace tutti {

Compiler::Compiler(const Graph& graph, const Backend& backend, const PlanOptions& options)
    : graph_(graph), backend_(backend), schedule_(make_schedule(graph)) {
  plan_.graph = graph;
  plan_.options = options;
  plan_.descs.resize(graph.values().size());
  plan_.places.resize(graph.values().size());
  last_reader_.assign(graph.values().size(), -1);
}

Plan Compiler::compile() {
  find_batch();
  find_lifetimes();
  choose_layouts();
  choose_tiles();
  lay_out_variables();
  choose_kernels();
  place_variables();
  place_results();
  resolve_places();
  make_exchanges(plan_, schedule_);
  make_stages(plan_, schedule_);
  return std::move(plan_);
}

void Compiler::resolve_places() {
  const auto resolve = [&](std::vector<Place>& list, const std::vector<bool>& in_tiles) {
    for (size_t i = 0; i < list.size(); ++i) {
      Place& place = list[i];
      if (place.base == -1) place = plan_.places[place.offset];
      if (!in_tiles[i]) place.stride = 0;
    }
  };
  const auto resolve_step = [&](Step& step) {
    resolve(step.in, step.in_batched);
    resolve(step.out, step.out_batched);
  };
  std::ranges::for_each(plan_.packs, resolve_step);
  for (PlanBand& band : plan_.bands) std::ranges::for_each(band.steps, resolve_step);
  std::ranges::for_each(plan_.updates, resolve_step);
}

void Compiler::find_batch() {
  for (const ValueInfo& info : graph_.values())
    if (info.role == Role::input && info.type.batched) plan_.batch = info.type.desc.shape[0];
  if (plan_.batch <= 0) throw ConfigError("the graph has no batched input");
  for (const ValueInfo& info : graph_.values())
    if (info.type.batched && (info.type.desc.shape[0] % plan_.batch != 0 ||
                              (info.role == Role::input && info.type.desc.shape[0] != plan_.batch)))
      throw ConfigError(fmt::format("'{}' has {} samples, the batch has {}", info.name,
                                    info.type.desc.shape[0], plan_.batch));
}

void Compiler::find_lifetimes() {
  for (size_t n = 0; n < graph_.nodes().size(); ++n)
    for (const Value v : graph_.nodes()[n].in)
      last_reader_[index_of(v)] = std::max(last_reader_[index_of(v)], schedule_.order[n]);
}

void Compiler::choose_layouts() {
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

void Compiler::choose_tiles() {
  const size_t budget = plan_.options.tile_bytes ? plan_.options.tile_bytes : backend_.tile_bytes();
  for (const Band& band : schedule_.bands) {
    const int64_t share = (band.samples + plan_.options.threads - 1) / plan_.options.threads;
    std::vector<Value> touched;
    for (const int n : band.nodes)
      for (const auto* list : {&node(n).in, &node(n).out})
        for (const Value v : *list)
          if (graph_.type(v).batched && std::ranges::find(touched, v) == touched.end())
            touched.push_back(v);
    size_t bytes = 0;
    for (const Value v : touched) bytes += sample_bytes(v);
    const auto fits = static_cast<int64_t>(bytes == 0 ? 1 : std::max<size_t>(1, budget / bytes));
    PlanBand planned;
    planned.samples = band.samples;
    planned.whole = band.whole;
    const int tiles = band.whole ? 1 : tiles_of(share, std::min(fits, share));
    planned.tile = band.whole ? 0 : (share + tiles - 1) / tiles;
    plan_.bands.push_back(std::move(planned));
  }
}

Plan compile_with_layout(const Graph& graph, const Backend& backend, const PlanOptions& options) {
  return Compiler(graph, backend, options).compile();
}

}  // namespace tutti
