#include "tutti/models/dlrm.h"

#include <cmath>

#include "tutti/ops/embedding.h"
#include "tutti/ops/interaction.h"

namespace tutti {
namespace {

/// Layer i of an MLP is module 2 i of a torch.nn.Sequential, between the activations.
Value perceptron(Graph& graph, const std::string& name, Value x, const std::vector<int64_t>& sizes,
                 bool ends_in_relu) {
  const DType dtype = graph.type(x).desc.dtype;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string layer = fmt::format("{}.{}", name, 2 * i);
    x = dense(graph, layer, x,
              {.outputs = sizes[i],
               .dtype = dtype,
               .init = Init::Kind::glorot_normal,
               .bias_init = Init::Kind::normal,
               .bias_value = std::sqrt(1 / static_cast<double>(sizes[i]))});
    if (ends_in_relu || i + 1 < sizes.size()) x = relu(graph, layer + ".relu", x);
  }
  return x;
}

std::vector<int64_t> then(std::vector<int64_t> hidden, int64_t last) {
  hidden.push_back(last);
  return hidden;
}

}  // namespace

Value dlrm_logit(Graph& graph, Value numbers, Value categories, const DlrmSpec& spec) {
  const DType dtype = graph.type(numbers).desc.dtype;
  const int64_t batch = graph.shape(numbers)[0];
  const auto tables = std::ssize(spec.rows);
  if (graph.shape(categories) != Shape{batch, tables})
    throw ConfigError(fmt::format("dlrm: {} tables for categories {}", tables,
                                  graph.shape(categories).to_string()));
  std::vector<Value> features = {
      perceptron(graph, "bot_l", numbers, then(spec.bottom, spec.width), true)};
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t rows = spec.rows[static_cast<size_t>(t)];
    const std::string name = fmt::format("emb_l.{}", t);
    const Value table = graph.parameter(
        name + ".weight", {rows, spec.width},
        {.kind = Init::Kind::uniform, .value = 1 / std::sqrt(static_cast<double>(rows))});
    const Value row =
        graph.append1(name, std::make_shared<EmbeddingBag>(BagColumns{t, 1}), {table, categories});
    features.push_back(convert(graph, name + ".convert", row, dtype));
  }
  const Value all = reshape(graph, "features", concat(graph, "features.concat", features),
                            Shape{tables + 1, spec.width});
  const Value pairs = graph.append1("interaction", std::make_shared<Interaction>(), {all});
  return perceptron(graph, "top_l", concat(graph, "top_l.input", {features.front(), pairs}),
                    then(spec.top, 1), false);
}

void build_dlrm(ModelBuilder& model) {
  DlrmSpec spec;
  if (model.spec().width > 0) spec.width = model.spec().width;
  if (!model.spec().hidden.empty()) spec.bottom = spec.top = model.spec().hidden;
  const std::vector<ModelField>& inputs = model.spec().inputs;
  const std::string field = inputs.size() > 1 ? inputs[1].name : "categories";
  spec.rows = input_named(model.spec(), field).rows;
  if (spec.rows.empty())
    throw ConfigError(
        fmt::format("model 'dlrm' looks its second field up in tables, and '{}' holds no numbers "
                    "of their rows: data.dataset = \"clicks\" has such a field, categories",
                    field));
  const Value numbers = model.input();
  model.predict(dlrm_logit(model.graph(), numbers, model.rows(field), spec));
}

}  // namespace tutti
