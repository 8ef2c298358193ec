#include "tutti/plan/compiler.h"

namespace tutti {

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
  for (UpdateStep& update : plan_.updates) resolve_step(update.step);
  make_exchanges();
  make_buckets();
  assign_updates();
  describe_buckets();
}

void Compiler::make_exchanges() {
  std::map<int, int> numbers;  // node -> exchange
  for (size_t b = 0; b < schedule_.bands.size(); ++b) {
    for (const int e : schedule_.bands[b].waits) plan_.bands[b].waits.push_back(numbers.at(e));
    for (const int e : schedule_.bands[b].starts) {
      numbers[e] = static_cast<int>(plan_.exchanges.size());
      plan_.bands[b].starts.push_back(numbers[e]);
      PlanExchange& made = plan_.exchanges.emplace_back();
      made.node = e;
      for (const Value v : node(e).in) {
        made.in.push_back(plan_.place(v));
        made.in_desc.push_back(plan_.desc(v));
      }
      for (const Value v : node(e).out) {
        made.out.push_back(plan_.place(v));
        made.out_desc.push_back(plan_.desc(v));
      }
    }
  }
  for (const int e : schedule_.waits_at_end) plan_.waits_at_end.push_back(numbers.at(e));
}

void Compiler::make_buckets() {
  for (size_t b = 0; b < schedule_.bands.size(); ++b)
    for (const int e : schedule_.bands[b].buckets) {
      PlanBucket bucket;
      bucket.offset = SIZE_MAX;
      size_t end = 0;
      for (const Value g : node(e).in) {
        bucket_of_gradient_[g.id] = static_cast<int>(plan_.buckets.size());
        bucket.offset = std::min(bucket.offset, plan_.places[index_of(g)].offset);
        end = std::max(
            end, plan_.places[index_of(g)].offset + aligned(plan_.descs[index_of(g)].bytes()));
      }
      bucket.bytes = end - bucket.offset;
      plan_.bands[b].ready.push_back(static_cast<int>(plan_.buckets.size()));
      plan_.buckets.push_back(bucket);
    }
}

void Compiler::assign_updates() {
  for (UpdateStep& update : plan_.updates) {
    for (size_t i = 0; i < update.step.in.size(); ++i) {
      const auto at = bucket_of_gradient_.find(node(update.step.node).in[i].id);
      if (at == bucket_of_gradient_.end()) continue;
      CHECK(update.bucket < 0 || update.bucket == at->second, "{} reads gradients of two buckets",
            update.step.name);
      update.bucket = at->second;
      Place& place = update.step.in[i];
      place.base = kFirstInput + static_cast<int>(plan_.inputs.size()) + at->second;
      place.offset -= plan_.buckets[static_cast<size_t>(at->second)].offset;
    }
    CHECK(update.bucket >= 0, "{} reads the gradient of no bucket", update.step.name);
  }
}

void Compiler::describe_buckets() {
  const auto holder = [&](Place parameter) -> PlanBucket* {
    for (PlanBucket& bucket : plan_.buckets)
      if (parameter.offset >= bucket.offset && parameter.offset < bucket.offset + bucket.bytes)
        return &bucket;
    return nullptr;  // a parameter that is not trained
  };
  for (PlanBucket& bucket : plan_.buckets) bucket.first_use = static_cast<int>(plan_.bands.size());
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
                  ? holder(plan_.places[index_of(v)])
                  : nullptr)
        bucket->first_use = std::min(bucket->first_use, band_of(static_cast<int>(n)));
}

}  // namespace tutti
