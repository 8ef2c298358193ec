#include "tutti/train/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

/// Two parameters of 32 and 16 floats, one after the other, each with a momentum.
Variables two_parameters() {
  Variables variables;
  variables.parameters = {{"a.weight", {DType::f32, {32}, {}}, 0, {}},
                          {"b.weight", {DType::f32, {16}, {}}, 128, {}}};
  variables.state_kinds = {"momentum"};
  variables.parameter_bytes = variables.trained_bytes = 192;
  return variables;
}

TEST(Weights, ARankReadsTheStateThatItKeepsAndNothingElse) {
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "weights.safetensors";
  std::vector<float> ones(48, 1.0f);
  const auto bytes = std::as_bytes(std::span(ones));
  const std::vector<TensorRef> tensors = {
      {"a.weight.momentum", {DType::f32, {32}, {}}, bytes.first(128)},
      {"b.weight.momentum", {DType::f32, {16}, {}}, bytes.first(64)}};
  write_safetensors(path, tensors);
  const SafetensorsFile file(path);
  const Variables variables = two_parameters();
  const auto imported = [&](const std::vector<ArenaRange>& kept) {
    Weights weights(variables, 1);
    weights.import_state(file, kept);
    std::vector<float> state(48);
    std::memcpy(state.data(), weights.state(), 192);
    return state;
  };
  EXPECT_EQ(imported({{0, 192}}), ones);
  // The end of a, and b up to its middle: shards cut parameters.
  std::vector<float> part(48, 0.0f);
  std::fill(part.begin() + 24, part.begin() + 40, 1.0f);
  EXPECT_EQ(imported({{96, 160}}), part);
  EXPECT_EQ(imported({{96, 128}, {128, 160}}), part);
  EXPECT_EQ(imported({}), std::vector<float>(48, 0.0f));
}

TEST(Weights, SaysWhatIsMissing) {
  const ScratchDirectory scratch;
  const std::filesystem::path path = scratch.path() / "weights.safetensors";
  write_safetensors(path, {});
  const Variables variables = two_parameters();
  Weights weights(variables, 1);
  try {
    weights.import_model(SafetensorsFile(path));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("'a.weight'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tutti
