#include "tutti/plan/tiles.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::plan {
namespace {

struct Touched {
  size_t sample = 0;   ///< bytes of one sample of every batched value
  size_t weights = 0;  ///< bytes of all others
};

Touched touched_by(const Plan& plan, const Band& band) {
  std::vector<graph::Value> touched;
  for (const int n : band.nodes) {
    const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(n)];
    for (const auto* list : {&node.in, &node.out})
      for (const graph::Value v : *list)
        if (std::ranges::find(touched, v) == touched.end()) touched.push_back(v);
  }
  Touched bytes;
  for (const graph::Value v : touched)
    if (plan.graph.type(v).batched)
      bytes.sample += bytes_of_sample(plan.desc(v));
    else
      bytes.weights += plan.desc(v).bytes();
  return bytes;
}

/// Every tile goes through all weights once, so tiles smaller than the weights save less traffic
/// than they cause: where weights do not fit into the cache, tiles are as large as the weights.
size_t budget_of(const Plan& plan, const Touched& touched, size_t advised) {
  return plan.options.tile_bytes ? plan.options.tile_bytes : std::max(advised, touched.weights);
}

}  // namespace

int64_t batch_of(const graph::Graph& graph) {
  int64_t batch = 0;
  for (const graph::ValueInfo& info : graph.values())
    if (info.role == graph::Role::input && info.type.batched) batch = info.type.desc.shape[0];
  const bool nothing_bound = batch == 0;
  // A stage of a pipeline may read only received values; a value may have more slabs than samples.
  for (const graph::ValueInfo& info : graph.values())
    if (nothing_bound && info.type.batched)
      batch = batch == 0 ? info.type.desc.shape[0] : std::min(batch, info.type.desc.shape[0]);
  if (batch <= 0) throw ConfigError("the graph has no batched input");
  for (const graph::ValueInfo& info : graph.values()) {
    if (!info.type.batched) continue;
    const int64_t samples = info.type.desc.shape[0];
    if (samples % batch != 0 || (info.role == graph::Role::input && samples != batch))
      throw ConfigError(
          fmt::format("'{}' has {} samples, the batch has {}", info.name, samples, batch));
  }
  return batch;
}

size_t bytes_of_sample(const TensorDesc& desc) {
  return desc.bytes() / static_cast<size_t>(std::max<int64_t>(desc.shape[0], 1));
}

std::vector<PlanBand> cut_into_tiles(const Plan& plan, const Schedule& schedule, size_t advised) {
  std::vector<PlanBand> bands;
  for (const Band& band : schedule.bands) {
    PlanBand& cut = bands.emplace_back();
    cut.samples = band.samples;
    cut.whole = band.whole;
    cut.repeats = band.repeats;
    cut.tile = 0;
    if (band.repeats >= 0) {  // the same tiles, and so the same kernels and bits
      cut.tile = bands[static_cast<size_t>(band.repeats)].tile;
      continue;
    }
    if (band.whole) continue;
    const int64_t share = (band.samples + plan.options.threads - 1) / plan.options.threads;
    const Touched bytes = touched_by(plan, band);
    const size_t budget = budget_of(plan, bytes, advised);
    const auto fits =
        static_cast<int64_t>(bytes.sample == 0 ? 1 : std::max<size_t>(1, budget / bytes.sample));
    const int tiles = tiles_of(share, std::min(fits, share));
    cut.tile = (share + tiles - 1) / tiles;
  }
  return bands;
}

}  // namespace tutti::plan
