#include "tutti/plan/recompute.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tutti/ops/builder.h"
#include "tutti/plan/result_places.h"

namespace tutti::plan {
namespace {

constexpr size_t kImage = 8 * 16 * 4 * 4 * sizeof(float);  // bytes of a batch

void describe_values(Plan& plan) {
  plan.descs = graph::PerValue<TensorDesc>(plan.graph);
  for (size_t v = 0; v < plan.graph.values().size(); ++v)
    plan.descs[graph::Value{static_cast<int32_t>(v)}] = plan.graph.values()[v].type.desc;
}

/// A network whose layers' results are read again in reverse order, each node in a band of its own.
class ThereAndBack {
 public:
  explicit ThereAndBack(int layers) {
    graph::Graph& graph = plan_.graph;
    graph::Value x = graph.input("x", {DType::f32, Shape{8, 16, 4, 4}, {}});
    std::vector<graph::Value> there;
    for (int i = 0; i < layers; ++i)
      there.push_back(x = ops::conv(graph, fmt::format("there{}", i), x, {.out_channels = 16}));
    for (int i = layers; i-- > 0;)
      x = ops::add(graph, fmt::format("back{}", i), x, there[static_cast<size_t>(i)]);
    graph.mark_output(x);
    describe_values(plan_);
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const auto band = static_cast<int>(n);
      schedule_.bands.push_back({.nodes = {band}, .samples = 8, .starts = {}, .waits = {}});
      schedule_.band_of.push_back(band);
      schedule_.order.push_back(band);
    }
  }
  size_t peak(const std::vector<BandAgain>& again) const {
    return arena_peak(stored_lifetimes(plan_, with_bands_again(schedule_, again))).bytes;
  }
  BandsAgain recompute(size_t limit) const { return recompute_results(plan_, schedule_, limit); }
  const Plan& plan() const { return plan_; }
  const Schedule& schedule() const { return schedule_; }

 private:
  Plan plan_;
  Schedule schedule_;
};

TEST(Recompute, BandsThatComputeAgainStandBeforeThoseThatRead) {
  const ThereAndBack network(3);  // bands 0 to 2 forward, 3 to 5 back
  const Schedule longer = with_bands_again(network.schedule(), std::vector<BandAgain>{{5, 0, {0}}});
  ASSERT_EQ(longer.bands.size(), 7u);
  EXPECT_EQ(longer.bands[5].repeats, 0);
  EXPECT_EQ(longer.bands[5].nodes, std::vector<int>{0});
  EXPECT_EQ(longer.bands[5].samples, 8);
  EXPECT_EQ(longer.band_of, (std::vector<int>{0, 1, 2, 3, 4, 6}));
  EXPECT_EQ(longer.order[0], 0) << "the first time";
}

/// there0 is read by there1 and by back0, the last band.
TEST(Recompute, WhatIsMadeAgainLendsItsMemory) {
  const ThereAndBack network(3);
  const std::vector<Lifetime> lifetimes = stored_lifetimes(
      network.plan(), with_bands_again(network.schedule(), std::vector<BandAgain>{{5, 0, {0}}}));
  EXPECT_EQ(lifetimes[0].when, (std::vector<Moments>{{0, 1}, {5, 6}}));
  EXPECT_LT(network.peak({{5, 0, {0}}}), network.peak({}));
}

TEST(Recompute, AsMuchAsFitsIsKept) {
  const ThereAndBack network(6);
  const size_t all = network.peak({});
  EXPECT_TRUE(network.recompute(all).bands.empty());
  double flop = 0;
  for (size_t less = kImage; less <= 2 * kImage; less += kImage) {
    const BandsAgain again = network.recompute(all - less);
    EXPECT_LE(network.peak(again.bands), all - less);
    EXPECT_GT(again.flop, flop);
    flop = again.flop;
    EXPECT_EQ(static_cast<size_t>(again.results), again.bands.size()) << "one result a band";
  }
}

/// Each result is computed once: a layer that is present already is not run again for the next one.
TEST(Recompute, WhereItCannotFitItIsAsSmallAsCanBe) {
  const ThereAndBack network(8);
  const BandsAgain again = network.recompute(0);
  const size_t least = network.peak(again.bands);
  EXPECT_LT(least, network.peak({}) * 3 / 4);
  EXPECT_LE(again.results, 8);
  EXPECT_EQ(network.peak(network.recompute(least).bands), least);
}

/// A batch norm's moments are sums over the batch, and they change the running ones.
TEST(Recompute, StatisticsAreTakenOnce) {
  Plan plan;
  graph::Graph& graph = plan.graph;
  graph::Value x = graph.input("x", {DType::f32, Shape{8, 16, 4, 4}, {}});
  std::vector<graph::Value> there;
  for (int i = 0; i < 6; ++i) {
    x = ops::conv(graph, fmt::format("conv{}", i), x, {.out_channels = 16});
    there.push_back(x);
    x = ops::batch_norm(graph, fmt::format("bn{}", i), x, ops::Mode::train);
  }
  for (int i = 6; i-- > 0;) {  // as in a backward pass, each needs a sum over the one before
    x = ops::add(graph, fmt::format("back{}", i), x, there[static_cast<size_t>(i)]);
    x = ops::batch_norm(graph, fmt::format("back{}.bn", i), x, ops::Mode::train);
  }
  graph.mark_output(x);
  describe_values(plan);
  const Schedule schedule = make_schedule(graph);
  const BandsAgain again = recompute_results(plan, schedule, 0);
  EXPECT_GT(again.results, 0);
  for (const BandAgain& band : again.bands)
    for (const int n : band.nodes)
      EXPECT_NE(graph.nodes()[static_cast<size_t>(n)].op->name(), "batch_norm_stats");
}

/// t stays in one band; z, and y in t's memory, leave that band for different readers.
class TwoWaysOut {
 public:
  explicit TwoWaysOut(bool longer) {
    graph::Graph& graph = plan_.graph;
    const graph::Value x = graph.input("x", {DType::f32, Shape{8, 16, 4, 4}, {}});
    const graph::Value t = ops::conv(graph, "t", x, {.out_channels = 16});
    const graph::Value z = ops::scale(graph, "z", t, 2);
    graph::Value y = ops::relu(graph, "y0", t);
    if (longer) y = ops::relu(graph, "y1", y);
    const int last = static_cast<int>(graph.nodes().size());
    const graph::Value w = ops::conv(graph, "w", y, {.out_channels = 16});
    graph.mark_output(ops::add(graph, "v", w, z));
    describe_values(plan_);
    const auto add_band = [&](int begin, int end) {
      Band& band =
          schedule_.bands.emplace_back(Band{.nodes = {}, .samples = 8, .starts = {}, .waits = {}});
      for (int n = begin; n < end; ++n) {
        band.nodes.push_back(n);
        schedule_.band_of.push_back(static_cast<int>(schedule_.bands.size()) - 1);
        schedule_.order.push_back(n);
      }
    };
    add_band(0, last);
    add_band(last, last + 1);
    add_band(last + 1, last + 2);
    plan_.bands.resize(4);
    t_ = t, y_ = y;
  }
  /// Whether y takes over t's memory if these nodes of the first band are run again before the last
  /// one.
  bool shares(const std::vector<int>& again) const {
    std::vector<BandAgain> bands;
    if (!again.empty()) bands.push_back({2, 0, again});
    Place t, y;
    for (const auto& [value, place] :
         place_results(plan_, with_bands_again(schedule_, bands)).places) {
      if (value == t_) t = place;
      if (value == y_) y = place;
    }
    EXPECT_EQ(y.base, kArena);
    return t.base == kArena && t.offset == y.offset;
  }

 private:
  Plan plan_;
  Schedule schedule_;
  graph::Value t_, y_;
};

/// Running z again would write over y, or over its successor in that memory.
TEST(Recompute, WhoMakesATileAgainWithoutItsHeirWritesIntoATile) {
  const TwoWaysOut network(false);
  EXPECT_TRUE(network.shares({}));
  EXPECT_FALSE(network.shares({0, 1})) << "z alone";
  EXPECT_TRUE(network.shares({0, 1, 2})) << "both";
}

TEST(Recompute, NorIntoTheArenaByWayOfAnotherTile) {
  const TwoWaysOut network(true);
  EXPECT_TRUE(network.shares({}));
  EXPECT_FALSE(network.shares({0, 1}));
  EXPECT_FALSE(network.shares({0, 1, 2}));
  EXPECT_TRUE(network.shares({0, 1, 2, 3}));
}

}  // namespace
}  // namespace tutti::plan
