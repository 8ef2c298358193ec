#pragma once
// Runs a graph with the reference's rules and without rounding to f32 between the nodes, so that
// finite differences with tiny steps are exact to many digits even through deep networks.

#include <map>

#include "tutti/backend/reference/rules.h"
#include "tutti/base/error.h"
#include "tutti/graph/graph.h"

namespace tutti {

class DoubleInterpreter {
 public:
  DoubleInterpreter(const graph::Graph& graph, const backend::StepInfo& step)
      : graph_(graph), step_(step) {}

  void set(graph::Value v, std::vector<double> values) { values_[v.id] = std::move(values); }
  const std::vector<double>& operator[](graph::Value v) const { return values_.at(v.id); }

  /// Runs all nodes. Running averages keep their values.
  void run() {
    for (const graph::Node& node : graph_.nodes()) {
      backend::KernelRequest request{
          .op = node.op.get(), .in = {}, .out = {}, .in_free = {}, .out_free = {}};
      std::vector<backend::PlainTensor> in, out;
      for (const graph::Value v : node.in) {
        request.in.push_back(graph_.type(v).desc);
        backend::PlainTensor& x = in.emplace_back(request.in.back());
        const std::vector<double>& values = values_.at(v.id);
        CHECK(static_cast<int64_t>(values.size()) == x.size(), "{}", graph_[v].name);
        for (int64_t i = 0; i < x.size(); ++i) x[i] = values[static_cast<size_t>(i)];
      }
      for (const graph::Value v : node.out) {
        request.out.push_back(graph_.type(v).desc);
        out.emplace_back(request.out.back());
      }
      const backend::Rule rule = rule_of(request);
      std::vector<double> sums(rule.sums);
      const backend::RuleCall call{in, out, sums, 0, step_};
      rule.run(call);
      if (rule.finish) rule.finish(call);
      for (size_t i = 0; i < out.size(); ++i) {
        std::vector<double>& values = values_[node.out[i].id];
        values.resize(static_cast<size_t>(out[i].size()));
        for (int64_t k = 0; k < out[i].size(); ++k) values[static_cast<size_t>(k)] = out[i][k];
      }
    }
  }

 private:
  static backend::Rule rule_of(const backend::KernelRequest& request) {
    if (backend::Rule rule = backend::reference_rules().find(request); rule.run) return rule;
    throw DeviceError(fmt::format("no rule for op '{}'", request.op->name()));
  }

  const graph::Graph& graph_;
  backend::StepInfo step_;
  std::map<int32_t, std::vector<double>> values_;
};

}  // namespace tutti
