#include "tutti/plan/plan_exchanges.h"

#include <algorithm>
#include <map>

#include "tutti/base/error.h"
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
  PlanExchange exchange{.node = e,
                        .kind = exchange_kind(plan.graph, node),
                        .in = {},
                        .out = {},
                        .in_desc = {},
                        .out_desc = {}};
  add_operands(plan, node.in, exchange.in, exchange.in_desc);
  add_operands(plan, node.out, exchange.out, exchange.out_desc);
  if (exchange.kind == ExchangeKind::gradients) {
    exchange.bucket = static_cast<int>(plan.buckets.size());
    PlanBucket bucket = bucket_of(plan, node);
    bucket.exchange = number;
    exchange.out.push_back({.base = plan.base_of_sum(plan.buckets.size()), .offset = 0});
    exchange.out_desc.push_back(
        {DType::f32, Shape{static_cast<int64_t>(bucket.bytes / sizeof(float))}, {}});
    plan.buckets.push_back(bucket);
  }
  plan.exchanges.push_back(std::move(exchange));
  return number;
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
  }
  for (const int e : schedule.waits_at_end) plan.waits_at_end.push_back(numbers.at(e));
}

}  // namespace tutti
