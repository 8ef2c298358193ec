#include "tutti/models/network/fc_densenet.h"

#include <gtest/gtest.h>

#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

/// The published count includes the running means and deviations.
int64_t with_statistics(const Graph& graph) {
  int64_t count = graph.parameter_count();
  for (const Value v : graph.with_role(graph::Role::statistic)) count += graph.shape(v).elements();
  return count;
}

ModelGraph of_camvid(const char* name) { return build_model({.name = name}); }

/// A separate program counted these from the paper's tables, which give 1.5, 3.5 and 9.4 millions.
TEST(FcDenseNet, HasTheParametersOfThePublishedOnes) {
  EXPECT_EQ(of_camvid("fc-densenet56").graph.parameter_count(), 1'376'795);
  EXPECT_EQ(of_camvid("fc-densenet67").graph.parameter_count(), 3'463'243);
  EXPECT_EQ(of_camvid("fc-densenet103").graph.parameter_count(), 9'322'091);
  EXPECT_EQ(with_statistics(of_camvid("fc-densenet56").graph), 1'397'963);
  EXPECT_EQ(with_statistics(of_camvid("fc-densenet67").graph), 3'502'923);
  EXPECT_EQ(with_statistics(of_camvid("fc-densenet103").graph), 9'425'163);
}

TEST(FcDenseNet, GivesAsManyPositionsAsTheImageHas) {
  const ModelGraph m = build_model({.name = "fc-densenet56",
                                    .task = TaskKind::regress,
                                    .input = {1, 64, 96},
                                    .batch = 2,
                                    .classes = 1});
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{2, 1, 64, 96}));
  EXPECT_EQ(m.graph.shape(m.targets[0].value), (Shape{2, 1, 64, 96}));
  // The paper's table 2: 656 maps reach the bottleneck of FC-DenseNet103 and 256 leave it.
  const ModelGraph large = of_camvid("fc-densenet103");
  EXPECT_EQ(large.graph.shape("transDownBlocks.4.maxpool")[1], 656);
  EXPECT_EQ(large.graph.shape("transUpBlocks.0.cat")[1], 240 + 656);
  EXPECT_EQ(large.graph.shape("finalConv.weight")[1], 256);
}

TEST(FcDenseNet, RefusesImagesThatDoNotHalve) {
  for (const Shape& input : {Shape{1, 64, 72}, Shape{1, 16, 64}})
    EXPECT_THROW(build_model({.name = "fc-densenet56", .input = input}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
