// Kernels of a device's libraries in a plan: a stand-in for the libraries shows that training takes
// them, that they are tried before, and that what came out is kept.

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/plan/device_training.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/device/emulated/stand_in_libraries.h"

namespace tutti::test {
namespace {

using device::LibraryWay, device::StandInLibraries, plan::Choices, plan::Plan;

/// An emulated device with libraries that offer these ways; none: it has no libraries.
struct WithLibraries {
  backend::CpuBackend host;
  std::unique_ptr<device::EmulatedDevice> device;
  StandInLibraries* libraries = nullptr;
  std::unique_ptr<GpuBackend> backend;

  explicit WithLibraries(std::vector<LibraryWay> ways, const std::string& versions = "stand-in 1.0",
                         uint64_t seed = 1)
      : device(
            device::make_emulated_device({.seed = seed, .functions = backend::own_functions()})) {
    if (!ways.empty()) {
      auto made = std::make_unique<StandInLibraries>(std::move(ways), versions);
      libraries = made.get();
      device->set_libraries(std::move(made));
    }
    backend = std::make_unique<GpuBackend>(*device, host, GpuKernels::own_only);
  }
};

std::vector<LibraryWay> ways(const std::vector<std::string>& names) {
  std::vector<LibraryWay> made;
  for (const std::string& name : names) made.push_back({.name = name, .refusal = {}});
  return made;
}

train::TrainingGraph resnet8(DType activations) {
  train::TrainingGraphSpec spec;
  spec.model = {.name = "resnet8",
                .input = {3, 8, 8},
                .batch = kBatch,
                .classes = kClasses,
                .width = 4,
                .activations = activations};
  spec.optimizer = kMomentum;
  return train::make_training_graph(spec);
}

bool is_product(const plan::Step& step) {
  const std::string_view op = step.request.op->name();
  return (op.starts_with("conv") || op.starts_with("dense"));
}

/// Returns how many products each kernel computes.
std::map<std::string, int> kernels_of_products(const Plan& plan) {
  std::map<std::string, int> kernels;
  for (const plan::PlanBand& band : plan.bands)
    for (const plan::Step& step : band.steps)
      if (is_product(step)) ++kernels[step.kernel];
  return kernels;
}

Plan compiled(const train::TrainingGraph& training, const WithLibraries& with,
              const std::string& choices = {}) {
  plan::PlanOptions options = whole_batch();
  options.choices = Choices::parse(choices);
  return plan::compile(training.graph, *with.backend, options);
}

class DeviceLibrary : public testing::TestWithParam<DType> {};

TEST_P(DeviceLibrary, TrainsAsThePlainKernelsUnderEverySeed) {
  for (const bool residual : {false, true}) {
    const train::TrainingGraph training =
        residual ? resnet8(GetParam()) : lenet_with_norm(GetParam(), kMomentum);
    const WithLibraries without({});
    Training plain(training, *without.backend);
    plain.steps();
    std::optional<Trained> first;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const WithLibraries with(ways({"stand_in:1"}), "stand-in 1.0", seed);
      Training trained(training, *with.backend);
      for (const auto& [kernel, steps] : kernels_of_products(trained.plan))
        EXPECT_TRUE(kernel.starts_with("stand_in:1")) << kernel;
      trained.steps();
      trained.executor->settle();
      const Trained got(trained);
      for (size_t step = 0; step < got.losses.size(); ++step)
        EXPECT_NEAR(got.losses[step], plain.losses[step], GetParam() == DType::f32 ? 1e-4f : 5e-2f)
            << "step " << step;
      if (!first) first = got;
      expect_same(got, *first);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceLibrary, testing::Values(DType::f32, DType::bf16),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(DeviceLibraryPlan, WaysThatFailTheirTrialAreRefusedAndTheNextIsTaken) {
  std::vector<LibraryWay> offered{{.name = "large", .refusal = {}, .workspace_bytes = 1 << 30},
                                  {.name = {}, .refusal = {}},
                                  {.name = "engine", .refusal = "not deterministic"}};
  for (const LibraryWay& way : ways({"wrong", "restless", "failing", "right", "next"}))
    offered.push_back(way);
  const WithLibraries with(offered);
  const Plan plan = compiled(resnet8(DType::f32), with);
  const std::map<std::string, int> kernels = kernels_of_products(plan);
  EXPECT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels.at("right"), 20);
  EXPECT_EQ(kernels.at("right dense"), 3);
  const std::string text = plan.to_string(true);
  for (const char* line :
       {"not large: it needs 1024.0 MiB of workspace, 256.0 MiB are allowed",
        "not library: it has no name under which the choice could be recorded",
        "not engine: not deterministic", "not wrong: differs from gpu:products by ",
        "not restless: its results are not the same bits when it runs again",
        "not failing: stand-in: it cannot be put", "not next: slower, or not first",
        "tried on emulated GPU, stand-in 1.0: wrong: differs from gpu:products by "})
    EXPECT_TRUE(has_text(text, line)) << line;
  EXPECT_EQ(plan.to_string().find("differs from"), std::string::npos) << "it is part of the hash";
}

/// A resume neither measures nor compares, and one whose libraries were all refused doesn't either.
TEST(DeviceLibraryPlan, AResumeTriesNothingAgain) {
  const train::TrainingGraph training = resnet8(DType::bf16);
  for (const auto& names : {std::vector<std::string>{"wrong", "right"}, {"wrong", "restless"}}) {
    const WithLibraries before(ways(names)), after(ways(names));
    const Plan first = compiled(training, before);
    EXPECT_FALSE(before.libraries->puts().empty());
    const std::string choices = first.options.choices.used().to_string();
    EXPECT_TRUE(has_text(choices, "\temulated GPU, stand-in 1.0: wrong: differs from"));
    EXPECT_TRUE(Choices::begin(choices));
    const Plan resumed = compiled(training, after, choices);
    EXPECT_TRUE(after.libraries->puts().empty());
    EXPECT_EQ(resumed.to_string(), first.to_string());
    EXPECT_EQ(resumed.options.choices.used().to_string(), choices);
    EXPECT_TRUE(has_text(resumed.to_string(true), "tried on emulated GPU, stand-in 1.0: "));
  }
}

TEST(DeviceLibraryPlan, ChoicesOfOtherVersionsAreMadeAnew) {
  const train::TrainingGraph training = resnet8(DType::f32);
  const std::string choices =
      compiled(training, WithLibraries(ways({"a", "b"}))).options.choices.used().to_string();
  const WithLibraries later(ways({"b", "c"}), "stand-in 2.0");
  const Plan anew = compiled(training, later, choices);
  EXPECT_TRUE(kernels_of_products(anew).contains("b"));
  EXPECT_FALSE(later.libraries->puts().empty());
  const std::string made = anew.options.choices.used().to_string();
  EXPECT_TRUE(has_text(made, "stand-in 2.0"));
  EXPECT_FALSE(has_text(made, "stand-in 1.0"));
  const Plan without = compiled(training, WithLibraries({}), choices);
  EXPECT_EQ(kernels_of_products(without).size(), 1u);
  EXPECT_FALSE(has_text(without.to_string(true), "tried on"));
  // With the same versions a way that is gone is a loss.
  const WithLibraries gone(ways({"b", "c"}));
  EXPECT_TRUE(throws<ConfigError>({"the recorded kernel 'a", "is not available here"},
                                  [&] { compiled(training, gone, choices); }));
}

}  // namespace
}  // namespace tutti::test
