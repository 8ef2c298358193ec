#pragma once
// Runs a graph node by node, without a plan, for gradient checks and small experiments.

#include <map>

#include "tutti/backend/conformance/op_run.h"
#include "tutti/base/error.h"
#include "tutti/graph/graph.h"

namespace tutti {

/// Values are doubles in row-major order, rounded to each operand's type on the way through a
/// kernel.
class Interpreter {
 public:
  Interpreter(const graph::Graph& graph, const backend::Backend& backend,
              backend::OpRunOptions options = {})
      : graph_(graph), backend_(backend), options_(std::move(options)) {}

  void set(graph::Value v, backend::Values values) {
    CHECK(static_cast<int64_t>(values.size()) == graph_.shape(v).elements(), "{}", graph_[v].name);
    values_[v.id] = std::move(values);
  }
  const backend::Values& operator[](graph::Value v) const { return values_.at(v.id); }

  /// Runs all nodes. Exchanges do nothing, because there is one replica.
  void run() {
    for (const graph::Node& node : graph_.nodes()) {
      if (graph_.walk(node) == graph::Walk::exchange) continue;
      backend::OpRun run({node.op, graph_.types(node.in), {}, {}}, backend_, options_);
      for (size_t i = 0; i < node.in.size(); ++i) run.set_in(i, values_.at(node.in[i].id));
      run.spoil_outputs();
      run.run();
      for (size_t i = 0; i < node.out.size(); ++i) values_[node.out[i].id] = run.out(i);
      for (size_t i = 0; i < node.in.size(); ++i)
        if (node.op->mutates(static_cast<int>(i))) values_[node.in[i].id] = run.in(i);
    }
  }

 private:
  const graph::Graph& graph_;
  const backend::Backend& backend_;
  backend::OpRunOptions options_;
  std::map<int32_t, backend::Values> values_;
};

}  // namespace tutti
