#include "tutti/train/network/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/train/network/given_weights.h"

namespace tutti::train {
namespace {

/// Two parameters of 32 and 16 floats, one after the other, each with a momentum.
plan::Variables two_parameters() {
  plan::Variables variables;
  variables.parameters = {{"a.weight", {DType::f32, {32}, {}}, 0, {}},
                          {"b.weight", {DType::f32, {16}, {}}, 128, {}}};
  variables.state_kinds = {"momentum"};
  variables.parameter_bytes = variables.trained_bytes = 192;
  return variables;
}

/// A file of tensors, written anew as often as wanted.
class TensorFile {
 public:
  keep::SafetensorsFile of(const std::vector<keep::TensorRef>& tensors) const {
    keep::write_safetensors(path, tensors);
    return keep::SafetensorsFile(path);
  }
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "weights.safetensors";
};

/// A tensor of one dimension.
keep::TensorRef row_of(const std::string& name, std::span<const float> numbers) {
  return {name, {DType::f32, {std::ssize(numbers)}, {}}, std::as_bytes(numbers)};
}

TEST(Weights, FilesHoldMatricesAsPublished) {
  plan::Variables variables;
  const Layout panels{.order = {0, 2, 1}};  // any but the plain layout
  variables.parameters = {
      {"a.weight", {DType::f32, {2, 3, 1}, {}}, 0, {.stored = graph::Init::Stored::matrix}},
      {"b.weight",
       {DType::f32, {2, 3, 1}, panels},
       64,
       {.stored = graph::Init::Stored::transposed}}};
  variables.parameter_bytes = variables.trained_bytes = 128;
  Weights weights(variables, 1);
  float* const values = reinterpret_cast<float*>(weights.parameters());
  for (int i = 0; i < 6; ++i) values[i] = values[16 + i] = static_cast<float>(i);
  const std::vector<keep::NamedTensor> stored =
      keep::materialise(weights.model_tensors(weights.parameters(), weights.statistics(0)));
  const auto numbers = [&](size_t i) {
    std::vector<float> all(6);
    std::memcpy(all.data(), stored[i].bytes.data(), 24);
    return all;
  };
  EXPECT_EQ(stored[0].desc.shape, (Shape{2, 3}));
  EXPECT_EQ(numbers(0), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(stored[1].desc.shape, (Shape{3, 2}));
  EXPECT_EQ(numbers(1), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  const TensorFile file;
  Weights again(variables, 1);
  again.import_model(file.of({stored[0].ref(), stored[1].ref()}), {});
  EXPECT_EQ(std::memcmp(again.parameters(), weights.parameters(), 88), 0);
  // GPT-2's files also hold masks.
  const std::vector<float> mask(4, 1.0f);
  const keep::TensorRef buffer{
      "h.0.attn.bias", {DType::f32, {1, 1, 2, 2}, {}}, std::as_bytes(std::span(mask))};
  again.import_model(file.of({stored[0].ref(), stored[1].ref(), buffer}), {});
  keep::TensorRef other = buffer;
  other.name = "h.0.attn.mask";
  EXPECT_THROW(again.import_model(file.of({stored[0].ref(), stored[1].ref(), other}), {}),
               ConfigError);
}

// Names in other programs' files: wrappers in front, an outer module left out, a tied output.
TEST(Weights, NamesOfOtherPrograms) {
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "model-00001-of-00002.safetensors";
  plan::Variables variables;
  const std::vector<std::string> own = {"model.embed_tokens.weight", "model.norm.weight"};
  for (size_t i = 0; i < own.size(); ++i)
    variables.parameters.push_back({own[i], {DType::f32, {2}, {}}, 64 * i, {}});
  variables.parameter_bytes = variables.trained_bytes = 128;
  const std::vector<float> values = {1, 2, 3, 4}, others = {9, 9};
  const auto file_of = [&](const std::vector<std::string>& names) {
    std::vector<keep::TensorRef> tensors;
    for (size_t i = 0; i < names.size(); ++i)
      tensors.push_back(
          {names[i],
           {DType::f32, {2}, {}},
           std::as_bytes(std::span(i == 3 ? others : values)).subspan(i == 1 ? 8 : 0, 8)});
    keep::write_safetensors(path, tensors);
    return keep::SafetensorsFile(path);
  };
  const auto imported = [&](const std::vector<std::string>& names) {
    Weights weights(variables, 1);
    weights.import_model(file_of(names));
    const auto* const floats = reinterpret_cast<const float*>(weights.parameters());
    return std::vector<float>{floats[0], floats[1], floats[16], floats[17]};
  };
  for (const std::string front : {"", "module.", "_orig_mod.", "_forward_module.module."})
    for (const bool output : {false, true}) {
      std::vector<std::string> names = {front + own[0], front + own[1]};
      if (output) names.push_back("lm_head.weight");
      EXPECT_EQ(imported(names), values) << front;
    }
  // The output layer is within fewer wrappers: in nanoGPT's checkpoints, and where other models
  // contain a GPT2LMHeadModel.
  for (const std::string around : {"", "_orig_mod.", "module._orig_mod."}) {
    const std::string front = around + "transformer.";
    EXPECT_EQ(imported({front + own[0], front + own[1], around + "lm_head.weight"}), values);
    variables.parameters[1].name = "lm_head.weight";
    EXPECT_EQ(imported({front + own[0], around + "lm_head.weight"}), values) << "has one itself";
    variables.parameters[1].name = own[1];
  }
  EXPECT_EQ(imported({"embed_tokens.weight", "norm.weight"}), values);
  const auto expect = [&](const std::vector<std::string>& names,
                          const std::vector<std::string>& parts) {
    EXPECT_TRUE(throws<ConfigError>(parts, [&] { imported(names); }));
  };
  expect(
      {"module." + own[0], "module.norn.weight"},
      {"tensor 'model.norm.weight' (2) is missing",
       "'module.model.embed_tokens.weight', 'module.norn.weight'", "model.safetensors.index.json"});
  expect({"module." + own[0], own[1]}, {"'model.embed_tokens.weight' (2) is missing"});
  expect({own[0], own[1], "model.norm.weigth"},
         {"'model.norm.weigth' in the weights belongs to no layer",
          "did you mean 'model.norm.weight'"});
  expect({own[0], own[1], "x", "lm_head.weight"}, {"'x' in the weights"});
  expect({own[0], own[1], "module." + own[1]},
         {"'module.model.norm.weight' in the weights belongs to no layer",
          "'model.norm.weight' is there, too"});
  expect({"a.b." + own[0], "a.b." + own[1], "c.lm_head.weight"}, {"'c.lm_head.weight' in the"});
  variables.parameters[1].name = "lm_head.bias";
  expect({own[0], "lm_head.bias", "lm_head.weight", "lm_head.weight2"}, {"lm_head.weight2"});
}

TEST(Weights, ARankReadsTheStateThatItKeepsAndNothingElse) {
  const std::vector<float> ones(48, 1.0f);
  const TensorFile written;
  const keep::SafetensorsFile file =
      written.of({row_of("a.weight.momentum", std::span(ones).first(32)),
                  row_of("b.weight.momentum", std::span(ones).first(16))});
  const plan::Variables variables = two_parameters();
  const auto imported = [&](const std::vector<ArenaRange>& kept) {
    Weights weights(variables, 1);
    weights.import_state(file, kept);
    std::vector<float> state(48);
    std::memcpy(state.data(), weights.state(), 192);
    return state;
  };
  EXPECT_EQ(imported({{0, 192}}), ones);
  // Covers the end of a, and b up to its middle: shards divide parameters.
  std::vector<float> part(48, 0.0f);
  std::fill(part.begin() + 24, part.begin() + 40, 1.0f);
  EXPECT_EQ(imported({{96, 160}}), part);
  EXPECT_EQ(imported({{96, 128}, {128, 160}}), part);
  EXPECT_EQ(imported({}), std::vector<float>(48, 0.0f));
}

/// The trained parameters also have an average; c is frozen.
plan::Variables averaged_parameters() {
  plan::Variables variables = two_parameters();
  variables.parameters.push_back({"c.weight", {DType::f32, {16}, {}}, 192, {}});
  variables.parameter_bytes = 256;
  variables.state_kinds = {"momentum", "ema"};
  return variables;
}

TEST(Weights, AModelIsExportedWithItsAverageAndReadBackWithBoth) {
  const ScratchDirectory scratch;
  const plan::Variables variables = averaged_parameters();
  Weights weights(variables, 1);
  auto* const w = reinterpret_cast<float*>(weights.parameters());
  for (int i = 0; i < 64; ++i) w[i] = static_cast<float>(i);
  auto* const state = reinterpret_cast<float*>(weights.state());
  for (int i = 0; i < 48; ++i) state[i] = 100.0f + static_cast<float>(i);
  weights.begin_average(std::vector<ArenaRange>{{0, 64}, {128, 192}});  // its shards
  EXPECT_EQ(state[48 + 15], 15);
  EXPECT_EQ(state[48 + 16], 0);
  EXPECT_EQ(state[48 + 32], 32);
  weights.begin_average(std::vector<ArenaRange>{{0, 192}});
  EXPECT_EQ(std::memcmp(weights.average(), w, 192), 0);
  for (int i = 0; i < 48; ++i) state[48 + i] = 200.0f + static_cast<float>(i);
  std::vector<float> shown(w, w + 64);
  std::memcpy(shown.data(), weights.average(), 192);

  const auto written = [&](const char* name, const std::vector<keep::NamedTensor>& tensors) {
    std::vector<keep::TensorRef> refs;
    for (const keep::NamedTensor& tensor : tensors) refs.push_back(tensor.ref());
    keep::write_safetensors(scratch.path() / name, refs);
    return keep::SafetensorsFile(scratch.path() / name);
  };
  const keep::SafetensorsFile model =
      written("model", keep::materialise(weights.model_tensors(
                           reinterpret_cast<const std::byte*>(shown.data()), nullptr)));
  const keep::SafetensorsFile saved = written("state", keep::materialise(weights.state_tensors()));
  EXPECT_EQ(model.entries().size(), 3u);
  EXPECT_EQ(saved.entries().size(), 4u);  // momentum and raw values of trained parameters

  Weights again(variables, 1);
  const std::vector<ArenaRange> kept{{0, 192}};
  again.import_model(model);
  again.import_average(model, kept);
  again.import_raw(saved, true);
  EXPECT_EQ(again.import_state(saved, kept), std::vector<std::string>{});
  again.begin_average(kept);  // it exists already
  EXPECT_EQ(std::memcmp(again.parameters(), w, 256), 0);
  EXPECT_EQ(std::memcmp(again.state(), state, 2 * 192), 0);

  // c is trained from here on: it has no state yet.
  plan::Variables more = variables;
  more.trained_bytes = 256;
  Weights freed(more, 1);
  EXPECT_EQ(freed.import_state(saved, std::vector<ArenaRange>{{0, 256}}),
            std::vector<std::string>{"c.weight"});
}

TEST(Weights, AMissingValueBesideTheAverageIsAnError) {
  const std::vector<float> ones(32, 1.0f);
  const keep::TensorRef momentum = row_of("a.weight.momentum", ones);
  const TensorFile file;
  const keep::SafetensorsFile state = file.of({momentum, row_of("a.weight.raw", ones)});
  const plan::Variables variables = averaged_parameters();
  Weights weights(variables, 1);
  weights.import_raw(state, false);  // b was frozen
  EXPECT_EQ(*reinterpret_cast<const float*>(weights.parameters()), 1.0f);
  EXPECT_THROW(weights.import_raw(state, true), ConfigError);
  EXPECT_THROW(weights.import_raw(TensorFile().of({momentum}), false), ConfigError);
}

/// A freed parameter of Adam is named once, though it lacks two states.
TEST(Weights, AParameterWithoutItsStatesIsNamedOnce) {
  plan::Variables variables = two_parameters();
  variables.state_kinds = {"m", "v"};
  Weights weights(variables, 1);
  EXPECT_EQ(weights.import_state(TensorFile().of({}), std::vector<ArenaRange>{{0, 192}}),
            (std::vector<std::string>{"a.weight", "b.weight"}));
}

TEST(Weights, KeepsWhatIsExcepted) {
  const std::vector<float> ones(32, 1.0f);
  const TensorFile written;
  const keep::SafetensorsFile file =
      written.of({row_of("a.weight", ones), row_of("head.weight", std::span(ones).first(8))});
  const plan::Variables variables = two_parameters();
  Weights weights(variables, 1);
  const std::vector<std::string> except{"b.*", "head.*"};
  weights.import_model(file, except);
  const auto* const w = reinterpret_cast<const float*>(weights.parameters());
  EXPECT_EQ(w[31], 1.0f);
  EXPECT_EQ(w[32], 0.0f);
  EXPECT_THROW(weights.import_model(file, std::span(except).first(1)), ConfigError);
}

// As in a quantised model, whose scales are stored elsewhere.
TEST(Weights, WholeNumbersAreNoWeights) {
  const TensorFile file;
  const std::vector<float> ones(32, 1.0f);
  const auto bytes = std::as_bytes(std::span(ones));
  const keep::TensorRef a = row_of("a.weight", ones);
  const plan::Variables variables = two_parameters();
  Weights weights(variables, 1);
  for (const DType type : {DType::i32, DType::u8}) {
    const TensorDesc b{type, {16}, {}};
    EXPECT_TRUE(throws<IoError>({"'b.weight' holds whole numbers"}, [&] {
      weights.import_model(file.of({a, {"b.weight", b, bytes.first(b.bytes())}}));
    }));
  }
  // Counts beside them are not weights.
  weights.import_model(file.of({a,
                                row_of("b.weight", std::span(ones).first(16)),
                                {"bn.num_batches_tracked", {DType::i32, {}, {}}, bytes.first(4)}}));
}

TEST(Weights, GivenOnesMustBeFinite) {
  std::vector<float> values(32, 1.0f);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  const TensorFile file;
  (void)file.of({row_of("a.weight", values), row_of("b.weight", std::span(values).last(16))});
  const plan::Variables variables = two_parameters();
  Weights weights(variables, 1);
  EXPECT_TRUE(throws<NumericError>({"'a.weight' is not finite: the weights"}, [&] {
    read_given({.path = file.path.string(), .except = {}}, weights);
  }));
  const std::vector<std::string> except{"a.*"};
  Weights others(variables, 1);
  read_given({.path = file.path.string(), .except = except}, others);
}

TEST(Weights, SaysWhatIsMissing) {
  const plan::Variables variables = two_parameters();
  Weights weights(variables, 1);
  EXPECT_TRUE(
      throws<ConfigError>({"'a.weight'"}, [&] { weights.import_model(TensorFile().of({})); }));
}

}  // namespace
}  // namespace tutti::train
