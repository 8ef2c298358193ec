#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/sync/meeting_job.h"

namespace tutti::sync {
namespace {

using namespace meeting_test;

MeetingSettings gossip_of(double probability) {
  return {.kind = MeetingKind::gossip, .probability = probability, .seed = 11};
}

/// The shares of the replicas and of messages in flight, as a checkpoint holds them.
struct Shares {
  double kept = 0, sent = 0;
  int under_way = 0;
};
Shares shares_of(const std::map<std::string, double>& saved) {
  Shares shares;
  for (const auto& [name, value] : saved) {
    if (name.ends_with(".share")) shares.kept += value;
    if (name.ends_with(".sent")) shares.sent += value, ++shares.under_way;
  }
  return shares;
}

TEST(GossipTo, IsAnotherReplicaWithItsProbability) {
  constexpr int kSteps = 20000, kReplicas = 5;
  const MeetingSettings settings = gossip_of(0.3);
  std::vector<int> received(kReplicas);
  int sent = 0;
  for (int64_t step = 0; step < kSteps; ++step)
    if (const auto to = gossip_to(settings, kReplicas, 2, step)) {
      ASSERT_NE(*to, 2);
      ++received.at(static_cast<size_t>(*to));
      ++sent;
    }
  EXPECT_NEAR(sent, 0.3 * kSteps, 300);
  for (const int other : {0, 1, 3, 4})
    EXPECT_NEAR(received[static_cast<size_t>(other)], sent / 4, 200);
  EXPECT_FALSE(gossip_to(gossip_of(1), 1, 0, 0)) << "there is nobody else";
}

TEST(Gossip, SharesOfAllAndOfWhatIsUnderWaySumToOne) {
  int under_way = 0;
  for (const int64_t steps : {0, 1, 2, 5, 40})
    for (const int ranks : {1, 3}) {
      const Met met = run_replicas(gossip_of(0.4), 6, ranks, steps);
      const Shares shares = shares_of(met.saved);
      EXPECT_DOUBLE_EQ(shares.kept + shares.sent, 1) << steps << " steps";
      under_way += shares.under_way;
    }
  EXPECT_GT(under_way, 0);
}

TEST(Gossip, KeepsTheSumOfWeightsBySharesWhereNobodySteps) {
  // After one step all differ; then they only exchange weights, and approach that sum.
  constexpr int kReplicas = 4;
  const auto first_alone = [](int64_t step, int replica, std::span<float> weights) {
    if (step == 0) take_step(step, replica, weights);
  };
  const Met early = run_replicas(gossip_of(0.5), kReplicas, 2, 1, {}, first_alone);
  const Met late = run_replicas(gossip_of(0.5), kReplicas, 2, 60, {}, first_alone);
  expect_close(mean_of(early.weights), early.model);
  expect_close(mean_of(early.weights), late.model);
  for (const auto& weights : late.weights) expect_close(mean_of(early.weights), weights);
}

TEST(Gossip, EveryRankCountsTheArrivalsOfAll) {
  constexpr int kReplicas = 4;
  const MeetingSettings settings = gossip_of(0.2);
  const auto sent_after = [&](int64_t step) {
    int64_t sent = 0;
    for (int r = 0; r < kReplicas; ++r) sent += gossip_to(settings, kReplicas, r, step).has_value();
    return sent;
  };
  // Weights sent after a step arrive after the next one; nothing arrives after the last step.
  int64_t steps = 10, arrived = 0;
  while (sent_after(steps - 2) > 0) ++steps;
  for (int64_t step = 0; step < steps - 1; ++step) arrived += sent_after(step);
  ASSERT_GT(arrived, 0);
  for (const int ranks : {1, 3}) {
    const Met met = run_replicas(settings, kReplicas, ranks, steps);
    EXPECT_EQ(met.meetings, std::vector<int64_t>(static_cast<size_t>(ranks), arrived));
    EXPECT_GT(met.moved_of, 0) << "of the last that has arrived";
  }
}

TEST(Gossip, WeightsThatAreTooLongForAMessageAreAnErrorAtTheStart) {
  comm::run_ranks(2, [](comm::Communicator& communicator) {
    const exchange::ReplicaMap map(2, 2, communicator.rank());
    const size_t floats = comm::Wire::kLongestMessage / sizeof(float) + 1;
    for (const MeetingKind kind : {MeetingKind::gossip, MeetingKind::tree, MeetingKind::neighbours})
      EXPECT_THROW(make_meeting({.kind = kind, .children = 2}, communicator, map, floats),
                   ConfigError);
  });
}

TEST(Gossip, GoesOnWithMessagesUnderWayOnOtherRanks) {
  const MeetingSettings settings = gossip_of(0.7);
  const Met whole = run_replicas(settings, 5, 1, 12);
  for (const int64_t cut : {1, 4, 7})
    for (const auto& [before, after] : {std::pair{2, 3}, std::pair{1, 2}, std::pair{5, 1}}) {
      const Met first = run_replicas(settings, 5, before, cut);
      EXPECT_GT(shares_of(first.saved).under_way, 0);
      const Met rest = run_replicas(settings, 5, after, 12, {}, take_step, &first, cut);
      EXPECT_EQ(whole.weights, rest.weights) << cut << ", " << before << " and " << after;
      EXPECT_EQ(whole.saved, rest.saved);
      EXPECT_EQ(whole.model, rest.model);
    }
}

}  // namespace
}  // namespace tutti::sync
