#include "tutti/cli/verbs/network_flags.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/number.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/models/registry.h"
#include "tutti/models/summary.h"

namespace tutti::cli {
namespace {

/// Parses "3x32x32".
std::vector<int64_t> parse_extents(const std::string& text) {
  std::vector<int64_t> extents;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t extent = 0;
    if (!read_number(std::string_view(text).substr(at, end - at), extent) || extent <= 0 ||
        extents.size() == Shape::kMaxRank - 1)
      throw ConfigError(fmt::format(
          "--input '{}': write the extents of one sample as CxHxW, for example 3x32x32", text));
    extents.push_back(extent);
    at = end + 1;
  }
  return extents;
}

}  // namespace

models::ModelSpec model_spec(const NetworkChoice& choice) {
  models::ModelSpec spec;
  spec.name = choice.model;
  spec.batch = choice.batch;
  spec.classes = choice.classes;
  spec.width = choice.width;
  spec.depth = choice.depth;
  spec.heads = choice.heads;
  if (!choice.input.empty()) spec.input = Shape(std::span<const int64_t>(choice.input));
  if (choice.table_rows > 0) {
    const models::ModelInfo& model = models::find_model(choice.model);
    if (model.table_rows.empty())
      throw ConfigError(fmt::format("--table-rows: the model '{}' has no tables", choice.model));
    const auto tables = std::ssize(model.table_rows);
    spec.inputs = {
        {.name = spec.input_field, .sample = choice.input.empty() ? model.input : spec.input},
        {.name = model.more_inputs.front(),
         .sample = {tables},
         .rows = std::vector<int64_t>(static_cast<size_t>(tables), choice.table_rows)}};
  }
  for (const models::TaskKind task : {models::TaskKind::classify, models::TaskKind::segment,
                                      models::TaskKind::regress, models::TaskKind::language})
    if (choice.task == name_of(task)) spec.task = task;
  using enum ops::PointwiseLossKind;
  for (const ops::PointwiseLossKind loss : {mse, mae, huber, bce_with_logits})
    if (choice.loss == name_of(loss)) spec.pointwise_loss.kind = loss;
  spec.activations = choice.precision == "bf16" ? DType::bf16 : DType::f32;
  return spec;
}

int64_t usual_batch(models::ModelSpec spec) {
  constexpr int64_t kMost = 128, kBytes = int64_t{2} << 30;
  spec.batch = 1;
  int64_t elements = 0;
  for (const models::LayerSummary& layer : models::summarise(spec).layers)
    elements += layer.output.elements();
  const int64_t bytes = elements * static_cast<int64_t>(size_of(spec.activations));
  int64_t batch = kMost;
  while (batch > 1 && batch * bytes > kBytes) batch /= 2;
  return batch;
}

std::vector<Flag> network_flags(NetworkChoice& choice) {
  return {
      flag("--batch", "N",
           "Samples of a step on each rank. 0: 128, or fewer where samples are large",
           &choice.batch, {0}),
      choice_flag("--precision", "Type of activations and of arithmetic", &choice.precision,
                  {"fp32", "bf16", "tf32"}),
      flag("--classes", "N", "Outputs. 0: the model's own", &choice.classes, {0}),
      flag("--width", "N", "Channels of the first stage. 0: the model's own", &choice.width, {0}),
      flag("--depth", "N", "Layers of a network that is a stack of them. 0: the model's own",
           &choice.depth, {0}),
      flag("--heads", "N", "Heads of attention. 0: the model's own", &choice.heads, {0}),
      flag("--table-rows", "N", "Rows of each table of a network that has some. 0: the model's own",
           &choice.table_rows, {0}),
      flag("--input", "CxHxW", "One sample's extents; otherwise the model's own",
           [&choice](const std::string& text) { choice.input = parse_extents(text); }),
      choice_flag("--task", "What is learned. auto: the model's own", &choice.task,
                  {"auto", "classify", "segment", "regress"}),
      choice_flag("--loss", "Of a network that predicts numbers", &choice.loss,
                  {"mse", "mae", "huber", "bce_with_logits"}),
      choice_flag("--layout",
                  "Layout of activations. auto: the fastest measured; without measuring, the "
                  "backend's first",
                  &choice.layout, {"auto", "b16c", "last", "plain"})};
}

}  // namespace tutti::cli
