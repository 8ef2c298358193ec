#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/models/model_checks.h"
#include "tutti/ops/batch_norm.h"

namespace tutti::models {
namespace {

ModelSpec named(std::string name) { return {.name = std::move(name)}; }

}  // namespace

TEST(Models, SizesThatOverflowAreRefused) {
  for (const int64_t size : {int64_t{1} << 62, int64_t{1} << 45}) {
    EXPECT_THROW(build_model({.name = "mlp", .hidden = {size, 84}}), ConfigError);
    EXPECT_THROW(build_model({.name = "lenet", .classes = size}), ConfigError);
    EXPECT_THROW(build_model({.name = "lenet", .batch = size}), ConfigError);
  }
}

TEST(Models, HaveTheNumberOfParametersOfTheOriginals) {
  EXPECT_EQ(parameters_of(named("resnet8")), 75'290);
  EXPECT_EQ(parameters_of(named("resnet20")), 269'722);
  EXPECT_EQ(parameters_of(named("resnet32")), 464'154);
  EXPECT_EQ(parameters_of(named("resnet44")), 658'586);
  EXPECT_EQ(parameters_of(named("resnet56")), 853'018);
  EXPECT_EQ(parameters_of(named("resnet110")), 1'727'962);
  EXPECT_EQ(parameters_of(named("resnet18")), 11'689'512);
  EXPECT_EQ(parameters_of(named("resnet34")), 21'797'672);
  EXPECT_EQ(parameters_of(named("resnet50")), 25'557'032);
  EXPECT_EQ(parameters_of(named("resnet101")), 44'549'160);
  EXPECT_EQ(parameters_of(named("resnet152")), 60'192'808);
  EXPECT_EQ(parameters_of(named("vgg11-bn")), 132'868'840);
  EXPECT_EQ(parameters_of(named("vgg13-bn")), 133'053'736);
  EXPECT_EQ(parameters_of(named("vgg16-bn")), 138'365'992);
  EXPECT_EQ(parameters_of(named("vgg19-bn")), 143'678'248);
  // published MLPs of Criteo's Kaggle set, with 26 tables of 1000 rows
  EXPECT_EQ(parameters_of(named("dlrm")), 26'000 * 16 + 14 * 512 + 513 * 256 + 257 * 64 + 65 * 16 +
                                              (16 + 351 + 1) * 512 + 513 * 256 + 257);
  EXPECT_EQ(parameters_of(named("lenet")), 61'706);
  EXPECT_EQ(parameters_of(named("mlp")), 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
}

TEST(Models, ShortcutBAddsTwoProjections) {
  ModelSpec spec = named("resnet44");
  spec.shortcut = ModelSpec::Shortcut::B;
  EXPECT_EQ(parameters_of(spec), 658'586 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64);
  EXPECT_TRUE(build_model(spec).graph.find("layer2.0.shortcut.0.weight").valid());
  EXPECT_TRUE(build_model(spec).graph.find("layer3.0.shortcut.1.running_var").valid());
  // ImageNet networks use shortcut B and accept A, too, which has no projections in layers 2 to 4.
  spec = named("resnet18");
  spec.shortcut = ModelSpec::Shortcut::A;
  EXPECT_EQ(parameters_of(spec),
            11'689'512 - (64 * 128 + 256) - (128 * 256 + 512) - (256 * 512 + 1024));
}

TEST(Models, ShapesFollowInputClassesAndWidth) {
  ModelSpec spec = named("resnet18");
  spec.input = {3, 32, 32};
  spec.classes = 10;
  spec.batch = 4;
  const ModelGraph small = build_model(spec);
  EXPECT_EQ(small.graph.shape(small.inputs[0].value), (Shape{4, 3, 32, 32}));
  EXPECT_EQ(small.graph.shape(small.outputs[0].prediction), (Shape{4, 10}));
  EXPECT_EQ(small.graph.shape("avgpool"), (Shape{4, 512}));

  spec = named("resnet20");
  spec.input = {1, 64, 64};
  spec.classes = 5;
  spec.width = 8;
  const ModelGraph narrow = build_model(spec);
  EXPECT_EQ(narrow.graph.shape("layer3.2.conv2.weight"), (Shape{32, 32, 3, 3}));
  EXPECT_EQ(narrow.graph.shape("layer3.2.bn2"), (Shape{1, 32, 16, 16}));

  spec = named("resnet20");
  spec.input = {3, 33, 31};  // odd extents: subsampling and strided convolution must agree
  EXPECT_EQ(build_model(spec).graph.shape(build_model(spec).graph.find("layer3.0.bn2")),
            (Shape{1, 64, 9, 8}));

  spec = named("mlp");
  spec.hidden = {30};
  EXPECT_EQ(parameters_of(spec), 785 * 30 + 31 * 10);
}

TEST(Models, AllTrainInBothPrecisionsAndEvaluate) {
  for (const ModelInfo& model : models()) {
    if (model.takes_layers) continue;
    for (const DType dtype : {DType::f32, DType::bf16}) {
      ModelSpec spec = named(model.name);
      spec.activations = dtype;
      ModelGraph train = build_model(spec);
      EXPECT_EQ(train.graph.type(train.outputs[0].prediction).desc.dtype, DType::f32) << model.name;
      EXPECT_EQ(train.graph.outputs().size(), 1 + train.losses.size()) << model.name;
      const size_t count = train.graph.with_role(graph::Role::parameter).size();
      EXPECT_EQ(ops::differentiate(train.graph, train.losses).size(), count) << model.name;

      spec.mode = ops::Mode::eval;
      const ModelGraph eval = build_model(spec);
      EXPECT_TRUE(eval.targets.empty());
      EXPECT_EQ(eval.graph.parameter_count(), train.graph.parameter_count());
      for (const graph::Node& node : eval.graph.nodes())
        EXPECT_EQ(dynamic_cast<const ops::BatchNormStats*>(node.op.get()), nullptr) << node.name;
    }
  }
}

TEST(Models, AMisspeltOneFindsItsName) {
  const auto failure = [](std::string_view name) -> std::string {
    return message_of<ConfigError>("", [&] { find_model(name); });
  };
  EXPECT_TRUE(
      failure("cosmoflo")
          .starts_with("there is no model 'cosmoflo', did you mean 'cosmoflow'? There are mlp, "));
  EXPECT_TRUE(failure("zebra-crossing").starts_with("there is no model 'zebra-crossing'; there"));
}

TEST(Models, RefuseWhatTheyDoNotTake) {
  expect_refused(named("lenet"), [](ModelSpec& spec) { spec.width = 3; });
  expect_refused(named("resnet20"), [](ModelSpec& spec) { spec.hidden = {10}; });
  // Smaller than the second convolution.
  expect_refused(named("lenet"), [](ModelSpec& spec) { spec.input = {1, 4, 4}; });
  EXPECT_TRUE(throws<ConfigError>({"resnet44"}, [&] { build_model(named("resnet45")); }));
}

#ifdef TUTTI_TEST_DATA
TEST(Models, ResNet44HasTheNamesOfPublishedWeights) {
  // The header of the weights file is JSON; this test needs only its names.
  std::ifstream file(
      std::string(TUTTI_TEST_DATA) + "/cifar10_resnet44/resnet44_cifar10.safetensors",
      std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), 8);
  std::string header(size, '\0');
  file.read(header.data(), static_cast<std::streamsize>(size));
  ASSERT_TRUE(file.good());

  const ModelGraph m = build_model(named("resnet44"));
  size_t found = 0;
  for (const graph::Role role : {graph::Role::parameter, graph::Role::statistic})
    for (const Value v : m.graph.with_role(role)) {
      std::string extents;
      for (const int64_t extent : m.graph.shape(v))
        extents += fmt::format("{}{}", extents.empty() ? "" : ",", extent);
      std::erase(header, ' ');
      const std::string entry =
          fmt::format("\"{}\":{{\"dtype\":\"F32\",\"shape\":[{}]", m.graph[v].name, extents);
      EXPECT_TRUE(has_text(header, entry)) << entry;
      ++found;
    }
  EXPECT_EQ(found, 217u);
}
#endif

}  // namespace tutti::models
