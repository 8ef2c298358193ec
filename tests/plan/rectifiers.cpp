#include "tests/plan/rectifiers.h"

#include <optional>

#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/pool.h"

namespace tutti::test {
namespace {

/// Finds the factor by which a ReLU multiplies negative numbers; none: the activation is no ReLU.
std::optional<float> slope_of(const ops::ActivationAttributes& a) {
  if (a.kind == ops::ActivationKind::relu) return 0.0f;
  if (a.kind == ops::ActivationKind::leaky_relu) return a.slope;
  return {};
}

/// An op that ends in a ReLU: the op without it, null if it is only the ReLU, and the ReLU's slope.
struct Rectifier {
  graph::OpPtr before;
  std::optional<float> slope{};  ///< none: the op ends in no ReLU
};

Rectifier rectifier_of(const graph::OpPtr& op) {
  if (const auto* norm = dynamic_cast<const ops::BatchNormApply*>(op.get()); norm && norm->relu())
    return {std::make_shared<ops::BatchNormApply>(false, norm->residual()), 0.0f};
  if (const auto* conv = dynamic_cast<const ops::Conv*>(op.get()); conv && conv->activation())
    if (const std::optional<float> slope = slope_of(*conv->activation()))
      return {std::make_shared<ops::Conv>(conv->conv(), conv->bias()), slope};
  if (const auto* alone = dynamic_cast<const ops::Activation*>(op.get()))
    if (const std::optional<float> slope = slope_of(alone->activation())) return {nullptr, slope};
  return {op};
}

bool is_maximum(const graph::OpPtr& op) {
  const auto* pool = dynamic_cast<const ops::Pool*>(op.get());
  return pool && pool->pool().kind == ops::PoolKind::max;
}

/// Returns the mean over the same windows.
graph::OpPtr average_of(const graph::OpPtr& maximum) {
  ops::PoolAttributes attributes = dynamic_cast<const ops::Pool&>(*maximum).pool();
  attributes.kind = ops::PoolKind::average;
  return std::make_shared<ops::Pool>(attributes);
}

graph::Value bound(graph::Graph& graph, const graph::ValueInfo& info) {
  switch (info.role) {
    case graph::Role::input: return graph.input(info.name, info.type.desc, info.type.batched);
    case graph::Role::parameter: return graph.parameter(info.name, info.type.desc.shape, info.init);
    case graph::Role::statistic: return graph.statistic(info.name, info.type.desc.shape, info.init);
    case graph::Role::scalar: return graph.scalar(info.name);
    case graph::Role::result: return {};
    case graph::Role::state:
    case graph::Role::gradient:
    case graph::Role::table: break;
  }
  CHECK(false, "'{}' in a forward graph", info.name);
}

/// Appends y of the node, which has a ReLU, in the requested form.
graph::Value append_rectified(Rectified& made, const graph::Node& node,
                              const std::vector<graph::Value>& in, Rectifiers rectifiers) {
  graph::Graph& graph = made.graph.graph;
  if (rectifiers == Rectifiers::seen) {
    const graph::Value y = graph.append1(node.name, node.op, in);
    // The copy is plain like all outputs, and y keeps its layout.
    made.masks.push_back(
        graph.append1(node.name + ".seen", std::make_shared<ops::Scale>(1.0f), {y}));
    graph.mark_output(made.masks.back());
    return y;
  }
  const Rectifier had = rectifier_of(node.op);
  const graph::Value x = had.before ? graph.append1(node.name, had.before, in) : in.front();
  if (rectifiers == Rectifiers::gelu)
    return graph.append1(node.name + ".gelu",
                         std::make_shared<ops::Activation>(
                             ops::ActivationAttributes{.kind = ops::ActivationKind::gelu}),
                         {x});
  made.masks.push_back(graph.input(node.name + ".mask", graph.type(x).desc));
  const auto scaled = [&](const std::string& name, graph::Value v, float by) {
    return graph.append1(node.name + name, std::make_shared<ops::Scale>(by), {v});
  };
  const graph::Value held =
      graph.append1(node.name + ".held", std::make_shared<ops::Mul>(), {x, made.masks.back()});
  if (*had.slope == 0) return held;
  return graph.append1(node.name + ".leaky", std::make_shared<ops::Add>(),
                       {scaled(".above", held, 1 - *had.slope), scaled(".below", x, *had.slope)});
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

Rectified rectify(const graph::Graph& old, Rectifiers rectifiers) {
  Rectified made;
  graph::Graph& graph = made.graph.graph;
  std::vector<graph::Value>& of = made.graph.of;
  for (const graph::ValueInfo& info : old.values()) of.push_back(bound(graph, info));
  const auto at = [&](graph::Value v) -> graph::Value& { return of[static_cast<size_t>(v.id)]; };
  for (const graph::Node& node : old.nodes()) {
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in) in.push_back(at(v));
    if (rectifiers != Rectifiers::relu && rectifier_of(node.op).slope) {
      at(node.out[0]) = append_rectified(made, node, in, rectifiers);
      continue;
    }
    if (rectifiers != Rectifiers::relu && is_maximum(node.op)) {
      at(node.out[0]) = graph.append1(node.name, average_of(node.op), in);
      continue;  // no node reads the winners in a forward graph
    }
    const std::vector<graph::Value> out = graph.append(node.name, node.op, in);
    for (size_t i = 0; i < out.size(); ++i) at(node.out[i]) = out[i];
  }
  for (const graph::Value v : old.outputs()) graph.mark_output(at(v));
  return made;
}

}  // namespace tutti::test
