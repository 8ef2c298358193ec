// Tests CosmoFlow and DeepCAM: sizes, shapes and names of their references.

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/error.h"
#include "tutti/models/network/cosmoflow.h"
#include "tutti/models/network/cosmoflow_small.h"
#include "tutti/models/network/deepcam.h"

namespace tutti::models {
namespace {

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const graph::Node& node : graph.nodes()) found += node.op->name() == op;
  return found;
}

struct Built {
  Graph graph;
  Value out;
};

Built cosmoflow(const Shape& shape, const CosmoFlowSpec& spec, DType dtype = DType::f32) {
  Built b;
  b.out = cosmoflow_prediction(b.graph, b.graph.input("volume", {dtype, shape, {}}), spec);
  return b;
}

Built deepcam(const Shape& shape, const DeepCamSpec& spec, DType dtype = DType::f32) {
  Built b;
  b.out = deepcam_logits(b.graph, b.graph.input("fields", {dtype, shape, {}}), spec);
  return b;
}

Init::Kind init_of(const Built& b, std::string_view name) {
  const Value v = b.graph.find(name);
  EXPECT_TRUE(v.valid()) << name;
  return v.valid() ? b.graph[v].init.kind : Init::Kind::ones;
}

Shape shape_of(const Built& b, std::string_view name) {
  const Value v = b.graph.find(name);
  EXPECT_TRUE(v.valid()) << name;
  return v.valid() ? b.graph.shape(v) : Shape{};
}

}  // namespace

TEST(CosmoFlow, HasTheNumberOfParametersOfTheReference) {
  const Built v1 = cosmoflow({2, 4, 128, 128, 128}, {});
  EXPECT_EQ(v1.graph.parameter_count(), 8'907'556);
  EXPECT_EQ(cosmoflow({2, 4, 128, 128, 128}, {.kernel = 2}).graph.parameter_count(), 5'597'604);
  EXPECT_EQ(v1.graph.shape(v1.out), (Shape{2, 4}));
  EXPECT_EQ(shape_of(v1, "pool5"), (Shape{2, 512, 4, 4, 4}));
  EXPECT_EQ(count(v1.graph, "dropout"), 2);
  EXPECT_EQ(init_of(v1, "conv1.weight"), Init::Kind::glorot_uniform);
  EXPECT_EQ(init_of(v1, "fc2.bias"), Init::Kind::zeros);
}

TEST(CosmoFlow, ForwardCostsWhatIsPublished) {
  // A multiplication and an addition count as two: 68.9 and 20.4 GFLOP a sample.
  const CosmoFlowSpec eval{.mode = ops::Mode::eval}, small{.kernel = 2, .mode = ops::Mode::eval};
  EXPECT_NEAR(cosmoflow({1, 4, 128, 128, 128}, eval).graph.flop(), 68.9e9, 0.1e9);
  EXPECT_NEAR(cosmoflow({1, 4, 128, 128, 128}, small).graph.flop(), 20.4e9, 0.1e9);
}

TEST(CosmoFlow, KeepsExtentsWithEvenKernelsAndTrainsInBothPrecisions) {
  for (const int64_t kernel : {2, 3})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Built b = cosmoflow({3, 4, 64, 64, 64}, {.kernel = kernel, .channels = 8}, dtype);
      EXPECT_EQ(shape_of(b, "conv5"), (Shape{3, 128, 4, 4, 4}));
      EXPECT_EQ(b.graph.type(b.out).desc.dtype, DType::f32);
      const Value target = b.graph.input("target", {DType::f32, {3, 4}, {}});
      const Value loss = ops::pointwise_loss(b.graph, "loss", b.out, target, {});
      EXPECT_EQ(ops::differentiate(b.graph, std::array{loss}).size(), 16u);
    }
  const Built eval = cosmoflow({1, 4, 32, 32, 32}, {.mode = ops::Mode::eval});
  EXPECT_EQ(count(eval.graph, "dropout"), 0);
}

TEST(CosmoFlow, RefusesVolumesThatFivePoolingsDoNotFit) {
  EXPECT_THROW(cosmoflow({1, 4, 48, 48, 48}, {}), ConfigError);
  EXPECT_THROW(cosmoflow({1, 4, 32, 32, 64}, {}), ConfigError);
  EXPECT_THROW(cosmoflow({1, 4, 32, 32}, {}), ConfigError);
}

TEST(CosmoFlowSmall, SeesEveryStageAndTrains) {
  Graph graph;
  const Value x = graph.input("volume", {DType::f32, {3, 4, 64, 64, 64}, {}});
  const Value y = cosmoflow_small_prediction(graph, x);
  EXPECT_EQ(graph.shape(y), (Shape{3, 4}));
  EXPECT_EQ(graph.parameter_count(), 108'612);
  EXPECT_EQ(graph.shape("conv1"), (Shape{3, 16, 32, 32, 32}));
  EXPECT_EQ(graph.shape("conv5"), (Shape{3, 32, 2, 2, 2}));
  EXPECT_EQ(graph.shape("mean"), (Shape{3, 144}));
  const Value target = graph.input("target", {DType::f32, {3, 4}, {}});
  const Value loss = ops::pointwise_loss(graph, "loss", y, target, {});
  EXPECT_EQ(ops::differentiate(graph, std::array{loss}).size(), 5u + 2 * 6 + 4);
}

TEST(CosmoFlowSmall, TakesWidthsAndRefusesVolumesThatDoNotHalve) {
  Graph graph;
  const Value x = graph.input("volume", {DType::bf16, {1, 2, 32, 32, 32}, {}});
  const Value y = cosmoflow_small_prediction(
      graph, x, {.channels = 4, .hidden = {}, .outputs = 3, .mode = ops::Mode::eval});
  EXPECT_EQ(graph.shape(y), (Shape{1, 3}));
  EXPECT_EQ(graph.type(y).desc.dtype, DType::f32);
  const Value flat = graph.input("flat", {DType::f32, {1, 4, 32, 32}, {}}),
              odd = graph.input("odd", {DType::f32, {1, 4, 48, 48, 48}, {}});
  EXPECT_THROW(cosmoflow_small_prediction(graph, flat), ConfigError);
  EXPECT_THROW(cosmoflow_small_prediction(graph, odd), ConfigError);
}

TEST(DeepCam, HasTheNumberOfParametersOfTheReference) {
  const Built b = deepcam({2, 16, 768, 1152}, {});
  EXPECT_EQ(b.graph.parameter_count(), 56'454'720);
  EXPECT_EQ(b.graph.shape(b.out), (Shape{2, 3, 768, 1152}));
  EXPECT_EQ(shape_of(b, "bottleneck.tile"), (Shape{2, 256, 48, 72}));
  EXPECT_EQ(shape_of(b, "bottleneck.concat"), (Shape{2, 1280, 48, 72}));
  EXPECT_EQ(shape_of(b, "upsample.concat"), (Shape{2, 304, 192, 288}));
  EXPECT_EQ(count(b.graph, "activation"), 0);  // each ReLU ends a batch norm or a convolution
}

TEST(DeepCam, HasTheNamesOfTheReference) {
  const Built b = deepcam({1, 16, 64, 96}, {});
  const std::string x = "xception_features.",
                    pooling = "bottleneck.global_avg_pool.global_average_pool.";
  EXPECT_EQ(shape_of(b, x + "conv1.weight"), (Shape{32, 16, 3, 3}));
  EXPECT_EQ(shape_of(b, x + "bn2.bn.running_var"), (Shape{64}));
  EXPECT_EQ(shape_of(b, x + "block1.rep.5.conv1.weight"), (Shape{128, 1, 3, 3}));
  EXPECT_EQ(shape_of(b, x + "block3.rep.4.bn.weight"), (Shape{728}));
  EXPECT_EQ(shape_of(b, x + "block3.skip.weight"), (Shape{728, 256, 1, 1}));
  EXPECT_EQ(shape_of(b, x + "block19.rep.7.bn.bias"), (Shape{728}));
  EXPECT_FALSE(b.graph.find(x + "block19.skip.weight").valid());
  EXPECT_EQ(shape_of(b, x + "block20.rep.0.pointwise.weight"), (Shape{728, 728, 1, 1}));
  EXPECT_EQ(shape_of(b, x + "block20.rep.5.pointwise.weight"), (Shape{1024, 1024, 1, 1}));
  EXPECT_EQ(shape_of(b, x + "conv5.pointwise.weight"), (Shape{2048, 1536, 1, 1}));
  EXPECT_EQ(shape_of(b, "bottleneck.aspp4.atrous_convolution.weight"), (Shape{256, 2048, 3, 3}));
  EXPECT_EQ(shape_of(b, pooling + "1.weight"), (Shape{256, 2048, 1, 1}));
  EXPECT_EQ(shape_of(b, pooling + "2.weights"), (Shape{256, 1, 1, 1}));
  EXPECT_EQ(shape_of(b, "conv2.weight"), (Shape{48, 128, 1, 1}));
  EXPECT_EQ(shape_of(b, "upsample.deconv1.3.weight"), (Shape{256, 256, 3, 3}));
  EXPECT_EQ(shape_of(b, "upsample.conv1.6.bias"), (Shape{256}));
  EXPECT_EQ(shape_of(b, "upsample.last_deconv.0.weight"), (Shape{256, 3, 3, 3}));
  EXPECT_FALSE(b.graph.find("upsample.last_deconv.0.bias").valid());
  EXPECT_EQ(init_of(b, x + "block5.rep.0.conv1.weight"), Init::Kind::kaiming_normal_fan_in);
  EXPECT_EQ(init_of(b, "bottleneck.aspp1.atrous_convolution.weight"),
            Init::Kind::kaiming_normal_fan_in);
  EXPECT_EQ(init_of(b, "upsample.conv1.0.weight"), Init::Kind::uniform_fan_in);
}

TEST(DeepCam, SmallOnesTrainInBothPrecisions) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Built b = deepcam({2, 16, 32, 48}, {.divisor = 32, .middle_blocks = 1}, dtype);
    EXPECT_EQ(b.graph.type(b.out).desc.dtype, DType::f32);
    const Value labels = b.graph.input("labels", {DType::i32, {2, 32, 48}, {}});
    const Value loss = ops::softmax_cross_entropy(
        b.graph, "loss", b.out, labels,
        {.class_weights = {1, 2, 3}, .mean_over = ops::MeanOver::labels});
    const size_t parameters = b.graph.with_role(graph::Role::parameter).size();
    EXPECT_EQ(ops::differentiate(b.graph, std::array{loss}).size(), parameters);
  }
  const DeepCamSpec eval{.divisor = 8, .middle_blocks = 0, .mode = ops::Mode::eval};
  EXPECT_EQ(count(deepcam({1, 4, 16, 16}, eval).graph, "batch_norm_stats"), 0);
}

TEST(DeepCam, RefusesWhatDoesNotFit) {
  EXPECT_THROW(deepcam({1, 16, 40, 48}, {}), ConfigError);
  EXPECT_THROW(deepcam({1, 16, 32, 32, 32}, {}), ConfigError);
  EXPECT_THROW(deepcam({1, 16, 32, 32}, {.divisor = 33}), ConfigError);
  EXPECT_THROW(deepcam({1, 16, 32, 32}, {.middle_blocks = 17}), ConfigError);
}

}  // namespace tutti::models
