#include <algorithm>
#include <map>
#include <tuple>

#include "tutti/base/error.h"
#include "tutti/plan/plan_exchanges.h"

namespace tutti {
namespace {

/// Stages while they are made: by bucket and depth, packs behind all updates.
class Stages {
 public:
  Stages(Plan& plan, const Schedule& schedule) : plan_(plan), schedule_(schedule) {}

  void make() {
    find_first_uses();
    for (size_t b = 0; b < plan_.buckets.size(); ++b)
      for (const Value g : node_of(plan_.exchanges[exchange_of(b)]).in)
        bucket_of_gradient_[g.id] = static_cast<int>(b);
    size_t update = 0;
    for (const int n : schedule_.updates)
      if (update < plan_.updates.size() && plan_.updates[update].node == n)
        add_update(update++);
      else
        add_exchange(n);
    for (size_t b = 0; b < plan_.buckets.size(); ++b) add_packs(b);
    hurry_what_others_need();
    put_in_order();
  }

 private:
  using Key = std::pair<int, int>;  // bucket, depth

  const Node& node_of(const PlanExchange& exchange) const {
    return plan_.graph.nodes()[static_cast<size_t>(exchange.node)];
  }
  size_t exchange_of(size_t bucket) const {
    return static_cast<size_t>(plan_.buckets[bucket].exchange);
  }
  PlanStage& stage(int s) { return plan_.stages[static_cast<size_t>(s)]; }

  /// Of a parameter, by its place; -1: it is not trained.
  int holder(Place parameter) const {
    for (size_t b = 0; b < plan_.buckets.size(); ++b)
      if (parameter.offset >= plan_.buckets[b].offset &&
          parameter.offset < plan_.buckets[b].offset + plan_.buckets[b].bytes)
        return static_cast<int>(b);
    return -1;
  }

  void find_first_uses() {
    for (PlanBucket& bucket : plan_.buckets)
      bucket.first_use = static_cast<int>(plan_.bands.size());
    for (size_t n = 0; n < plan_.graph.nodes().size(); ++n)
      for (const Value v : plan_.graph.nodes()[n].in) {
        if (plan_.graph[v].role != Role::parameter || schedule_.band_of[n] < 0) continue;
        const int b = holder(plan_.place(v));
        if (b < 0) continue;
        int& first = plan_.buckets[static_cast<size_t>(b)].first_use;
        first = std::min(first, schedule_.band_of[n]);
      }
  }

  /// An update reads its gradients where its bucket's sum will lie; -1: it reads none.
  int read_sums(Step& update) const {
    int bucket = -1;
    const Node& node = plan_.graph.nodes()[static_cast<size_t>(update.node)];
    for (size_t i = 0; i < update.in.size(); ++i) {
      const auto at = bucket_of_gradient_.find(node.in[i].id);
      if (at == bucket_of_gradient_.end()) continue;
      CHECK(bucket < 0 || bucket == at->second, "{} reads gradients of two buckets", update.name);
      bucket = at->second;
      const auto b = static_cast<size_t>(bucket);
      update.in[i].base = plan_.base_of_sum(b);
      update.in[i].offset -= plan_.buckets[b].offset;
    }
    return bucket;
  }

  void add_update(size_t u) {
    Step& update = plan_.updates[u];
    const Node& node = plan_.graph.nodes()[static_cast<size_t>(update.node)];
    const int bucket = read_sums(update);
    int depth = 0;
    for (const Value v : node.in) {
      if (const auto at = made_in_.find(v.id); at != made_in_.end())
        depth = std::max(depth, depth_[static_cast<size_t>(at->second)] + 1);
      // Within a stage updates keep their order, and a thread's share of the elements.
      if (const auto at = changed_in_.find(v.id); at != changed_in_.end())
        depth = std::max(depth, depth_[static_cast<size_t>(at->second)]);
    }
    const int s = stage_at({bucket, depth});
    stage(s).updates.push_back(static_cast<int>(u));
    if (bucket >= 0) wait_for(s, plan_.buckets[static_cast<size_t>(bucket)].exchange);
    for (const Value v : node.in) {
      if (const auto at = made_in_.find(v.id); at != made_in_.end()) follow(s, at->second);
      if (const auto at = exchange_of_.find(v.id); at != exchange_of_.end())
        wait_for(s, at->second);
    }
    for (const Value v : node.out) made_in_[v.id] = s;
    for (size_t i = 0; i < node.in.size(); ++i)
      if (node.op->mutates(static_cast<int>(i))) changed_in_[node.in[i].id] = s;
  }

  /// An exchange of the update: begun by the last stage that makes what it sends.
  void add_exchange(int n) {
    const Node& node = plan_.graph.nodes()[static_cast<size_t>(n)];
    const auto number = static_cast<int>(plan_.exchanges.size());
    PlanExchange& made = plan_.exchanges.emplace_back();
    made.node = n;
    made.kind = exchange_kind(plan_.graph, node);
    for (const Value v : node.in) {
      made.in.push_back(plan_.place(v));
      made.in_desc.push_back(plan_.desc(v));
    }
    made.out = made.in;
    made.out_desc = made.in_desc;
    if (made.kind == ExchangeKind::weights) {
      const int bucket = made.bucket = holder(made.in.front());
      CHECK(bucket >= 0, "{}: its parameters have no gradients", node.name);
      weights_of_[bucket] = number;
      const int last = last_of(bucket);
      for (const auto& [key, s] : numbers_)
        if (key.first == bucket) follow(last, s);
      stage(last).starts.push_back(number);
      return;
    }
    CHECK(node.in.size() == 1 && made_in_.contains(node.in[0].id), "{}: not made by an update",
          node.name);
    stage(made_in_.at(node.in[0].id)).starts.push_back(number);
    exchange_of_[node.in[0].id] = number;
  }

  void add_packs(size_t bucket) {
    const auto b = static_cast<int>(bucket);
    PlanStage packs;
    packs.after = {last_of(b)};
    packs.bucket = b;
    packs.first_use = plan_.buckets[bucket].first_use;
    for (size_t k = 0; k < plan_.packs.size(); ++k)
      if (holder(plan_.packs[k].in[0]) == b) packs.packs.push_back(static_cast<int>(k));
    if (const auto at = weights_of_.find(b); at != weights_of_.end())
      packs.waits.push_back(at->second);
    if (packs.packs.empty() && packs.waits.empty()) return;
    plan_.stages.push_back(packs);
    depth_.push_back(0);
  }

  /// The stage of a bucket and a depth; behind the bucket's earlier ones.
  int stage_at(Key key) {
    const auto [at, added] = numbers_.try_emplace(key, static_cast<int>(plan_.stages.size()));
    if (!added) return at->second;
    PlanStage& made = plan_.stages.emplace_back();
    made.bucket = key.first;
    made.first_use = key.first < 0 ? static_cast<int>(plan_.bands.size())
                                   : plan_.buckets[static_cast<size_t>(key.first)].first_use;
    depth_.push_back(key.second);
    for (const auto& [other, s] : numbers_)
      if (other.first == key.first && other.second < key.second) follow(at->second, s);
    return at->second;
  }
  int last_of(int bucket) const {
    int last = -1;
    for (const auto& [key, s] : numbers_)
      if (key.first == bucket) last = s;
    CHECK(last >= 0, "bucket {} is summed, and nothing updates its parameters", bucket);
    return last;
  }

  void follow(int s, int other) {
    std::vector<int>& after = stage(s).after;
    if (s != other && std::ranges::find(after, other) == after.end()) after.push_back(other);
  }
  /// One stage waits for an exchange; others that need it follow that one.
  void wait_for(int s, int exchange) {
    const auto [at, added] = waits_.try_emplace(exchange, s);
    if (added)
      stage(s).waits.push_back(exchange);
    else
      follow(s, at->second);
  }

  /// What must be over before a stage is as urgent as that stage.
  void hurry_what_others_need() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const PlanStage& one : plan_.stages)
        for (const int before : one.after)
          if (stage(before).first_use > one.first_use) {
            stage(before).first_use = one.first_use;
            changed = true;
          }
    }
  }

  /// By urgency, packs last, a bucket's stages together; each behind what it follows.
  void put_in_order() {
    std::vector<int> order, place(plan_.stages.size(), -1);
    const auto key = [&](int s) {
      return std::tuple(stage(s).first_use, !stage(s).packs.empty() || stage(s).updates.empty(),
                        stage(s).bucket, depth_[static_cast<size_t>(s)], s);
    };
    const auto is_free = [&](int s) {
      return place[static_cast<size_t>(s)] < 0 &&
             std::ranges::all_of(stage(s).after, [&](int before) {
               return place[static_cast<size_t>(before)] >= 0;
             });
    };
    while (order.size() < plan_.stages.size()) {
      int best = -1;
      for (int s = 0; s < static_cast<int>(plan_.stages.size()); ++s)
        if (is_free(s) && (best < 0 || key(s) < key(best))) best = s;
      CHECK(best >= 0, "stages of the update wait for each other");
      place[static_cast<size_t>(best)] = static_cast<int>(order.size());
      order.push_back(best);
    }
    std::vector<PlanStage> sorted;
    for (const int s : order) {
      PlanStage& moved = sorted.emplace_back(stage(s));
      for (int& before : moved.after) before = place[static_cast<size_t>(before)];
      std::ranges::sort(moved.after);
      if (moved.first_use < static_cast<int>(plan_.bands.size()))
        plan_.bands[static_cast<size_t>(moved.first_use)].stages.push_back(
            static_cast<int>(sorted.size()) - 1);
    }
    plan_.stages = std::move(sorted);
  }

  Plan& plan_;
  const Schedule& schedule_;
  std::map<int, int> bucket_of_gradient_;  // gradient value -> bucket
  std::map<int, int> made_in_;             // result of an update -> stage
  std::map<int, int> changed_in_;          // what an update changes in place -> its last stage
  std::map<int, int> exchange_of_;         // result of an update -> exchange that changes it
  std::map<int, int> weights_of_;          // bucket -> exchange of its weights
  std::map<int, int> waits_;               // exchange -> the stage that waits for it
  std::map<Key, int> numbers_;
  std::vector<int> depth_;  // by stage
};

}  // namespace

void make_stages(Plan& plan, const Schedule& schedule) { Stages(plan, schedule).make(); }

}  // namespace tutti
