#include "tutti/models/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "tutti/base/spelling.h"
#include "tutti/models/block/feed_forward.h"
#include "tutti/models/block/layers.h"
#include "tutti/models/lora.h"
#include "tutti/models/network/cosmoflow.h"
#include "tutti/models/network/cosmoflow_small.h"
#include "tutti/models/network/deepcam.h"
#include "tutti/models/network/dlrm.h"
#include "tutti/models/network/fc_densenet.h"
#include "tutti/models/network/ffn.h"
#include "tutti/models/network/protein_vae.h"
#include "tutti/models/network/resnet.h"
#include "tutti/models/network/vgg.h"
#include "tutti/models/sequence_models.h"

namespace tutti::models {
namespace {

auto of_depth(Value (*logits)(Graph&, Value, const ModelSpec&, int), int depth) {
  return
      [=](Graph& graph, Value x, const ModelSpec& spec) { return logits(graph, x, spec, depth); };
}

ModelInfo cifar_resnet(int depth) {
  return {.name = fmt::format("resnet{}", depth),
          .description = fmt::format("residual network of {} layers for 32x32 images, three stages "
                                     "of 16, 32, 64 channels (He et al. 2015, section 4.2)",
                                     depth),
          .input = {3, 32, 32},
          .classes = 10,
          .takes_shortcut = true,
          .takes_width = true,
          .prediction = of_depth(cifar_resnet_logits, depth)};
}

ModelInfo imagenet_resnet(int depth, const char* blocks) {
  return {
      .name = fmt::format("resnet{}", depth),
      .description = fmt::format(
          "residual network of {} layers for ImageNet, four stages of {} (He et al. 2015, table 1)",
          depth, blocks),
      .input = {3, 224, 224},
      .classes = 1000,
      .takes_shortcut = true,
      .takes_width = true,
      .prediction = of_depth(imagenet_resnet_logits, depth)};
}

ModelInfo vgg_bn(int depth) {
  return {.name = fmt::format("vgg{}-bn", depth),
          .description = fmt::format("VGG of {} layers with batch norm, for images of 32x32 and "
                                     "more (Simonyan and Zisserman 2014, table 1)",
                                     depth),
          .input = {3, 224, 224},
          .classes = 1000,
          .takes_width = true,
          .takes_hidden = true,
          .takes_dropout = true,
          .prediction = of_depth(vgg_bn_logits, depth)};
}

ModelInfo tiramisu(int depth) {
  return {.name = fmt::format("fc-densenet{}", depth),
          .description = fmt::format("fully convolutional DenseNet of {} layers: a class or a "
                                     "number at each position (Jegou et al. 2017)",
                                     depth),
          .task = TaskKind::segment,
          .input = {3, 224, 224},
          .classes = 11,
          .takes_width = true,
          .takes_dropout = true,
          .prediction = [depth](Graph& graph, Value x, const ModelSpec& spec) {
            FcDenseNetSpec own = fc_densenet(depth);
            own.outputs = spec.classes;
            own.mode = spec.mode;
            if (spec.width > 0) own.first = spec.width;
            if (spec.dropout) own.dropout = *spec.dropout;
            return fc_densenet_prediction(graph, x, own);
          }};
}

Value cosmoflow(Graph& graph, Value x, const ModelSpec& spec) {
  CosmoFlowSpec own{.outputs = spec.classes, .mode = spec.mode};
  if (spec.kernel > 0) own.kernel = spec.kernel;
  if (spec.width > 0) own.channels = spec.width;
  if (!spec.hidden.empty()) own.hidden = spec.hidden;
  if (spec.dropout) own.dropout = *spec.dropout;
  return cosmoflow_prediction(graph, x, own);
}

Value cosmoflow_small(Graph& graph, Value x, const ModelSpec& spec) {
  CosmoFlowSmallSpec own{.outputs = spec.classes, .mode = spec.mode};
  if (spec.width > 0) own.channels = spec.width;
  if (!spec.hidden.empty()) own.hidden = spec.hidden;
  return cosmoflow_small_prediction(graph, x, own);
}

/// Predicts numbers between 0 and 1; `own_loss` as in Objective.
template <bool own_loss>
std::vector<Objective> probabilities(const ModelSpec&) {
  return {Objective{.task = TaskKind::regress,
                    .loss = ops::PointwiseLossKind::bce_with_logits,
                    .own_loss = own_loss}};
}

std::vector<ModelInfo> models_of_fields() {
  return {
      {.name = "mlp",
       .description = "fully connected layers with ReLU, hidden layers of 256 and 128",
       .input = {1, 28, 28},
       .takes_hidden = true,
       .prediction = mlp_logits},
      {.name = "lenet",
       .description = "LeNet-5 with ReLU and maximum pooling (LeCun et al. 1998): 2 "
                      "convolutions, 3 dense layers",
       .input = {1, 28, 28},
       .prediction = lenet_logits},
      cifar_resnet(8),
      cifar_resnet(20),
      cifar_resnet(32),
      cifar_resnet(44),
      cifar_resnet(56),
      cifar_resnet(110),
      imagenet_resnet(18, "two blocks of two 3x3 convolutions"),
      imagenet_resnet(34, "three to six blocks of two 3x3 convolutions"),
      imagenet_resnet(50, "bottleneck blocks"),
      imagenet_resnet(101, "bottleneck blocks, 23 of them in the third"),
      imagenet_resnet(152, "bottleneck blocks, 36 of them in the third"),
      vgg_bn(11),
      vgg_bn(13),
      vgg_bn(16),
      vgg_bn(19),
      tiramisu(56),
      tiramisu(67),
      tiramisu(103),
      {.name = "cosmoflow",
       .description = "MLPerf HPC's CosmoFlow: four numbers of a universe from a volume, five 3-D "
                      "convolutions of 3x3x3 (model.kernel = 2: of 2x2x2, as in v0.7)",
       .task = TaskKind::regress,
       .input = {4, 128, 128, 128},
       .classes = 4,
       .takes_width = true,
       .takes_hidden = true,
       .takes_kernel = true,
       .takes_dropout = true,
       .prediction = cosmoflow},
      {.name = "cosmoflow-small",
       .description = "a small relative of CosmoFlow: five convolutions of stride 2 with batch "
                      "norm, and dense layers that see every stage's means over positions",
       .task = TaskKind::regress,
       .input = {4, 64, 64, 64},
       .classes = 4,
       .takes_width = true,
       .takes_hidden = true,
       .prediction = cosmoflow_small},
      {.name = "deepcam",
       .description = "MLPerf HPC's DeepCAM: DeepLabv3+ with an Xception encoder for maps of "
                      "climate, background, tropical cyclones and atmospheric rivers",
       .task = TaskKind::segment,
       .input = {16, 768, 1152},
       .classes = 3,
       .prediction =
           [](Graph& graph, Value x, const ModelSpec& spec) {
             return deepcam_logits(graph, x, {.classes = spec.classes, .mode = spec.mode});
           }},
      {.name = "deepcam-small",
       .description = "DeepCAM with an eighth of its channels and two of its sixteen middle "
                      "blocks",
       .task = TaskKind::segment,
       .input = {16, 768, 1152},
       .classes = 3,
       .prediction =
           [](Graph& graph, Value x, const ModelSpec& spec) {
             return deepcam_logits(
                 graph, x,
                 {.classes = spec.classes, .divisor = 8, .middle_blocks = 2, .mode = spec.mode});
           }},
      {.name = "protein-vae",
       .description = "convolutional variational autoencoder of contact maps of protein folding "
                      "(Bhowmik et al. 2018): three latent numbers",
       .task = TaskKind::regress,
       .input = {1, 36, 36},
       .classes = 1,
       .takes_width = true,
       .takes_dropout = true,
       .build = build_protein_vae,
       .objectives = probabilities<true>},
      {.name = "dlrm",
       .description = "deep learning recommendation model (Naumov et al. 2019): whether it is "
                      "clicked, from numbers and from categories that are looked up in tables",
       .task = TaskKind::regress,
       .input = {13},
       .classes = 1,
       .takes_width = true,
       .takes_hidden = true,
       .more_inputs = {"categories"},
       .table_rows = std::vector<int64_t>(26, 1000),
       .inputs_if_there = {"weights"},
       .takes_tables = true,
       .build = build_dlrm,
       .objectives = probabilities<false>},
      {.name = "ffn",
       .description = "flood-filling network (Januszewski et al. 2018): the voxels of the object "
                      "that a seed lies in, 12 pairs of 3x3x3 convolutions of 32 features",
       .task = TaskKind::regress,
       .input = {1, 33, 33, 33},
       .classes = 1,
       .takes_width = true,
       .takes_depth = true,
       .more_inputs = {"seed"},
       .build = build_ffn,
       .objectives = probabilities<false>}};
}

ModelInfo layer_lists() {
  return {.name = "layers",
          .description = "the layers that a configuration lists as [[model.layer]]",
          .takes_layers = true,
          .build = build_layers,
          .objectives = layers_objectives};
}

std::vector<ModelInfo>& registered() {
  static std::vector<ModelInfo> list = [] {
    std::vector<ModelInfo> all = models_of_fields();
    std::ranges::move(models_of_sequences(), std::back_inserter(all));
    all.push_back(layer_lists());
    return all;
  }();
  return list;
}

}  // namespace

const std::vector<ModelInfo>& models() { return registered(); }

void register_model(ModelInfo model) {
  require(std::ranges::find(models(), model.name, &ModelInfo::name) == models().end(),
          "there is a model '{}' already: give yours another name", model.name);
  CHECK(!model.prediction != !model.build, "model '{}' has one of prediction and build",
        model.name);
  registered().push_back(std::move(model));
}

const ModelInfo& find_model(std::string_view name) {
  const auto found = std::ranges::find(models(), name, &ModelInfo::name);
  if (found != models().end()) return *found;
  std::vector<std::string> names;
  for (const ModelInfo& model : models()) names.push_back(model.name);
  const std::string meant = did_you_mean(nearest_spelling(name, names));
  throw ConfigError(fmt::format("there is no model '{}'{} {}, and those that model.library brings",
                                name, meant.empty() ? "; there are" : meant + " There are",
                                fmt::join(names, ", ")));
}

ModelSpec completed(const ModelSpec& spec) {
  const ModelInfo& model = find_model(spec.name);
  const auto refuse = [&](bool given, bool taken, const char* what) {
    require(!given || taken, "model '{}' has no {}", model.name, what);
  };
  refuse(spec.shortcut.has_value(), model.takes_shortcut, "shortcut");
  refuse(spec.width != 0, model.takes_width, "width");
  refuse(!spec.hidden.empty(), model.takes_hidden, "hidden sizes");
  refuse(spec.pooling != Pooling::sum, model.takes_tables, "pooling");
  refuse(spec.interaction != FeatureInteraction::dot, model.takes_tables, "interaction");
  refuse(spec.depth != 0, model.takes_depth, "depth");
  refuse(spec.heads != 0, model.takes_heads, "heads");
  refuse(spec.context != 0, model.takes_context, "context");
  refuse(spec.key_heads != 0, model.takes_key_heads, "heads of keys");
  refuse(spec.rotary_base != 0, model.takes_rotary_base, "rotated positions");
  refuse(spec.tied, model.takes_tied, "choice of tied weights");
  refuse(spec.embeddings != Embeddings::shared, model.takes_embeddings, "choice of embeddings");
  refuse(spec.kernel != 0, model.takes_kernel, "choice of a kernel");
  refuse(spec.dropout.has_value(), model.takes_dropout, "dropout");
  refuse(spec.attention_dropout.has_value(), model.takes_attention_dropout,
         "dropout of attention's probabilities");
  refuse(!spec.layers.empty(), model.takes_layers, "[[model.layer]]");
  ModelSpec full = spec;
  if (full.input.rank() == 0) full.input = model.input;
  require(model.input.rank() <= 0 || full.input.rank() == model.input.rank(),
          "model '{}' takes samples of {} axes, such as {}, and one of the field '{}' is {}",
          spec.name, model.input.rank(), model.input, full.input_field, full.input);
  require(full.input.rank() != 0,
          "model '{}' takes samples with at least one axis, and one of the field '{}' has "
          "none: a number is a sample of one element with 'as 1' at the end of its line in "
          "data.fields, \"{}: from ... as 1\"",
          spec.name, full.input_field, full.input_field);
  if (full.inputs.empty() && !model.more_inputs.empty()) {
    full.inputs.push_back({full.input_field, full.input});
    for (const std::string& field : model.more_inputs)
      full.inputs.push_back(model.table_rows.empty()
                                ? ModelField{field, full.input}
                                : ModelField{.name = field,
                                             .sample = {std::ssize(model.table_rows)},
                                             .rows = model.table_rows});
  }
  if (full.classes == 0) full.classes = model.classes;
  if (!full.task) full.task = objectives_of(spec).front().task;
  if (full.batch < 1 || full.classes < 1 || full.width < 0 || full.depth < 0)
    throw ConfigError("batch, classes, width and depth of a model must be positive");
  require(full.activations == DType::f32 || full.activations == DType::bf16,
          "activations cannot be {}; f32 and bf16 can be used", name_of(full.activations));
  return full;
}

std::string_view name_of(TaskKind kind) {
  constexpr std::string_view kNames[] = {"classify", "segment", "regress", "language"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<Objective> objectives_of(const ModelSpec& spec) {
  const ModelInfo& model = find_model(spec.name);
  std::vector<Objective> objectives;
  if (model.objectives) objectives = model.objectives(spec);
  if (objectives.empty()) objectives.emplace_back();
  for (Objective& objective : objectives) {
    if (objective.target.empty()) objective.target = spec.target_field;
    if (!objective.task) objective.task = spec.task.value_or(model.task);
    if (!objective.loss) objective.loss = spec.pointwise_loss.kind;
  }
  return objectives;
}

bool tasks_known(const ModelSpec& spec) {
  const ModelInfo& model = find_model(spec.name);
  return !model.takes_layers || spec.task ||
         std::ranges::all_of(model.objectives(spec),
                             [](const Objective& objective) { return objective.task.has_value(); });
}

ModelGraph build_model(const ModelSpec& given, bool losses) {
  const ModelSpec spec = completed(given);
  const ModelInfo& model = find_model(spec.name);
  ModelBuilder builder(spec, objectives_of(given), losses);
  if (model.build)
    model.build(builder);
  else
    builder.predict(model.prediction(builder.graph(), builder.input(), spec));
  ModelGraph built = std::move(builder).finish();
  return spec.lora.rank > 0 ? with_lora(built, spec.lora) : built;
}

}  // namespace tutti::models
