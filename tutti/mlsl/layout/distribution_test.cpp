#include "tutti/mlsl/layout/distribution.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::mlsl::layout {
namespace {

using Ranks = std::vector<int>;
constexpr GroupKind kData = GroupKind::data;
constexpr GroupKind kModel = GroupKind::model;
constexpr GroupKind kGlobal = GroupKind::global;

TEST(Distribution, TwoReplicasOfTwoByTwo) {
  const Distribution d(8, {.data = 2, .model = 2});
  EXPECT_EQ(d.world(), 8);
  EXPECT_EQ(d.parts(kData), 2);
  EXPECT_EQ(d.parts(kModel), 2);
  EXPECT_EQ(d.parts(kGlobal), 8);
  EXPECT_EQ(d.group(kModel, 0), (Ranks{0, 1}));
  EXPECT_EQ(d.group(kModel, 7), (Ranks{6, 7}));
  EXPECT_EQ(d.group(kData, 3), (Ranks{1, 3}));
  EXPECT_EQ(d.group(kData, 4), (Ranks{4, 6})) << "replicas do not mix";
  EXPECT_EQ(d.group(kGlobal, 5), (Ranks{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(d.index(kGlobal, 5), 5);
  for (int rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(d.replica(rank), rank / 4);
    EXPECT_EQ(d.index(kData, rank), rank % 4 / 2);
    EXPECT_EQ(d.index(kModel, rank), rank % 2);
  }
}

TEST(Distribution, EveryRankIsInItsGroupsAtItsIndex) {
  for (int world : {1, 2, 3, 6, 8, 12})
    for (int data = 1; data <= world; ++data)
      for (int model = 1; data * model <= world; ++model) {
        if (world % (data * model) != 0) continue;
        const Distribution d(world, {data, model});
        EXPECT_EQ(d.parts(kData), data);
        EXPECT_EQ(d.parts(kModel), model);
        for (int rank = 0; rank < world; ++rank) {
          const int size = data * model;
          EXPECT_EQ(rank,
                    d.replica(rank) * size + d.index(kData, rank) * model + d.index(kModel, rank))
              << d.to_string();
          for (GroupKind kind : {kData, kModel, kGlobal}) {
            const Ranks& group = d.group(kind, rank);
            EXPECT_EQ(group.at(static_cast<size_t>(d.index(kind, rank))), rank);
            EXPECT_EQ(group.size(), static_cast<size_t>(d.parts(kind)));
            for (int other : group) EXPECT_EQ(d.colour(kind, other), d.colour(kind, rank));
          }
        }
      }
}

TEST(Distribution, PartsMustDivideTheWorld) {
  for (const Parts parts : {Parts{3, 1}, Parts{1, 3}, Parts{4, 2}, Parts{0, 1}, Parts{1, 0},
                            Parts{-2, -2}, Parts{8, 1}, Parts{1 << 30, 4}})
    EXPECT_THROW(Distribution(4, parts), ConfigError) << parts.data << " x " << parts.model;
  EXPECT_THROW(Distribution(0, {1, 1}), ConfigError);
}

TEST(Distribution, ColoursMakeTheSameGroups) {
  std::vector<Colours> colours;
  for (int rank = 0; rank < 8; ++rank)
    colours.push_back({.data = 100 - rank % 4, .model = rank / 4});
  const Distribution d(colours);
  EXPECT_EQ(d, Distribution(8, {.data = 2, .model = 4})) << "the colours' values do not matter";
  EXPECT_NE(d, Distribution(8, {.data = 4, .model = 2}));
  EXPECT_EQ(d.to_string(), "2 data x 4 model parts of 8 ranks");
}

TEST(Distribution, ReplicasOfColours) {
  // Data groups at a stride of 2, no model parts: the replicas are the even and the odd ranks,
  // unlike in Distribution(4, {2, 1}).
  const std::vector<Colours> colours{{0, 0}, {1, 1}, {0, 2}, {1, 3}};
  const Distribution d(colours);
  EXPECT_NE(d, Distribution(4, {.data = 2, .model = 1}));
  EXPECT_EQ(d.parts(kData), 2);
  EXPECT_EQ(d.parts(kModel), 1);
  EXPECT_EQ(d.group(kData, 3), (Ranks{1, 3}));
  EXPECT_EQ((Ranks{d.replica(0), d.replica(1), d.replica(2), d.replica(3)}), (Ranks{0, 1, 0, 1}));
  EXPECT_EQ(d.to_string(), "data groups [[0, 2], [1, 3]] and model groups [[0], [1], [2], [3]]");
}

TEST(Distribution, ColoursWithoutAGridMakeGroupsButHoldNoLayers) {
  const std::vector<std::vector<Colours>> no_grids{
      {{0, 0}, {0, 0}, {0, 0}, {0, 0}},  // two ranks share samples and kernels
      {{0, 0}, {0, 1}, {0, 2}, {1, 3}},  // data groups of 3 and 1
      {{0, 0}, {1, 0}, {2, 0}, {3, 1}},  // model groups of 3 and 1
      {{0, 0}, {1, 1}, {1, 0}, {0, 1}},  // rank 2 has other samples than rank 0, in one model group
  };
  for (const auto& colours : no_grids) {
    const Distribution d(colours);
    EXPECT_EQ(d.group(kGlobal, 0).size(), 4u);
    EXPECT_THROW(d.parts(kData), ConfigError) << d.to_string();
    EXPECT_THROW(d.parts(kModel), ConfigError) << d.to_string();
  }
  EXPECT_EQ(Distribution(no_grids[1]).group(kData, 2), (Ranks{0, 1, 2}));
  EXPECT_THROW(Distribution(std::span<const Colours>{}), ConfigError);
}

}  // namespace
}  // namespace tutti::mlsl::layout
