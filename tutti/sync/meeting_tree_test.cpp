#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/sync/meeting_job.h"

namespace tutti::sync {
namespace {

using namespace meeting_test;

MeetingSettings tree_of(int children, int64_t every, int64_t up) {
  return {.kind = MeetingKind::tree, .every = every, .children = children, .up = up};
}

TEST(CenterTree, HasOneCentreForSoManyBelowUpToOneAlone) {
  const CenterTree tree(10, 3);  // 4 centres, 2 above them, one above these
  ASSERT_EQ(tree.levels(), 3);
  EXPECT_EQ(tree.nodes(0), 10);
  EXPECT_EQ(tree.nodes(1), 4);
  EXPECT_EQ(tree.nodes(2), 2);
  EXPECT_EQ(tree.nodes(3), 1);
  EXPECT_EQ(tree.first(1, 3), 9);
  EXPECT_EQ(tree.end_child(1, 3), 10);
  EXPECT_EQ(tree.first(2, 1), 9);
  EXPECT_EQ(tree.end_child(2, 0), 3);
  EXPECT_EQ(tree.end_child(3, 0), 2);
}

TEST(TreeMeeting, ConservesTheSumOfAllReplicasAndCentres) {
  // 6 replicas, 3 centres of 2, 2 above them, one at the top: centres begin with the replicas'
  // first weights.
  constexpr int kReplicas = 6;
  for (const int ranks : {1, 3}) {
    const Met met = run_replicas(tree_of(2, 1, 3), kReplicas, ranks, 9);
    const Values alone = never_met(kReplicas, 9);
    const std::vector<float> first = some_values(0);
    const CenterTree tree(kReplicas, 2);
    int centers = 0;
    for (int level = 1; level <= tree.levels(); ++level) centers += tree.nodes(level);
    ASSERT_EQ(centers, 6);
    for (size_t k = 0; k < kMetFloats; ++k) {
      double expected = centers * static_cast<double>(first[k]), sum = 0;
      for (const auto& one : alone) expected += static_cast<double>(one[k]);
      for (const auto& one : met.weights) sum += static_cast<double>(one[k]);
      for (int level = 1; level <= tree.levels(); ++level)
        for (int node = 0; node < tree.nodes(level); ++node)
          sum += static_cast<double>(met.own.at(fmt::format("center{}", level))
                                         .at(static_cast<size_t>(tree.first(level, node)))[k]);
      EXPECT_NEAR(sum, expected, 2e-5) << k;
    }
    EXPECT_EQ(met.model, met.own.at("center3").at(0));
    EXPECT_NE(met.model, first);
  }
}

TEST(TreeMeeting, OfAllAtOneCentreIsEasgd) {
  MeetingSettings flat{.kind = MeetingKind::elastic, .every = 2, .alpha = 0.2};
  MeetingSettings tree = tree_of(4, 2, 2);
  tree.alpha = 0.2;
  const Met one = run_replicas(flat, 4, 2, 8), other = run_replicas(tree, 4, 2, 8);
  for (size_t k = 0; k < kMetFloats; ++k) {
    EXPECT_NEAR(one.model[k], other.model[k], 1e-6);
    EXPECT_NEAR(one.weights[3][k], other.weights[3][k], 1e-6);
  }
}

TEST(TreeMeeting, CentresMeetLessOftenThanReplicas) {
  // After 2 steps the pairs have met, but the centres have not: the top is unchanged.
  const Met early = run_replicas(tree_of(2, 1, 4), 4, 1, 2);
  EXPECT_EQ(early.model, some_values(0));
  EXPECT_NE(early.own.at("center1").at(0), some_values(0));
  EXPECT_NE(run_replicas(tree_of(2, 1, 4), 4, 1, 4).model, some_values(0));
}

TEST(TreeMeeting, WhatWouldSwingIsAnError) {
  MeetingSettings settings = tree_of(2, 1, 1);
  settings.alpha = 0.7;
  EXPECT_THROW(run_replicas(settings, 4, 1, 1), ConfigError);
}

}  // namespace
}  // namespace tutti::sync
