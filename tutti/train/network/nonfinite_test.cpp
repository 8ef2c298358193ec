#include "tutti/train/network/nonfinite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/plan/plan.h"
#include "tutti/train/network/training_graph.h"

namespace tutti::train {
namespace {

TEST(NonfiniteGradient, IsNamedByParameterAndElement) {
  plan::Variables variables;
  variables.parameters = {
      {.name = "fc.weight", .desc = {DType::f32, {10, 500}, {}}, .offset = 0, .init = {}},
      {.name = "conv.weight", .desc = {DType::f32, {7, 3}, {}}, .offset = 20032, .init = {}}};
  const exchange::Bucket whole{.name = "bucket 0", .begin = 0, .bytes = 20160, .members = {0, 1}};
  const exchange::Bucket second{.name = "bucket 1", .begin = 20032, .bytes = 128, .members = {1}};
  std::vector<float> arena(20160 / 4, 0.0f);
  SharedWork work;
  for (size_t i = 0; i < arena.size(); ++i)
    arena[i] =
        i % 2 == 0 ? std::numeric_limits<float>::max() : -std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work), "");

  for (const float bad : {std::nanf(""), -std::nanf("1"), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    arena[5008 + 20] = bad;
    EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    EXPECT_EQ(nonfinite_gradient(variables, second, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    arena[4999] = bad;
    EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
              "the gradient of 'fc.weight' is not finite (element 4999 of 5000)");
    EXPECT_EQ(nonfinite_gradient(variables, second, arena.data(), work),
              "the gradient of 'conv.weight' is not finite (element 20 of 21)");
    arena[4999] = arena[5008 + 20] = 0;
  }
  arena[5001] = std::nanf("");
  EXPECT_EQ(nonfinite_gradient(variables, whole, arena.data(), work),
            "the gradient in bucket 0 is not finite between its parameters");
}

std::string blamed_of_a_finite_pass(models::ModelSpec model) {
  const backend::CpuBackend backend;
  const plan::Plan plan =
      plan::compile(make_training_graph({.model = model}).graph, backend, {.measure = false});
  const Weights weights(plan.variables, 1);
  const std::vector<float> image(static_cast<size_t>(model.batch * model.input.elements()));
  const std::vector<void*> tensors{const_cast<float*>(image.data())};
  const TensorDesc desc{
      DType::f32, Shape{model.batch, model.input[0], model.input[1], model.input[2]}, {}};
  return first_nonfinite({.model = std::move(model),
                          .weights = &weights,
                          .batch = {{"image", desc}},
                          .tensors = tensors,
                          .layout = plan.layout},
                         backend);
}

TEST(FirstNonfinite, BlamesStatisticsOfTheBatchWhereALayerTakesThem) {
  EXPECT_EQ(blamed_of_a_finite_pass(
                {.name = "mlp", .input = {1, 4, 4}, .batch = 2, .classes = 4, .hidden = {4}}),
            "every layer's output is finite: the loss overflows");
  EXPECT_EQ(blamed_of_a_finite_pass(
                {.name = "resnet8", .input = {1, 8, 8}, .batch = 2, .classes = 4, .width = 4}),
            "every layer's output is finite with running statistics: the batch's own statistics "
            "or the loss overflow");
}

}  // namespace
}  // namespace tutti::train
