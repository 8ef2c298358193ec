#include "tutti/graph/graph.h"

#include <fmt/format.h>

namespace tutti::graph {

std::vector<Value> Op::grad(const GradArgs& args) const {
  throw ConfigError(fmt::format("{}: op '{}' has no gradient", args.node.name, name()));
}

Value Graph::add_value(ValueInfo info) {
  try {
    (void)info.type.desc.bytes();  // refuses sizes that overflow, before any rule multiplies them
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("'{}': {}", info.name, error.what()));
  }
  values_.push_back(std::move(info));
  return Value{static_cast<int32_t>(values_.size() - 1)};
}

Value Graph::input(std::string name, TensorDesc desc, bool batched) {
  return add_value({.name = std::move(name), .type = {desc, batched}, .role = Role::input});
}

Value Graph::parameter(std::string name, const Shape& shape, Init init) {
  return add_value({.name = std::move(name),
                    .type = {{DType::f32, shape, {}}, false},
                    .role = Role::parameter,
                    .init = init});
}

Value Graph::table(std::string name, const Shape& shape, Init init, TableRows rows) {
  if (rows.all == 0) rows = {0, shape[0]};
  CHECK(shape.rank() == 2 && rows.first >= 0 && rows.first + shape[0] <= rows.all, "{}: {} of {}",
        name, shape, rows.all);
  return add_value({.name = std::move(name),
                    .type = {{DType::f32, shape, {}}, false},
                    .role = Role::table,
                    .init = init,
                    .rows = rows});
}

Value Graph::table_state(std::string name, Value table, int64_t width) {
  return add_value({.name = std::move(name),
                    .type = {{DType::f32, Shape{shape(table)[0], width}, {}}, false},
                    .role = Role::table,
                    .of = table,
                    .rows = (*this)[table].rows});
}

Value Graph::statistic(std::string name, const Shape& shape, Init init) {
  return add_value({.name = std::move(name),
                    .type = {{DType::f32, shape, {}}, false},
                    .role = Role::statistic,
                    .init = init});
}

Value Graph::state(std::string name, Value parameter) {
  return add_value(
      {.name = std::move(name), .type = type(parameter), .role = Role::state, .of = parameter});
}

Value Graph::scalar(std::string name) {
  return add_value(
      {.name = std::move(name), .type = {{DType::f32, {}, {}}, false}, .role = Role::scalar});
}

std::vector<Value> Graph::append(std::string name, OpPtr op, Inputs in) {
  for (const Value v : in)
    CHECK(v.valid() && v.id < static_cast<int32_t>(values_.size()),
          "{}: an input of op '{}' is not a value of this graph", name, op->name());
  std::vector<ValueType> results;
  try {
    results = op->infer(types(in));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("layer '{}': {}", name, error.what()));
  }
  Node node{std::move(name), std::move(op), {in.begin(), in.end()}, {}};
  const int producer = static_cast<int>(nodes_.size());
  for (size_t i = 0; i < results.size(); ++i)
    node.out.push_back(add_value({.name = i == 0 ? node.name : fmt::format("{}:{}", node.name, i),
                                  .type = results[i],
                                  .producer = producer}));
  nodes_.push_back(std::move(node));
  return nodes_.back().out;
}

Value Graph::append1(std::string name, OpPtr op, Inputs in) {
  return append(std::move(name), std::move(op), in).front();
}

std::vector<Value> GradArgs::append(std::string_view suffix, OpPtr op, Inputs in) const {
  return graph.append(fmt::format("{}{}", node.name, suffix), std::move(op), in);
}

Value GradArgs::append1(std::string_view suffix, OpPtr op, Inputs in) const {
  return append(suffix, std::move(op), in).front();
}

void Graph::mark_gradient(Value result, Value parameter) {
  ValueInfo& info = values_[static_cast<size_t>(result.id)];
  CHECK(info.role == Role::result && info.type.desc.shape == shape(parameter) &&
            info.type.desc.dtype == DType::f32,
        "gradient {} ({}) of {} ({})", info.name, info.type.desc, (*this)[parameter].name,
        type(parameter).desc);
  info.role = Role::gradient;
  info.of = parameter;
}

Value Graph::find(std::string_view name) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].name == name) return Value{static_cast<int32_t>(i)};
  return {};
}

std::vector<ValueType> Graph::types(std::span<const Value> values) const {
  std::vector<ValueType> types;
  for (const Value v : values) types.push_back(type(v));
  return types;
}

const Shape& Graph::shape(std::string_view name) const {
  const Value v = find(name);
  CHECK(v.valid(), "there is no value '{}'", name);
  return shape(v);
}

std::vector<Value> Graph::with_role(Role role) const {
  std::vector<Value> found;
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].role == role) found.push_back(Value{static_cast<int32_t>(i)});
  return found;
}

int64_t Graph::parameter_count() const {
  int64_t count = 0;
  for (const Value v : with_role(Role::parameter)) count += shape(v).elements();
  for (const Value v : with_role(Role::table))
    if (!(*this)[v].of.valid()) count += (*this)[v].rows.all * shape(v)[1];
  return count;
}

double Graph::flop() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += flop(node);
  return sum;
}

double Graph::flop(const Node& node) const {
  return node.op->flop(types(node.in), types(node.out));
}

std::string Graph::to_string() const {
  std::string text;
  for (const Node& node : nodes_) {
    std::string outs, ins;
    for (const Value v : node.out)
      outs += fmt::format("{}%{} {}", outs.empty() ? "" : ", ", v.id, type(v).desc);
    for (const Value v : node.in)
      ins += fmt::format("{}{}", ins.empty() ? "" : ", ",
                         (*this)[v].producer < 0 ? (*this)[v].name : fmt::format("%{}", v.id));
    const std::string attributes = node.op->attributes();
    text += fmt::format("{} = {}({}){}  # {}\n", outs, node.op->name(), ins,
                        attributes.empty() ? "" : " {" + attributes + "}", node.name);
  }
  return text;
}

}  // namespace tutti::graph
