#include "tutti/models/network/dlrm.h"

#include <cmath>
#include <numeric>

#include "tutti/ops/interaction.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::models {
namespace {

/// Adds an MLP. Layer i is module 2 i of a torch.nn.Sequential, between the activations.
Value perceptron(Graph& graph, const std::string& name, Value x, const std::vector<int64_t>& sizes,
                 bool ends_in_relu) {
  const DType dtype = graph.type(x).desc.dtype;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string layer = fmt::format("{}.{}", name, 2 * i);
    x = ops::dense(graph, layer, x,
                   {.outputs = sizes[i],
                    .dtype = dtype,
                    .init = Init::Kind::glorot_normal,
                    .bias_init = Init::Kind::normal,
                    .bias_value = std::sqrt(1 / static_cast<double>(sizes[i]))});
    if (ends_in_relu || i + 1 < sizes.size()) x = ops::relu(graph, layer + ".relu", x);
  }
  return x;
}

std::vector<int64_t> then(std::vector<int64_t> hidden, int64_t last) {
  hidden.push_back(last);
  return hidden;
}

/// Returns each table's value for a sample, [N, width].
std::vector<Value> look_up(Graph& graph, Value categories, Value weights, const DlrmSpec& spec) {
  std::vector<Value> found, own_weights;
  int64_t column = 0;
  for (size_t t = 0; weights.valid() && t < spec.rows.size(); ++t) {
    const int64_t count = spec.bags.empty() ? 1 : spec.bags[t];
    own_weights.push_back(
        ops::slice(graph, fmt::format("emb_l.{}.weights", t), weights, {{column, column + count}}));
    column += count;
  }
  ops::Bag bag{.mean = spec.pooling == Pooling::mean, .weighted = weights.valid()};
  for (size_t t = 0; t < spec.rows.size(); ++t) {
    const std::string name = fmt::format("emb_l.{}", t);
    bag.count = spec.bags.empty() ? 1 : spec.bags[t];
    const Value table = graph.table(
        name + ".weight", {spec.rows[t], spec.width},
        {.kind = Init::Kind::uniform, .value = 1 / std::sqrt(static_cast<double>(spec.rows[t]))});
    std::vector<Value> in{table, categories};
    if (weights.valid()) in.push_back(own_weights[t]);
    found.push_back(graph.append1(name, std::make_shared<ops::EmbeddingBag>(bag), in));
    bag.first += bag.count;
  }
  return found;
}

}  // namespace

Value dlrm_logit(Graph& graph, Value numbers, Value categories, Value weights,
                 const DlrmSpec& spec) {
  const DType dtype = graph.type(numbers).desc.dtype;
  const int64_t batch = graph.shape(numbers)[0];
  const auto tables = std::ssize(spec.rows);
  const int64_t columns =
      spec.bags.empty() ? tables : std::accumulate(spec.bags.begin(), spec.bags.end(), int64_t{0});
  require(graph.shape(categories) == Shape{batch, columns} &&
              (spec.bags.empty() || spec.bags.size() == spec.rows.size()),
          "dlrm: {} tables of {} columns for categories {}", tables, columns,
          graph.shape(categories));
  // Lookups come first: ranks exchange them while the bottom MLP is computed.
  const std::vector<Value> found = look_up(graph, categories, weights, spec);
  std::vector<Value> features = {
      perceptron(graph, "bot_l", numbers, then(spec.bottom, spec.width), true)};
  for (size_t t = 0; t < found.size(); ++t)
    features.push_back(ops::convert(graph, fmt::format("emb_l.{}.convert", t), found[t], dtype));
  Value met = ops::concat(graph, "features.concat", features);
  if (spec.interaction == FeatureInteraction::dot) {
    const Value pairs = graph.append1(
        "interaction", std::make_shared<ops::Interaction>(ops::InteractionAttributes{spec.width}),
        {met});
    met = ops::concat(graph, "top_l.input", {features.front(), pairs});
  }
  return perceptron(graph, "top_l", met, then(spec.top, 1), false);
}

void build_dlrm(ModelBuilder& model) {
  const ModelSpec& given = model.spec();
  DlrmSpec spec{.pooling = given.pooling, .interaction = given.interaction};
  if (given.width > 0) spec.width = given.width;
  if (!given.hidden.empty()) spec.bottom = spec.top = given.hidden;
  const std::vector<ModelField>& inputs = given.inputs;
  const std::string field = inputs.size() > 1 ? inputs[1].name : "categories";
  const ModelField known = input_named(given, field);
  require(!known.rows.empty(),
          "model 'dlrm' looks its second field up in tables, and '{}' holds no numbers "
          "of their rows: data.dataset = \"clicks\" has such a field, categories",
          field);
  spec.bags = known.bags;
  size_t column = 0;
  for (size_t t = 0; t < (spec.bags.empty() ? known.rows.size() : spec.bags.size()); ++t) {
    spec.rows.push_back(known.rows[column]);
    column += spec.bags.empty() ? 1 : static_cast<size_t>(spec.bags[t]);
  }
  const Value numbers = model.input();
  const Value categories = model.rows(field);
  const Value weights = inputs.size() > 2 ? model.weights(inputs[2].name) : Value{};
  model.predict(dlrm_logit(model.graph(), numbers, categories, weights, spec));
}

}  // namespace tutti::models
