// Tests CosmoFlow, DeepCAM, FC-DenseNet, VGG and transformers on plans of the CPU backend against
// the reference's.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/plan/rectifiers.h"
#include "tests/plan/science_step.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"

namespace tutti::test {
namespace {

/// Whether it is the gradient of a bias before a batch norm, which removes the mean again.
bool is_rounding(const keep::NamedTensor& gradient) {
  return std::ranges::all_of(numbers_of(gradient), [](double x) { return std::abs(x) < 1e-6; });
}

const plan::PlanOptions kPlain{.layout = "plain", .tile_bytes = size_t{1} << 40, .measure = false};

/// A network with its ReLUs unchanged, or decided by the reference beforehand.
struct Decided {
  std::string network;
  Rectifiers rectifiers = Rectifiers::relu;
  ScienceStep seen = {};

  ScienceNetwork cut(int64_t slabs = 1) const {
    return science_network(network, DType::f32, 2, {.slabs = slabs}, rectifiers);
  }
  ScienceStep run(const ScienceNetwork& made, const backend::Backend& backend,
                  const plan::PlanOptions& options) const {
    return run_step(made, backend, options,
                    {.held = rectifiers == Rectifiers::held ? &seen : nullptr});
  }
  bool flips() const { return rectifiers == Rectifiers::relu && !seen.seen.empty(); }
  /// Returns how much gradients may differ.
  double apart() const { return flips() ? kFlipped : 3e-3; }
};

/// Layouts with slow convolutions, the plain one anywhere and blocks of channels on some
/// processors, are used if a user asks for them or channels are few. One network shows that they
/// are right; SharedBlocks has the blocks of deepcam.
bool is_tried(const std::string& network, std::string_view layout) {
  const bool is_fast =
      layout == "last" || (layout == "b16c" && has_fast_blocks() && network != "deepcam");
  return is_fast || network == "fc-densenet";
}

std::vector<Decided> cases_of(const std::string& network) {
  Decided seen{network, Rectifiers::seen};
  const ScienceNetwork made = seen.cut();
  if (made.masks.empty()) return {Decided{network}};
  seen.seen = seen.run(made, backend::ReferenceBackend(), kPlain);
  return {{network, Rectifiers::relu, seen.seen}, {network, Rectifiers::held, seen.seen}};
}

void expect_near(const ScienceStep& got, const ScienceStep& want, double gradients,
                 const std::string& what) {
  EXPECT_NEAR(numbers_of(got.loss)[0], numbers_of(want.loss)[0], 1e-4) << what;
  EXPECT_LT(far(got.out, want.out), 1e-4) << what;
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (size_t i = 0; i < got.gradients.size(); ++i) {
    if (is_rounding(want.gradients[i])) continue;
    EXPECT_LT(far(got.gradients[i], want.gradients[i]), gradients)
        << want.gradients[i].name << " " << what;
  }
}

class Science : public testing::TestWithParam<const char*> {};

TEST_P(Science, CpuPlansAgreeWithTheReference) {
  for (const Decided& c : cases_of(GetParam())) {
    const ScienceStep want = c.run(c.cut(), backend::ReferenceBackend(), kPlain);
    for (const char* layout : {"b16c", "last"})
      if (is_tried(c.network, layout))
        expect_near(c.run(c.cut(), backend::CpuBackend(),
                          {.threads = 2, .layout = layout, .measure = false}),
                    want, c.apart(), fmt::format("{}, {}", layout, name_of(c.rectifiers)));
  }
}

struct Cut {
  int64_t slabs;
  const char* layout;
};
/// All layouts, and more than two slabs in the layout whose kernels are fast on every processor.
constexpr Cut kCuts[] = {{2, "plain"}, {2, "b16c"}, {2, "last"}, {4, "last"}};

TEST_P(Science, SlabsComputeTheSame) {
  for (const Decided& c : cases_of(GetParam())) {
    const ScienceStep want = c.run(c.cut(), backend::ReferenceBackend(), kPlain);
    for (const auto& [slabs, layout] : kCuts) {
      // Where something may flip, bounds are wide: the same network with held ReLUs tests more.
      if (!is_tried(c.network, layout) || (c.flips() && slabs != 4)) continue;
      expect_near(c.run(c.cut(slabs), backend::CpuBackend(),
                        {.threads = 2, .layout = layout, .tile_bytes = 1, .measure = false}),
                  want, c.apart(),
                  fmt::format("{} slabs, {}, {}", slabs, layout, name_of(c.rectifiers)));
    }
  }
}

/// Their rows come in pairs: they cannot be cut into single rows, so one thread would make all.
/// Eight rows are four slabs, whether there are two threads, eight or twelve.
TEST(Science, TransposedConvolutionsAreCutIntoSlabs) {
  for (const int threads : {2, 8, 12}) {
    const graph::Graph graph =
        science_network("deepcam", DType::f32, 1, {.threads = threads}).graph;
    int found = 0;
    for (const graph::Node& node : graph.nodes()) {
      if (node.op->name() != "conv_transpose") continue;
      ++found;
      const Shape& shape = graph.shape(node.out[0]);
      EXPECT_EQ(shape[0] % 2, 0) << node.name << ", " << threads << " threads";
    }
    EXPECT_EQ(found, 4);
  }
}

/// Backward needs the rows of a batch norm's result; both are computed again instead of kept.
TEST(Science, BatchNormsAreNotKeptForTheirRows) {
  const graph::Graph graph = science_network("deepcam", DType::f32, 1, {.threads = 2}).graph;
  int again = 0;
  for (const graph::Node& node : graph.nodes()) {
    if (node.op->name() != "gather_rows" || !node.name.ends_with(" again")) continue;
    const int producer = graph[node.in[0]].producer;
    if (producer < 0) continue;
    const graph::Node& made = graph.nodes()[static_cast<size_t>(producer)];
    if (made.op->name() == "batch_norm_apply" && made.name.ends_with(" again")) ++again;
  }
  EXPECT_GT(again, 10);
}

/// The gradient of the tied weight grows in the memory of the output layer's part; logits stay in
/// tiles.
TEST(Science, LogitsAndPartsOfATiedGradientAreNotStored) {
  const ScienceNetwork n = science_network("gpt2", DType::f32, 4);
  const plan::Plan plan = plan::compile(n.graph, backend::CpuBackend(),
                                        {.threads = 2, .layout = "last", .measure = false});
  const graph::Value logits = n.graph.find("lm_head"), part = n.graph.find("lm_head.dw");
  ASSERT_TRUE(logits.valid() && part.valid());
  EXPECT_EQ(plan.place(logits).base, plan::kTile);
  EXPECT_EQ(plan.place(part).base, plan::kGradients);
  for (const graph::Node& node : n.graph.nodes())
    if (node.op->name() == "lookup_grad") {
      EXPECT_EQ(plan.place(part).offset, plan.place(node.out[0]).offset);
    }
}

/// Parts of the gradient of a weight for source, target and output are not stored either.
TEST(Science, PartsOfAGradientOfThreeLayersAreNotStored) {
  const ScienceNetwork n = science_network("transformer", DType::f32, 4);
  const plan::Plan plan = plan::compile(n.graph, backend::CpuBackend(),
                                        {.threads = 2, .layout = "last", .measure = false});
  const graph::Value part = n.graph.find("lm_head.dw");
  ASSERT_TRUE(part.valid());
  EXPECT_EQ(plan.place(part).base, plan::kGradients);
  int lookups = 0;
  for (const graph::Node& node : n.graph.nodes()) {
    if (node.op->name() != "lookup_grad") continue;
    ++lookups;
    EXPECT_EQ(plan.place(part).offset, plan.place(node.out[0]).offset);
    EXPECT_EQ(plan.desc(part).layout, plan.desc(node.out[0]).layout);
  }
  EXPECT_EQ(lookups, 2);
}

/// Results of a depthwise convolution for the pointwise one behind it are not kept either.
TEST(Science, DepthwiseResultsAreNotKept) {
  const graph::Graph graph = science_network("deepcam", DType::f32, 1, {.threads = 2}).graph;
  int forward = 0, again = 0;
  for (const graph::Node& node : graph.nodes()) {
    if (node.op->name() != "conv" || graph.shape(node.in[1])[1] != 1) continue;
    node.name.ends_with(" again") ? ++again : ++forward;
  }
  EXPECT_GT(forward, 10);
  EXPECT_EQ(again, forward);
}

INSTANTIATE_TEST_SUITE_P(Networks, Science,
                         testing::Values("cosmoflow2", "deepcam", "fc-densenet", "vgg", "gpt2",
                                         "llama", "transformer", "vit", "sequence",
                                         "sequence-samples"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tutti::test
