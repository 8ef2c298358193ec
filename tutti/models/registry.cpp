#include "tutti/models/registry.h"

#include <algorithm>

#include "tutti/models/feed_forward.h"
#include "tutti/models/resnet.h"

namespace tutti {
namespace {

ModelInfo cifar_resnet(int depth) {
  return {.name = fmt::format("resnet{}", depth),
          .description = fmt::format("residual network of {} layers for 32x32 images, three stages "
                                     "of 16, 32, 64 channels (He et al. 2015, section 4.2)",
                                     depth),
          .input = {3, 32, 32},
          .classes = 10,
          .takes_shortcut = true,
          .takes_width = true,
          .logits = [depth](Graph& graph, Value images, const ModelSpec& spec) {
            return cifar_resnet_logits(graph, images, spec, depth);
          }};
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
      .logits = [depth](Graph& graph, Value images, const ModelSpec& spec) {
        return imagenet_resnet_logits(graph, images, spec, depth);
      }};
}

std::vector<ModelInfo> all_models() {
  return {{.name = "mlp",
           .description = "fully connected layers with ReLU, hidden layers of 256 and 128",
           .input = {1, 28, 28},
           .takes_hidden = true,
           .logits = mlp_logits},
          {.name = "lenet",
           .description = "LeNet-5 with ReLU and maximum pooling (LeCun et al. 1998): 2 "
                          "convolutions, 3 dense layers",
           .input = {1, 28, 28},
           .logits = lenet_logits},
          cifar_resnet(8),
          cifar_resnet(20),
          cifar_resnet(32),
          cifar_resnet(44),
          cifar_resnet(56),
          cifar_resnet(110),
          imagenet_resnet(18, "two blocks of two 3x3 convolutions"),
          imagenet_resnet(50, "bottleneck blocks")};
}

}  // namespace

const std::vector<ModelInfo>& models() {
  static const std::vector<ModelInfo> list = all_models();
  return list;
}

const ModelInfo& find_model(std::string_view name) {
  const auto found = std::ranges::find(models(), name, &ModelInfo::name);
  if (found != models().end()) return *found;
  std::string names;
  for (const ModelInfo& model : models()) names += (names.empty() ? "" : ", ") + model.name;
  throw ConfigError(fmt::format("there is no model '{}'; there are {}", name, names));
}

ModelSpec completed(const ModelSpec& spec) {
  const ModelInfo& model = find_model(spec.name);
  const auto refuse = [&](bool given, bool taken, const char* what) {
    if (given && !taken) throw ConfigError(fmt::format("model '{}' has no {}", model.name, what));
  };
  refuse(spec.shortcut.has_value(), model.takes_shortcut, "shortcut");
  refuse(spec.width != 0, model.takes_width, "width");
  refuse(!spec.hidden.empty(), model.takes_hidden, "hidden sizes");
  ModelSpec full = spec;
  if (full.input.rank() == 0) full.input = model.input;
  if (full.classes == 0) full.classes = model.classes;
  if (full.batch < 1 || full.classes < 1 || full.width < 0)
    throw ConfigError("batch, classes and width of a model must be positive");
  if (full.activations != DType::f32 && full.activations != DType::bf16)
    throw ConfigError(fmt::format("activations cannot be {}; f32 and bf16 can be used",
                                  name_of(full.activations)));
  return full;
}

ModelGraph build_model(const ModelSpec& given) {
  const ModelSpec spec = completed(given);
  if (spec.input.rank() != 3)
    throw ConfigError(fmt::format("model '{}' takes images [channels, height, width], not {}",
                                  spec.name, spec.input.to_string()));
  ModelGraph m;
  m.images = m.graph.input(
      "images", {spec.activations, {spec.batch, spec.input[0], spec.input[1], spec.input[2]}, {}});
  m.logits = find_model(spec.name).logits(m.graph, m.images, spec);
  m.graph.mark_output(m.logits);
  if (spec.mode == Mode::train) {
    m.labels = m.graph.input("labels", {DType::i32, {spec.batch}, {}});
    m.loss = softmax_cross_entropy(m.graph, "loss", m.logits, m.labels, spec.loss);
    m.graph.mark_output(m.loss);
  }
  return m;
}

}  // namespace tutti
