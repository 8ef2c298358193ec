#include "tutti/train/network/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/expect_text.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::train {
namespace {

models::ModelSpec odd_images() { return {.name = "resnet8", .input = {3, 13, 8}, .width = 8}; }

/// Returns the measured choices that each rank's plan uses.
std::vector<std::string> choices_of_ranks(int ranks, const std::vector<int64_t>& spatial,
                                          const plan::PlanOptions& options) {
  std::vector<std::string> used(static_cast<size_t>(ranks));
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    const backend::CpuBackend backend;
    split::SplitSettings split;
    split.grid = split::PartGrid(spatial, 1, ranks, communicator.rank());
    const auto network = compile_evaluation(odd_images(), split, backend, communicator, options);
    used[static_cast<size_t>(communicator.rank())] =
        network->plan.options.choices.used().to_string();
  });
  return used;
}

/// A processor that has only reference loops for convolutions.
class WithoutFastConvolutions : public backend::Backend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::vector<backend::KernelCandidate> candidates(
      const backend::KernelRequest& request) const override {
    std::vector<backend::KernelCandidate> list = cpu_.candidates(request);
    if (request.op->name().starts_with("conv"))
      for (backend::KernelCandidate& candidate : list) candidate.speed = backend::KernelSpeed::slow;
    return list;
  }
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override {
    return cpu_.activation_layouts(shape, dtype);
  }
  size_t tile_bytes() const override { return cpu_.tile_bytes(); }

 private:
  backend::CpuBackend cpu_;
};

/// Returns the lines of `some` that `all` lacks.
std::string missing(const std::string& some, const std::string& all) {
  std::istringstream lines(some);
  std::string lacking;
  for (std::string line; std::getline(lines, line);)
    if (all.find(line + '\n') == all.npos) lacking += line + '\n';
  return lacking;
}

/// Parts with 6 and 7 rows pose different problems, which no rank may decide alone.
TEST(EvaluationNetwork, Rank0ChoosesForPartsOfOtherHeights) {
  const std::vector<std::string> used = choices_of_ranks(4, {2}, {});
  EXPECT_NE(missing(used[1], ""), "");
  for (const std::string& of_rank : used) EXPECT_EQ(missing(of_rank, used[0]), "");
}

/// The choices for training's layouts apply, on all ranks.
TEST(EvaluationNetwork, AllRanksTakeWhatTrainingHasChosen) {
  std::string trained;
  comm::run_ranks(1, [&](comm::Communicator& communicator) {
    NetworkSpec spec;
    spec.training.model = odd_images();
    trained = compile_network(spec, backend::CpuBackend(), communicator)
                  ->training.options.choices.to_string();
  });
  plan::PlanOptions options;
  options.choices = plan::Choices::parse(trained);
  options.choices.make_advice_of_training();
  const std::vector<std::string> used = choices_of_ranks(2, {}, options);
  EXPECT_NE(used[1], "");
  EXPECT_EQ(missing(used[1], used[0]), "");
}

TEST(Network, ReferenceLoopsAreAWarningThatSaysWhichStepsAndTheWayOut) {
  NetworkSpec spec;
  spec.training.model = odd_images();
  spec.plan.measure = false;
  const auto line_of = [&](const backend::Backend& backend, config::ActivationLayout layout) {
    spec.plan.layout = layout;
    std::string plan;
    testing::internal::CaptureStderr();
    comm::run_ranks(2, [&](comm::Communicator& communicator) {
      const auto network = compile_network(spec, backend, communicator);
      if (communicator.rank() == 0) plan = network->training.to_string();
    });
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(plan.find("(reference loops)") == plan.npos, text.empty()) << plan;
    return text;
  };
  EXPECT_FALSE(
      has_text(line_of(backend::CpuBackend(), config::ActivationLayout::last), "reference loops"));
  const std::string asked = line_of(WithoutFastConvolutions(), config::ActivationLayout::plain);
  const size_t at =
      asked.find("steps in layout plain run reference loops, 10 to 100 times as slow");
  ASSERT_NE(at, std::string::npos) << asked;
  EXPECT_EQ(asked.find("reference loops", at + 30), std::string::npos) << "once: " << asked;
  EXPECT_TRUE(has_text(asked, "for speed: conv1 ("));
  EXPECT_TRUE(has_text(asked, " more; leave plan.layout out"));
  EXPECT_FALSE(has_text(line_of(WithoutFastConvolutions(), config::ActivationLayout::automatic),
                        "leave plan.layout out"));
}

/// Every tile reads all weights once: where a layer's weights exceed the cache, tiles are as large
/// as the weights, unless a size was requested.
TEST(Network, TilesGoByTheWeightsUnlessASizeWasAskedFor) {
  const auto largest_tile = [](size_t tile_bytes) {
    NetworkSpec spec;
    spec.training.model = {
        .name = "mlp", .input = {1, 16, 16}, .batch = 128, .hidden = {1024, 1024}};
    spec.training.split.tile_bytes = tile_bytes;
    spec.plan.measure = false;
    int64_t largest = 0;
    comm::run_ranks(1, [&](comm::Communicator& communicator) {
      const auto network = compile_network(spec, backend::CpuBackend(), communicator);
      for (const plan::PlanBand& band : network->training.bands)
        largest = std::max(largest, band.tile);
    });
    return largest;
  };
  EXPECT_EQ(largest_tile(0), 128);
  EXPECT_LT(largest_tile(size_t{1} << 16), 128);
}

}  // namespace
}  // namespace tutti::train
