#include "tutti/plan/plan_exchanges.h"

#include <algorithm>
#include <map>

#include "tutti/base/error.h"
#include "tutti/ops/rows.h"
#include "tutti/plan/memory.h"

namespace tutti {
namespace {

void add_operands(const Plan& plan, const std::vector<Value>& values, std::vector<Place>& places,
                  std::vector<TensorDesc>& descs) {
  for (const Value v : values) {
    places.push_back(plan.place(v));
    descs.push_back(plan.desc(v));
  }
}

/// The bucket of the gradients that node `e` sums.
PlanBucket bucket_of(const Plan& plan, const Node& node) {
  PlanBucket bucket;
  bucket.offset = SIZE_MAX;
  size_t end = 0;
  for (const Value g : node.in) {
    const size_t offset = plan.place(g).offset;
    bucket.offset = std::min(bucket.offset, offset);
    end = std::max(end, offset + aligned(plan.desc(g).bytes()));
  }
  bucket.bytes = end - bucket.offset;
  return bucket;
}

/// Adds the exchange that node `e` stands for; its number.
int add_exchange(Plan& plan, int e) {
  const auto number = static_cast<int>(plan.exchanges.size());
  const Node& node = plan.graph.nodes()[static_cast<size_t>(e)];
  PlanExchange exchange{.node = e, .in = {}, .out = {}, .in_desc = {}, .out_desc = {}};
  add_operands(plan, node.in, exchange.in, exchange.in_desc);
  add_operands(plan, node.out, exchange.out, exchange.out_desc);
  if (node.op->mutates(0) && !node.op->in_update()) {
    PlanBucket bucket = bucket_of(plan, node);
    bucket.exchange = number;
    exchange.out.push_back({.base = plan.base_of_sum(plan.buckets.size()), .offset = 0});
    exchange.out_desc.push_back(
        {DType::f32, Shape{static_cast<int64_t>(bucket.bytes / sizeof(float))}, {}});
    plan.buckets.push_back(bucket);
  } else if (node.op->mutates(0)) {
    exchange.out = exchange.in;
    exchange.out_desc = exchange.in_desc;
  }
  plan.exchanges.push_back(std::move(exchange));
  return number;
}

/// Whether sample `s` of an op's results reads input `i`: slabs in the middle read no rows of
/// others.
bool reads(const Op& op, size_t i, size_t s) {
  const auto sample = static_cast<int64_t>(s);
  if (const auto* gather = dynamic_cast<const GatherRows*>(&op)) return gather->reads(i, sample);
  if (const auto* sum = dynamic_cast<const AddRows*>(&op)) return sum->reads(i, sample);
  return true;
}

/// Which samples of a band read nothing of what it waits for; empty where there are none.
std::vector<bool> early_samples(const Graph& graph, const Band& band) {
  std::vector<bool> early(static_cast<size_t>(band.samples), !band.waits.empty());
  std::vector<Value> received;
  for (const int e : band.waits) {
    const Node& exchange = graph.nodes()[static_cast<size_t>(e)];
    received.insert(received.end(), exchange.out.begin(), exchange.out.end());
  }
  for (const int n : band.nodes) {
    const Node& node = graph.nodes()[static_cast<size_t>(n)];
    for (size_t i = 0; i < node.in.size(); ++i) {
      if (std::ranges::find(received, node.in[i]) == received.end()) continue;
      for (size_t s = 0; s < early.size(); ++s) early[s] = early[s] && !reads(*node.op, i, s);
    }
  }
  return std::ranges::find(early, true) == early.end() ? std::vector<bool>{} : early;
}

}  // namespace

void make_exchanges(Plan& plan, const Schedule& schedule) {
  std::map<int, int> numbers;  // node -> exchange
  for (size_t b = 0; b < schedule.bands.size(); ++b) {
    for (const int e : schedule.bands[b].waits) plan.bands[b].waits.push_back(numbers.at(e));
    for (const int e : schedule.bands[b].starts) {
      numbers[e] = add_exchange(plan, e);
      plan.bands[b].starts.push_back(numbers[e]);
    }
    plan.bands[b].early = early_samples(plan.graph, schedule.bands[b]);
  }
  for (const int e : schedule.waits_at_end) plan.waits_at_end.push_back(numbers.at(e));
}

}  // namespace tutti
