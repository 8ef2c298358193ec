#include "tutti/plan/plan_exchanges.h"

#include <algorithm>
#include <map>

#include "tutti/ops/rows.h"
#include "tutti/plan/memory.h"

namespace tutti::plan {
namespace {

void add_operands(const Plan& plan, const std::vector<graph::Value>& values,
                  std::vector<Place>& places, std::vector<TensorDesc>& descs) {
  for (const graph::Value v : values) {
    places.push_back(plan.place(v));
    descs.push_back(plan.desc(v));
  }
}

/// Returns the slice of the arena that holds the gradients which `node` sums.
PlanBucket bucket_of(const Plan& plan, const graph::Node& node) {
  PlanBucket bucket;
  bucket.offset = SIZE_MAX;
  size_t end = 0;
  for (const graph::Value g : node.in) {
    const size_t offset = plan.place(g).offset;
    bucket.offset = std::min(bucket.offset, offset);
    end = std::max(end, offset + aligned(plan.desc(g).bytes()));
  }
  bucket.bytes = end - bucket.offset;
  return bucket;
}

/// Adds the exchange of node `e` and returns its number.
int add_exchange(const Plan& plan, int e, ExchangeList& list) {
  const auto number = static_cast<int>(list.all.size());
  const graph::Node& node = plan.graph.nodes()[static_cast<size_t>(e)];
  PlanExchange& exchange = list.all.emplace_back();
  exchange.node = e;
  exchange.kind = exchange_kind(plan.graph, node);
  add_operands(plan, node.in, exchange.in, exchange.in_desc);
  add_operands(plan, node.out, exchange.out, exchange.out_desc);
  if (exchange.kind == ExchangeKind::gradients) {
    exchange.bucket = static_cast<int>(list.buckets.size());
    PlanBucket& bucket = list.buckets.emplace_back(bucket_of(plan, node));
    bucket.exchange = number;
    exchange.out.push_back({.base = plan.base_of_sum(list.buckets.size() - 1), .offset = 0});
    exchange.out_desc.push_back(
        {DType::f32, Shape{static_cast<int64_t>(bucket.bytes / sizeof(float))}, {}});
  } else if (exchange.kind != ExchangeKind::parts) {
    exchange.out = exchange.in;
    exchange.out_desc = exchange.in_desc;
  }
  if (exchange.kind == ExchangeKind::weights)
    exchange.bucket = bucket_at(list.buckets, exchange.in.front().offset);
  return number;
}

/// Finds the first band that reads a parameter of each bucket.
void find_first_uses(const Plan& plan, const Schedule& schedule, std::vector<PlanBucket>& buckets) {
  for (PlanBucket& bucket : buckets) bucket.first_use = static_cast<int>(schedule.bands.size());
  for (size_t n = 0; n < plan.graph.nodes().size(); ++n)
    for (const graph::Value v : plan.graph.nodes()[n].in) {
      if (plan.graph[v].role != graph::Role::parameter || schedule.band_of[n] < 0) continue;
      const int b = bucket_at(buckets, plan.place(v).offset);
      if (b < 0) continue;
      int& first = buckets[static_cast<size_t>(b)].first_use;
      first = std::min(first, schedule.band_of[n]);
    }
}

/// Whether sample `s` of an op's results reads input `i`: slabs in the middle of a sample read no
/// rows of other parts.
bool reads(const graph::Op& op, size_t i, size_t s) {
  const auto sample = static_cast<int64_t>(s);
  if (const auto* gather = dynamic_cast<const ops::GatherRows*>(&op))
    return gather->reads(i, sample);
  if (const auto* sum = dynamic_cast<const ops::AddRows*>(&op)) return sum->reads(i, sample);
  return true;
}

/// Lists which samples of a band read none of the values that it waits for; empty if there are
/// none.
std::vector<bool> early_samples(const graph::Graph& graph, const Band& band) {
  std::vector<bool> early(static_cast<size_t>(band.samples), !band.waits.empty());
  std::vector<graph::Value> received;
  for (const int e : band.waits) {
    const graph::Node& exchange = graph.nodes()[static_cast<size_t>(e)];
    received.insert(received.end(), exchange.out.begin(), exchange.out.end());
  }
  for (const int n : band.nodes) {
    const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (std::ranges::find(received, node.in[i]) == received.end()) continue;
      for (size_t s = 0; s < early.size(); ++s) early[s] = early[s] && !reads(*node.op, i, s);
    }
  }
  return std::ranges::find(early, true) == early.end() ? std::vector<bool>{} : early;
}

/// Returns the first band that waits for an exchange without inputs on this rank that follows one
/// which gives values to others: they have computed its values from these.
int turning_band(const graph::Graph& graph, const Schedule& schedule) {
  const auto node = [&](int n) -> const graph::Node& {
    return graph.nodes()[static_cast<size_t>(n)];
  };
  const auto count = static_cast<int>(graph.nodes().size());
  int given = 0;
  while (given < count && !node(given).op->gives_to_others()) ++given;
  for (size_t b = 0; b < schedule.bands.size(); ++b)
    for (const int e : schedule.bands[b].waits)
      if (node(e).in.empty() && e > given) return static_cast<int>(b);
  return static_cast<int>(schedule.bands.size());
}

}  // namespace

ExchangeList list_exchanges(const Plan& plan, const Schedule& schedule) {
  ExchangeList list;
  std::map<int, int> numbers;  // node -> exchange
  for (const int e : schedule.begins)
    list.begins.push_back(numbers[e] = add_exchange(plan, e, list));
  for (const Band& band : schedule.bands) {
    std::vector<int>& waits = list.waits.emplace_back();
    for (const int e : band.waits) waits.push_back(numbers.at(e));
    std::vector<int>& starts = list.starts.emplace_back();
    for (const int e : band.starts) starts.push_back(numbers[e] = add_exchange(plan, e, list));
    list.early.push_back(early_samples(plan.graph, band));
  }
  list.turning = turning_band(plan.graph, schedule);
  for (const int e : schedule.waits_at_end) list.waits_at_end.push_back(numbers.at(e));
  for (const int n : schedule.updates)
    if (exchange_kind(plan.graph, plan.graph.nodes()[static_cast<size_t>(n)]) != ExchangeKind::none)
      add_exchange(plan, n, list);
  find_first_uses(plan, schedule, list.buckets);
  return list;
}

int bucket_at(const std::vector<PlanBucket>& buckets, size_t offset) {
  for (size_t b = 0; b < buckets.size(); ++b)
    if (offset >= buckets[b].offset && offset < buckets[b].offset + buckets[b].bytes)
      return static_cast<int>(b);
  return -1;
}

}  // namespace tutti::plan
