#include "tests/plan/rectifiers.h"

#include <utility>

#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/elementwise.h"

namespace tutti::test {
namespace {

bool is_relu(const ActivationAttributes& a) { return a.kind == ActivationKind::relu; }

/// The op without its ReLU, and whether it had one. Null: it was nothing but a ReLU.
std::pair<OpPtr, bool> without_relu(const OpPtr& op) {
  if (const auto* norm = dynamic_cast<const BatchNormApply*>(op.get()); norm && norm->relu())
    return {std::make_shared<BatchNormApply>(false, norm->residual()), true};
  if (const auto* conv = dynamic_cast<const Conv*>(op.get());
      conv && conv->activation() && is_relu(*conv->activation()))
    return {std::make_shared<Conv>(conv->conv(), conv->bias()), true};
  if (const auto* alone = dynamic_cast<const Activation*>(op.get());
      alone && is_relu(alone->activation()))
    return {nullptr, true};
  return {op, false};
}

Value bound(Graph& graph, const ValueInfo& info) {
  switch (info.role) {
    case Role::input: return graph.input(info.name, info.type.desc, info.type.batched);
    case Role::parameter: return graph.parameter(info.name, info.type.desc.shape, info.init);
    case Role::statistic: return graph.statistic(info.name, info.type.desc.shape, info.init);
    case Role::scalar: return graph.scalar(info.name);
    case Role::result: return {};
    case Role::state:
    case Role::gradient:
    case Role::table: break;
  }
  CHECK(false, "'{}' in a forward graph", info.name);
}

/// y of the node, which has a ReLU, in the form asked for.
Value append_rectified(Rectified& made, const Node& node, const std::vector<Value>& in,
                       Rectifiers rectifiers) {
  Graph& graph = made.graph.graph;
  if (rectifiers == Rectifiers::seen) {
    const Value y = graph.append(node.name, node.op, in).front();
    // The copy is plain as outputs are, and y keeps its layout.
    made.masks.push_back(graph.append1(node.name + ".seen", std::make_shared<Scale>(1.0f), {y}));
    graph.mark_output(made.masks.back());
    return y;
  }
  const OpPtr op = without_relu(node.op).first;
  const Value x = op ? graph.append(node.name, op, in).front() : in.front();
  if (rectifiers == Rectifiers::gelu)
    return graph.append1(
        node.name + ".gelu",
        std::make_shared<Activation>(ActivationAttributes{.kind = ActivationKind::gelu}), {x});
  made.masks.push_back(graph.input(node.name + ".mask", graph.type(x).desc));
  return graph.append1(node.name + ".held", std::make_shared<Mul>(), {x, made.masks.back()});
}

}  // namespace

const char* name_of(Rectifiers rectifiers) {
  switch (rectifiers) {
    case Rectifiers::relu: return "ReLU";
    case Rectifiers::seen: return "ReLU, seen";
    case Rectifiers::held: return "ReLU, held";
    case Rectifiers::gelu: return "GELU";
  }
  return "?";
}

Rectified rectify(const Graph& old, Rectifiers rectifiers) {
  Rectified made;
  Graph& graph = made.graph.graph;
  std::vector<Value>& of = made.graph.of;
  for (const ValueInfo& info : old.values()) of.push_back(bound(graph, info));
  const auto at = [&](Value v) -> Value& { return of[static_cast<size_t>(v.id)]; };
  for (const Node& node : old.nodes()) {
    std::vector<Value> in;
    for (const Value v : node.in) in.push_back(at(v));
    if (rectifiers != Rectifiers::relu && without_relu(node.op).second) {
      at(node.out[0]) = append_rectified(made, node, in, rectifiers);
      continue;
    }
    const std::vector<Value> out = graph.append(node.name, node.op, in);
    for (size_t i = 0; i < out.size(); ++i) at(node.out[i]) = out[i];
  }
  for (const Value v : old.outputs()) graph.mark_output(at(v));
  return made;
}

}  // namespace tutti::test
