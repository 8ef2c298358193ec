#pragma once
// Makes a new graph from an old one for the rewrites of fuse.h. Private to ops.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/ops/rank_sums.h"

namespace tutti::ops {

/// The node to append in place of another, in terms of the old graph's values.
struct Replacement {
  std::string name;
  OpPtr op;
  std::vector<Value> in;
  std::vector<Value> also = {};  ///< old values that the results after the node's own replace
};

/// Copies a graph node by node, leaving out some nodes and replacing others.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old)
      : old_(old), drop_(old.nodes().size()), replace_(old.nodes().size()),
        repeat_from_(old.nodes().size()) {
    readers_.resize(old.values().size());
    for (const Node& node : old.nodes())
      for (const Value v : node.in) ++readers_[static_cast<size_t>(v.id)];
    for (const Value v : old.outputs()) ++readers_[static_cast<size_t>(v.id)];
  }

  /// Returns the node that makes v, if v is read in one place only and the node has an op of type
  /// T; else null.
  template <class T>
  const Node* only_read_here(Value v) const {
    const graph::ValueInfo& info = old_[v];
    if (info.producer < 0 || readers_[static_cast<size_t>(v.id)] != 1 ||
        info.role != Role::result || drop_[static_cast<size_t>(info.producer)])
      return nullptr;
    const Node& node = old_.nodes()[static_cast<size_t>(info.producer)];
    return dynamic_cast<const T*>(node.op.get()) ? &node : nullptr;
  }

  /// Returns how often v is read; being an output counts once.
  int readers(Value v) const { return readers_[static_cast<size_t>(v.id)]; }

  void drop(const Node& node) { drop_[index_of(node)] = true; }
  /// Drops the node; its inputs are read in place of its results.
  void skip(const Node& node, const RuleOnly& rule) {
    drop(node);
    for (size_t i = 0; i < node.out.size(); ++i)
      same_as_[node.out[i].id] = node.in[static_cast<size_t>(rule.same_as(static_cast<int>(i)))];
  }
  /// Nodes from index `from` on read a second copy of the node's result, made just before the
  /// first of them.
  void repeat(const Node& node, size_t from) { repeat_from_[index_of(node)] = from; }
  void replace(const Node& node, Replacement replacement) {
    replace_[index_of(node)] = std::move(replacement);
  }

  Rewritten build() {
    result_.of.resize(old_.values().size());
    for (size_t n = 0; n < old_.nodes().size(); ++n) {
      const Node& node = old_.nodes()[n];
      copy_bound(last_bound_before(node));
      for (const Value v : node.out)
        if (const auto same = same_as_.find(v.id); same != same_as_.end())
          of(v) = read(same->second, n);
      if (drop_[n]) continue;
      const Replacement& other = replace_[n];
      std::vector<Value> in;
      for (const Value v : other.op ? other.in : node.in) in.push_back(read(v, n));
      const std::vector<Value> out = result_.graph.append(other.op ? other.name : node.name,
                                                          other.op ? other.op : node.op, in);
      CHECK(other.op || out.size() == node.out.size(), "rewriting '{}'", node.name);
      for (size_t i = 0; i < std::min(out.size(), node.out.size()); ++i) of(node.out[i]) = out[i];
      for (size_t i = 0; i < other.also.size(); ++i) of(other.also[i]) = out[node.out.size() + i];
    }
    copy_bound(static_cast<int32_t>(old_.values().size()));
    for (const Value v : old_.with_role(Role::gradient))
      result_.graph.mark_gradient(of(v), of(old_[v].of));
    for (const Value v : old_.outputs()) result_.graph.mark_output(of(v));
    return std::move(result_);
  }

 private:
  /// Returns the value that node n reads for the old value v.
  Value read(Value v, size_t n) {
    const int producer = old_[v].producer;
    if (producer < 0 || repeat_from_[static_cast<size_t>(producer)] == 0 ||
        n < repeat_from_[static_cast<size_t>(producer)])
      return of(v);
    if (!again_.contains(v.id)) {
      const Node& node = old_.nodes()[static_cast<size_t>(producer)];
      std::vector<Value> in;
      for (const Value x : node.in) in.push_back(read(x, n));
      again_[v.id] = result_.graph.append1(node.name + " again", node.op, in);
    }
    return again_.at(v.id);
  }

  size_t index_of(const Node& node) const {
    return static_cast<size_t>(&node - old_.nodes().data());
  }
  Value& of(Value v) { return result_.of[static_cast<size_t>(v.id)]; }

  /// The end of the values to copy before `node`. Values that the caller binds keep their place
  /// among the results, so that a listing of parameters keeps its order.
  static int32_t last_bound_before(const Node& node) {
    int32_t end = node.out.empty() ? 0 : node.out.front().id;
    for (const Value v : node.in) end = std::max(end, v.id + 1);
    return end;
  }

  void copy_bound(int32_t end) {
    Graph& graph = result_.graph;
    for (; next_bound_ < end; ++next_bound_) {
      const Value v{next_bound_};
      const graph::ValueInfo& info = old_[v];
      switch (info.role) {
        case Role::input: of(v) = graph.input(info.name, info.type.desc, info.type.batched); break;
        case Role::parameter:
          of(v) = graph.parameter(info.name, info.type.desc.shape, info.init);
          break;
        case Role::table:
          of(v) = graph.table(info.name, info.type.desc.shape, info.init, info.rows);
          break;
        case Role::statistic:
          of(v) = graph.statistic(info.name, info.type.desc.shape, info.init);
          break;
        case Role::state: of(v) = graph.state(info.name, of(info.of)); break;
        case Role::scalar: of(v) = graph.scalar(info.name); break;
        case Role::gradient:
        case Role::result: break;
      }
    }
  }

  const Graph& old_;
  std::vector<int> readers_;
  std::vector<bool> drop_;
  std::vector<Replacement> replace_;
  std::vector<size_t> repeat_from_;           // 0 = never
  std::map<int32_t, Value> again_, same_as_;  // by old value id
  Rewritten result_;
  int32_t next_bound_ = 0;
};

}  // namespace tutti::ops
