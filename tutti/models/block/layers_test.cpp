#include "tutti/models/block/layers.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

using Entries = std::vector<std::pair<std::string, LayerValue>>;

LayerTable layer(std::string type, Entries more = {}) {
  LayerTable table{.entries = {{"type", std::move(type)}}};
  table.entries.insert(table.entries.end(), more.begin(), more.end());
  return table;
}

LayerValue word(const char* text) { return std::string(text); }
LayerValue number(int64_t n) { return n; }

ModelSpec layers_of(std::vector<LayerTable> layers, Shape input = {1, 28, 28}) {
  ModelSpec spec{.name = "layers", .input = input, .classes = 10};
  spec.layers = std::move(layers);
  return spec;
}

std::string failure(const ModelSpec& spec) {
  return message_of<ConfigError>("", [&] { build_model(spec); });
}

/// Expects that no model is made of the layers, for a reason that has `part` in it.
void expect_failure(std::vector<LayerTable> layers, std::string_view part) {
  EXPECT_TRUE(has_text(failure(layers_of(std::move(layers))), part));
}

std::vector<LayerTable> lenet() {
  const auto convolution = [](const char* name, int64_t channels, int64_t pad) {
    return layer("conv", {{"name", word(name)},
                          {"channels", number(channels)},
                          {"kernel", number(5)},
                          {"pad", number(pad)},
                          {"activation", word("relu")}});
  };
  const auto dense = [](const char* name, int64_t outputs) {
    return layer(
        "dense",
        {{"name", word(name)}, {"outputs", number(outputs)}, {"activation", word("relu")}});
  };
  const LayerTable pool = layer("pool", {{"kernel", number(2)}});
  return {convolution("conv1", 6, 2),
          pool,
          convolution("conv2", 16, 0),
          pool,
          dense("fc1", 120),
          dense("fc2", 84),
          layer("dense", {{"name", word("fc3")}})};
}

std::vector<LayerTable> cosmoflow_layers() {
  std::vector<LayerTable> layers;
  for (int64_t i = 0; i < 5; ++i) {
    layers.push_back(layer("conv", {{"channels", number(32 << i)},
                                    {"kernel", number(3)},
                                    {"pad", number(1)},
                                    {"activation", word("leaky_relu")},
                                    {"slope", 0.3},
                                    {"init", word("glorot_uniform")},
                                    {"bias_init", word("zeros")}}));
    layers.push_back(layer("pool", {{"kernel", number(2)}}));
  }
  const auto dense = [&](const char* name, Entries more) {
    more.insert(
        more.begin(),
        {{"name", word(name)}, {"init", word("glorot_uniform")}, {"bias_init", word("zeros")}});
    layers.push_back(layer("dense", more));
  };
  for (const auto& [name, outputs] : {std::pair{"fc1", 128}, std::pair{"fc2", 64}}) {
    dense(name, {{"outputs", number(outputs)}, {"activation", word("leaky_relu")}, {"slope", 0.3}});
    layers.push_back(
        layer("dropout", {{"name", std::string(name) + ".dropout"}, {"probability", 0.5}}));
  }
  dense("fc3", {{"activation", word("tanh")}});
  layers.push_back(layer("scale", {{"name", word("prediction")}, {"factor", 1.2}}));
  return layers;
}

/// Expects equal graphs: these are computed identically, to the bit.
void expect_same(ModelSpec built_in, ModelSpec layers) {
  for (const DType type : {DType::f32, DType::bf16})
    for (const ops::Mode mode : {ops::Mode::train, ops::Mode::eval}) {
      built_in.mode = layers.mode = mode;
      built_in.activations = layers.activations = type;
      const Graph a = build_model(built_in).graph, b = build_model(layers).graph;
      EXPECT_EQ(a.to_string(), b.to_string());
      ASSERT_EQ(a.values().size(), b.values().size());
      for (size_t i = 0; i < a.values().size(); ++i) {
        EXPECT_EQ(a.values()[i].name, b.values()[i].name);
        EXPECT_EQ(a.values()[i].init.kind, b.values()[i].init.kind) << a.values()[i].name;
        EXPECT_EQ(a.values()[i].init.fan, b.values()[i].init.fan) << a.values()[i].name;
      }
    }
}

}  // namespace

TEST(Layers, LenetIsTheBuiltInOne) { expect_same({.name = "lenet"}, layers_of(lenet())); }

TEST(Layers, CosmoflowIsTheBuiltInOne) {
  ModelSpec layers = layers_of(cosmoflow_layers(), {4, 128, 128, 128});
  layers.task = TaskKind::regress;
  layers.classes = 4;
  expect_same({.name = "cosmoflow"}, layers);
}

TEST(Layers, ReadThoseThatTheyName) {
  const ModelGraph m = build_model(layers_of(
      {layer("conv", {{"channels", number(4)}, {"kernel", number(3)}, {"pad", number(1)}}),
       layer("batch_norm", {{"activation", word("relu")}}),
       layer("depthwise_conv", {{"kernel", number(3)}, {"pad", number(1)}}),
       layer("add", {{"input", std::vector<std::string>{"depthwise_conv1", "conv1"}},
                     {"activation", word("relu")}}),
       layer("concat", {{"input", std::vector<std::string>{"add1", "image"}}}),
       layer("separable_conv", {{"channels", number(6)}, {"stride", number(2)}}),
       layer("transposed_conv",
             {{"channels", number(3)}, {"kernel", number(2)}, {"stride", number(2)}}),
       layer("global_average"),
       layer("broadcast", {{"input", std::vector<std::string>{"global_average1", "conv1"}}}),
       layer("pool", {{"kind", word("average")}, {"kernel", std::vector<int64_t>{28, 14}}}),
       layer("flatten"), layer("dense")}));
  EXPECT_EQ(m.graph.shape("concat1"), (Shape{1, 5, 28, 28}));
  EXPECT_EQ(m.graph.shape("transposed_conv1"), (Shape{1, 3, 28, 28}));
  EXPECT_EQ(m.graph.shape("broadcast1"), (Shape{1, 3, 28, 28}));
  EXPECT_EQ(m.graph.shape("flatten1"), (Shape{1, 6}));
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{1, 10}));
}

TEST(Layers, SqueezeExcitationIsWhatSmallerLayersMake) {
  const LayerTable conv = layer("conv", {{"channels", number(8)}, {"kernel", number(3)}});
  const LayerTable means = layer("global_average", {{"name", word("means")}}),
                   head = layer("dense", {{"name", word("head")}});
  const auto dense = [](const char* name, int64_t outputs, const char* activation) {
    return layer(
        "dense",
        {{"name", word(name)}, {"outputs", number(outputs)}, {"activation", word(activation)}});
  };
  const auto both = [](const char* first, const char* second) {
    return LayerValue(std::vector<std::string>{first, second});
  };
  const auto excited = [&](int64_t reduction) {
    return layers_of(
        {conv,
         layer("squeeze_excitation", {{"name", word("se")}, {"reduction", number(reduction)}}),
         means, head});
  };
  expect_same(
      layers_of(
          {conv, layer("global_average", {{"name", word("se.avgpool")}}),
           dense("se.fc1", 2, "relu"), dense("se.fc2", 8, "sigmoid"),
           layer("broadcast", {{"name", word("se.broadcast")}, {"input", both("se.fc2", "conv1")}}),
           layer("mul", {{"name", word("se")}, {"input", both("conv1", "se.broadcast")}}), means,
           head}),
      excited(4));
  EXPECT_TRUE(has_text(failure(excited(16)), "more than the 8 channels"));
  expect_failure({layer("flatten"), layer("squeeze_excitation"), layer("dense")},
                 "has no two or three dimensions");
}

TEST(Layers, SpectraAreRowsOfNumbers) {
  const auto network = [](LayerTable spectrum) {
    return layers_of({layer("conv", {{"channels", number(4)}, {"kernel", number(3)}}),
                      std::move(spectrum), layer("dense")});
  };
  const ModelGraph m = build_model(network(layer("power_spectrum", {{"floor", LayerValue(0.5)}})));
  EXPECT_EQ(m.graph.shape("power_spectrum1"), (Shape{1, 4 * 13}));
  EXPECT_TRUE(has_text(m.graph.to_string(), "floor 0.5"));
  expect_failure({layer("flatten"), layer("power_spectrum"), layer("dense")}, "has no positions");
}

/// The network of a recommendation model without its tables: features of equal width, the
/// products of their pairs, and the first feature once more.
TEST(Layers, InteractionsAreOfAllPairsOfInputs) {
  const auto network = [](int64_t width, Entries more) {
    Entries pairs = {{"input", std::vector<std::string>{"a", "b", "c"}}};
    pairs.insert(pairs.end(), more.begin(), more.end());
    const auto feature = [](const char* name, int64_t outputs) {
      return layer("dense", {{"name", word(name)},
                             {"input", std::vector<std::string>{"image"}},
                             {"outputs", number(outputs)}});
    };
    return layers_of({feature("a", 8), feature("b", 8), feature("c", width),
                      layer("interaction", pairs),
                      layer("concat", {{"input", std::vector<std::string>{"a", "interaction1"}}}),
                      layer("dense")});
  };
  const ModelGraph m = build_model(network(8, {}));
  EXPECT_EQ(m.graph.shape("interaction1"), (Shape{1, 3}));
  EXPECT_EQ(m.graph.shape("concat1"), (Shape{1, 11}));
  const ModelGraph with = build_model(network(8, {{"itself", LayerValue(true)}}));
  EXPECT_EQ(with.graph.shape("interaction1"), (Shape{1, 6}));
  EXPECT_TRUE(has_text(failure(network(9, {})), "rows of equally many numbers"));
}

TEST(Layers, RowsOfBothTypesStandBesideEachOther) {
  for (const char* type : {"concat", "add"}) {
    ModelSpec spec =
        layers_of({layer("power_spectrum", {{"name", word("power")}}),
                   layer("conv", {{"name", word("conv")},
                                  {"input", word("image")},
                                  {"channels", number(14)},
                                  {"kernel", number(3)}}),
                   layer("global_average", {{"name", word("means")}}),
                   layer(type, {{"name", word("both")},
                                {"input", std::vector<std::string>{"power", "means"}}}),
                   layer("dense")});
    spec.activations = DType::bf16;
    const ModelGraph m = build_model(spec);
    EXPECT_EQ(m.graph.type(m.graph.find("both")).desc.dtype, DType::f32) << type;
  }
}

TEST(Layers, SayWhereTheyDoNotFit) {
  LayerTable pool = layer("pool", {{"kernel", number(64)}});
  pool.where = "net.toml:7:1";
  EXPECT_TRUE(
      failure(layers_of({pool, layer("dense")})).starts_with("net.toml:7:1: layer 'pool1': "))
      << failure(layers_of({pool, layer("dense")}));
  expect_failure({layer("conv"), layer("dense")}, "'conv1' needs channels");
  expect_failure({layer("flatten"), layer("add")}, "reads at least 2 layer(s), not 1");
  expect_failure({layer("dense", {{"input", word("conv7")}})}, "conv7");
  expect_failure(
      {layer("conv", {{"channels", number(2)}, {"kernel", std::vector<int64_t>{3, 3, 3}}}),
       layer("dense")},
      "kernel has 3 numbers");
  expect_failure({layer("flatten", {{"name", word("image")}}), layer("dense")}, "another name");
  expect_failure({layer("flatten"),
                  layer("broadcast", {{"input", std::vector<std::string>{"image", "flatten1"}}}),
                  layer("dense")},
                 "has no positions");
  expect_failure({}, "no layers");
  ModelSpec flat = layers_of({layer("conv", {{"channels", number(2)}})});
  flat.input = {3};
  EXPECT_TRUE(
      has_text(failure(flat), "a sample of its input 'image' is 3, and 2 to 4 axes are needed"));
  ModelSpec single = layers_of({layer("dense")});
  single.input = {};
  EXPECT_TRUE(has_text(failure(single), "'as 1' at the end of its line"));
}

TEST(Layers, TablesAreChecked) {
  const auto wrong = [](LayerTable table) {
    return message_of<ConfigError>("", [&] { check_layers({layer("flatten"), std::move(table)}); });
  };
  EXPECT_EQ(wrong(layer("conf")), "layer 2: there is no type 'conf'");
  EXPECT_EQ(wrong({}), "layer 2: has no type");
  EXPECT_EQ(wrong(layer("pool", {{"channels", number(2)}})), "layer 2: pool has no key 'channels'");
  EXPECT_EQ(wrong(layer("conv", {{"channels", number(0)}})),
            "layer 2: channels must be between 1 and 16777216, is 0");
  EXPECT_EQ(wrong(layer("conv", {{"kernel", word("3")}})),
            "layer 2: kernel must be an integer or a list of integers");
  EXPECT_TRUE(has_text(wrong(layer("conv", {{"activation", word("rely")}})), "is \"rely\""));
  EXPECT_EQ(wrong(layer("conv", {{"kernel", std::vector<int64_t>{3, 5}}})), "");
}

TEST(Layers, KeysThatNobodyReadsAreRefused) {
  expect_failure({layer("dense", {{"outputs", number(4)}, {"weight", 2.0}}), layer("dense")},
                 "'dense1': weight is of a prediction");
  expect_failure({layer("conv", {{"channels", number(4)}}),
                  layer("flatten", {{"input", word("image")}}), layer("dense")},
                 "'conv1': no layer reads it");
  expect_failure({layer("dense", {{"task", word("classify")}, {"loss", word("mae")}})},
                 "loss is of numbers");
  expect_failure({layer("dense", {{"slope", 0.1}})}, "slope is of");
  expect_failure({layer("dense", {{"init_value", 0.1}})}, "init_value is of");
  expect_failure({layer("dense"), layer("scale")}, "scale needs factor");
}

TEST(Layers, ASecondTargetOfNumbersHasItsOwnSize) {
  ModelSpec spec = layers_of({layer("dense", {{"target", word("label")}}),
                              layer("dense", {{"input", word("image")}, {"target", word("age")}})});
  spec.target_field = "label";
  spec.targets = {{"label", {}, 7}, {"age", {}, 0}};
  spec.classes = 7;
  const ModelGraph m = build_model(spec);
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{1, 7}));
  EXPECT_EQ(m.graph.shape(m.outputs[1].prediction), (Shape{1, 1}));
}

TEST(Layers, SeveralPredictLossesAddUp) {
  ModelSpec spec = layers_of({layer("conv", {{"channels", number(2)}}),
                              layer("dense", {{"name", word("kind")}, {"target", word("label")}}),
                              layer("conv", {{"name", word("copy")},
                                             {"input", word("conv1")},
                                             {"target", word("image")},
                                             {"task", word("regress")},
                                             {"loss", word("mae")},
                                             {"weight", 0.5}})});
  spec.targets = {{"label", {}, 7}, {"image", {1, 28, 28}, 0}};
  const ModelGraph m = build_model(spec);
  ASSERT_EQ(m.outputs.size(), 2u);
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{1, 7}));
  EXPECT_EQ(m.graph.shape(m.outputs[1].prediction), (Shape{1, 1, 28, 28}));
  EXPECT_EQ(m.losses.size(), 2u);
  ASSERT_EQ(m.targets.size(), 2u);
  EXPECT_EQ(m.targets[m.outputs[1].target].field, "image");
  EXPECT_EQ(m.inputs.size(), 1u);
  EXPECT_TRUE(has_text(m.graph.to_string(), "mae"));
}

TEST(Layers, TasksFollowFromFields) {
  const auto task = [](const Entries& keys, const ModelField& field) {
    ModelSpec spec = layers_of({layer("conv", keys)});
    spec.target_field = field.name;
    spec.targets = {field};
    return *objectives_of(spec)[0].task;
  };
  const ModelField label{"label", {}, 7}, mask{"mask", {28, 28}, 3}, numbers{"y", {4}, 0};
  EXPECT_EQ(task({}, label), TaskKind::classify);
  EXPECT_EQ(task({}, mask), TaskKind::segment);
  EXPECT_EQ(task({}, numbers), TaskKind::regress);
  EXPECT_EQ(task({{"loss", word("mae")}}, mask), TaskKind::regress);
  EXPECT_EQ(task({{"task", word("regress")}}, mask), TaskKind::regress);

  ModelSpec spec = layers_of({layer("conv")});
  EXPECT_FALSE(tasks_known(spec));
  spec.targets = {mask};
  spec.target_field = "mask";
  EXPECT_EQ(*build_model(spec).outputs[0].objective.task, TaskKind::segment);
  spec.task = TaskKind::regress;
  EXPECT_TRUE(tasks_known(spec));
  EXPECT_EQ(*objectives_of(spec)[0].task, TaskKind::regress);
}

TEST(Layers, ResizeRepeats) {
  const ModelGraph m = build_model(
      layers_of({layer("resize", {{"factors", std::vector<int64_t>{2, 3}}}), layer("dense")}));
  EXPECT_EQ(m.graph.shape("resize1"), (Shape{1, 1, 56, 84}));
  expect_failure({layer("resize"), layer("dense")}, "needs factors");
  expect_failure({layer("flatten"), layer("resize", {{"factors", number(2)}}), layer("dense")},
                 "has no positions");
}

}  // namespace tutti::models
