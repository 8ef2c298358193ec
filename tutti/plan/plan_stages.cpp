#include "tutti/plan/plan_stages.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "tutti/base/error.h"
#include "tutti/graph/per_value.h"
#include "tutti/plan/plan_exchanges.h"

namespace tutti::plan {
namespace {

/// A stage before the stages are sorted: `after` holds positions in the order of adding.
struct NewStage {
  PlanStage stage;
  int depth = 0;  ///< 0, or one more than the stages whose results its updates read
};

/// Turns the graph's updates and exchanges into stages, one for each bucket and depth; a bucket's
/// packs follow its updates.
class StageList {
 public:
  explicit StageList(const Plan& plan)
      : plan_(plan), made_in_(plan.graph, -1), changed_in_(plan.graph, -1),
        sum_of_(plan.graph, -1) {}

  /// Adds number `u` of the plan's updates. Call this and add_exchange() in the order of the graph.
  void add_update(int u) {
    const Step& update = plan_.updates[static_cast<size_t>(u)];
    const graph::Node& node = plan_.graph.nodes()[static_cast<size_t>(update.node)];
    const int bucket = bucket_read_by(node);
    int depth = 0;
    for (const graph::Value v : node.in) {
      if (made_in_[v] >= 0) depth = std::max(depth, depth_of(made_in_[v]) + 1);
      // Updates in a stage keep their order, and each thread its share of the elements.
      if (changed_in_[v] >= 0) depth = std::max(depth, depth_of(changed_in_[v]));
    }
    const int s = stage_at({bucket, depth});
    at(s).updates.push_back(u);
    if (bucket >= 0) wait_for(s, plan_.buckets[static_cast<size_t>(bucket)].exchange);
    for (const graph::Value v : node.in) {
      if (made_in_[v] >= 0) follow(s, made_in_[v]);
      if (sum_of_[v] >= 0) wait_for(s, sum_of_[v]);
    }
    for (const graph::Value v : node.out) made_in_[v] = s;
    for (size_t i = 0; i < node.in.size(); ++i)
      if (node.op->mutates(static_cast<int>(i))) changed_in_[node.in[i]] = s;
  }

  /// Adds number `e` of the plan's exchanges, one of the update: the last stage that makes its
  /// input begins it.
  void add_exchange(int e) {
    const PlanExchange& exchange = plan_.exchanges[static_cast<size_t>(e)];
    const graph::Node& node = plan_.graph.nodes()[static_cast<size_t>(exchange.node)];
    if (exchange.kind == ExchangeKind::weights) {
      const int bucket = exchange.bucket;
      CHECK(bucket >= 0, "{}: its parameters have no gradients", node.name);
      weights_of_[bucket] = e;
      const int last = last_of(bucket);
      for (const auto& [key, s] : numbers_)
        if (key.first == bucket) follow(last, s);
      at(last).starts.push_back(e);
      return;
    }
    CHECK(node.in.size() == 1 && made_in_[node.in[0]] >= 0, "{}: not made by an update", node.name);
    at(made_in_[node.in[0]]).starts.push_back(e);
    sum_of_[node.in[0]] = e;
  }

  /// Call this once all updates and exchanges are added.
  void add_packs(int bucket) {
    PlanStage packs;
    packs.after = {last_of(bucket)};
    packs.bucket = bucket;
    packs.first_use = plan_.buckets[static_cast<size_t>(bucket)].first_use;
    for (size_t k = 0; k < plan_.packs.size(); ++k)
      if (bucket_at(plan_.buckets, plan_.packs[k].in[0].offset) == bucket)
        packs.packs.push_back(static_cast<int>(k));
    if (const auto weights = weights_of_.find(bucket); weights != weights_of_.end())
      packs.waits.push_back(weights->second);
    if (!packs.packs.empty() || !packs.waits.empty()) stages_.push_back({packs, 0});
  }

  std::vector<NewStage> take() { return std::move(stages_); }

 private:
  using Key = std::pair<int, int>;  // bucket, depth

  PlanStage& at(int s) { return stages_[static_cast<size_t>(s)].stage; }
  int depth_of(int s) const { return stages_[static_cast<size_t>(s)].depth; }

  /// Returns the bucket whose sum the update reads; -1: none.
  int bucket_read_by(const graph::Node& update) const {
    int bucket = -1;
    for (const graph::Value v : update.in) {
      if (plan_.graph[v].role != graph::Role::gradient) continue;
      const int b = bucket_at(plan_.buckets, plan_.place(v).offset);
      CHECK(b < 0 || bucket < 0 || bucket == b, "{} reads gradients of two buckets", update.name);
      bucket = std::max(bucket, b);
    }
    return bucket;
  }

  /// Returns the stage of a bucket and a depth; it follows the bucket's stages of smaller depth.
  int stage_at(Key key) {
    const auto [found, added] = numbers_.try_emplace(key, static_cast<int>(stages_.size()));
    if (!added) return found->second;
    PlanStage made;
    made.bucket = key.first;
    made.first_use = key.first < 0 ? static_cast<int>(plan_.bands.size())
                                   : plan_.buckets[static_cast<size_t>(key.first)].first_use;
    stages_.push_back({made, key.second});
    for (const auto& [other, s] : numbers_)
      if (other.first == key.first && other.second < key.second) follow(found->second, s);
    return found->second;
  }
  int last_of(int bucket) const {
    int last = -1;
    for (const auto& [key, s] : numbers_)
      if (key.first == bucket) last = s;
    CHECK(last >= 0, "bucket {} is summed, and nothing updates its parameters", bucket);
    return last;
  }

  void follow(int s, int other) {
    std::vector<int>& after = at(s).after;
    if (s != other && std::ranges::find(after, other) == after.end()) after.push_back(other);
  }
  /// One stage waits for an exchange; others that need it follow that stage.
  void wait_for(int s, int exchange) {
    const auto [waiting, added] = waits_.try_emplace(exchange, s);
    if (added)
      at(s).waits.push_back(exchange);
    else
      follow(s, waiting->second);
  }

  const Plan& plan_;
  graph::PerValue<int> made_in_;     // result of an update -> its stage
  graph::PerValue<int> changed_in_;  // value changed in place by an update -> its last stage
  graph::PerValue<int> sum_of_;      // result of an update -> the exchange that changes it
  std::map<int, int> weights_of_;    // bucket -> the exchange of its weights
  std::map<int, int> waits_;         // exchange -> the stage that waits for it
  std::map<Key, int> numbers_;
  std::vector<NewStage> stages_;
};

/// Makes each stage as urgent as the stages that follow it.
void hurry_what_others_need(std::vector<NewStage>& stages) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const NewStage& one : stages)
      for (const int before : one.stage.after)
        if (int& first = stages[static_cast<size_t>(before)].stage.first_use;
            first > one.stage.first_use) {
          first = one.stage.first_use;
          changed = true;
        }
  }
}

/// Sorts by urgency, packs last, a bucket's stages together; each stage stands behind those it
/// follows.
std::vector<PlanStage> in_order(const std::vector<NewStage>& stages) {
  std::vector<int> order, place(stages.size(), -1);
  const auto key = [&](int s) {
    const auto& [stage, depth] = stages[static_cast<size_t>(s)];
    return std::tuple(stage.first_use, !stage.packs.empty() || stage.updates.empty(), stage.bucket,
                      depth, s);
  };
  const auto is_free = [&](int s) {
    return place[static_cast<size_t>(s)] < 0 &&
           std::ranges::all_of(stages[static_cast<size_t>(s)].stage.after,
                               [&](int before) { return place[static_cast<size_t>(before)] >= 0; });
  };
  while (order.size() < stages.size()) {
    int best = -1;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s)
      if (is_free(s) && (best < 0 || key(s) < key(best))) best = s;
    CHECK(best >= 0, "stages of the update wait for each other");
    place[static_cast<size_t>(best)] = static_cast<int>(order.size());
    order.push_back(best);
  }
  std::vector<PlanStage> sorted;
  for (const int s : order) {
    PlanStage& moved = sorted.emplace_back(stages[static_cast<size_t>(s)].stage);
    for (int& before : moved.after) before = place[static_cast<size_t>(before)];
    std::ranges::sort(moved.after);
  }
  return sorted;
}

}  // namespace

std::vector<PlanStage> make_stages(const Plan& plan, const Schedule& schedule) {
  StageList list(plan);
  const auto exchange_of = [&](int n) {
    return static_cast<int>(std::ranges::find(plan.exchanges, n, &PlanExchange::node) -
                            plan.exchanges.begin());
  };
  size_t update = 0;
  for (const int n : schedule.updates)
    if (update < plan.updates.size() && plan.updates[update].node == n)
      list.add_update(static_cast<int>(update++));
    else
      list.add_exchange(exchange_of(n));
  for (size_t b = 0; b < plan.buckets.size(); ++b) list.add_packs(static_cast<int>(b));
  std::vector<NewStage> stages = list.take();
  hurry_what_others_need(stages);
  return in_order(stages);
}

}  // namespace tutti::plan
