#include "tutti/sync/meeting.h"

#include <gtest/gtest.h>

#include "tutti/sync/meeting_job.h"

namespace tutti::sync {
namespace {

using namespace meeting_test;

const std::vector<MeetingSettings>& every_kind() {
  static const std::vector<MeetingSettings> kinds{
      {.kind = MeetingKind::average, .every = 3},
      {.kind = MeetingKind::average, .every = 4, .first_steps = 3, .state = MetState::average},
      {.kind = MeetingKind::average, .every = 4, .fragments = 3, .state = MetState::reset},
      {.kind = MeetingKind::average,
       .every = 2,
       .outer = OuterStep::momentum,
       .outer_momentum = 0.6},
      {.kind = MeetingKind::average, .every = 2, .outer = OuterStep::nesterov, .outer_lr = 0.7},
      {.kind = MeetingKind::average, .every = 2, .delay = 1},
      {.kind = MeetingKind::average, .every = 2, .outer = OuterStep::nesterov, .delay = 1},
      {.kind = MeetingKind::elastic, .every = 2},
      {.kind = MeetingKind::tree, .every = 2, .children = 2, .up = 4},
      {.kind = MeetingKind::gossip, .probability = 0.6, .seed = 3},
      {.kind = MeetingKind::neighbours, .every = 2},
      {.kind = MeetingKind::neighbours, .graph = MixingGraph::torus},
      {.kind = MeetingKind::neighbours, .graph = MixingGraph::exponential},
      {.kind = MeetingKind::never},
  };
  return kinds;
}

TEST(Meeting, HasTheSameBitsOnAnyNumberOfRanks) {
  for (size_t kind = 0; kind < every_kind().size(); ++kind)
    for (const int replicas : {4, 6}) {
      const Met one = run_replicas(every_kind()[kind], replicas, 1, 9);
      EXPECT_EQ(one.bytes, 0) << "kind " << kind;
      for (const int ranks : {2, 3, 4}) {
        const Met more = run_replicas(every_kind()[kind], replicas, ranks, 9);
        EXPECT_EQ(one.weights, more.weights) << "kind " << kind << ", " << ranks << " ranks";
        EXPECT_EQ(one.states, more.states) << "kind " << kind << ", " << ranks << " ranks";
        EXPECT_EQ(one.model, more.model) << "kind " << kind << ", " << ranks << " ranks";
        EXPECT_EQ(one.shared, more.shared) << "kind " << kind << ", " << ranks << " ranks";
        EXPECT_EQ(more.bytes > 0, every_kind()[kind].kind != MeetingKind::never) << "kind " << kind;
      }
    }
}

TEST(Meeting, OfAllKeepsTheMeanAndLeavesAllAlike) {
  const Met met = run_replicas({.every = 5}, 4, 2, 10, [](int64_t step, const Values& weights) {
    EXPECT_EQ(weights[0] == weights[3], (step + 1) % 5 == 0) << "step " << step;
  });
  expect_close(mean_of(never_met(4, 10)), met.weights[2]);
  EXPECT_EQ(met.model, met.weights[0]);
  EXPECT_EQ(met.states[2], some_values(2)) << "kept";
}

TEST(Meeting, TreatsTheStateAsItIsTold) {
  const Met average = run_replicas({.every = 1, .state = MetState::average}, 4, 2, 1);
  Values states;
  for (int r = 0; r < 4; ++r) states.push_back(some_values(r));
  expect_close(mean_of(states), average.states[1]);
  const Met reset = run_replicas({.every = 1, .state = MetState::reset}, 4, 2, 1);
  EXPECT_EQ(reset.states[3], std::vector<float>(kMetFloats, 0.0f));
}

TEST(Meeting, OfTheFirstStepsIsAtEachOfThem) {
  run_replicas({.every = 4, .first_steps = 2}, 3, 1, 8, [](int64_t step, const Values& weights) {
    EXPECT_EQ(weights[0] == weights[2], step < 2 || step == 3 || step == 7) << "step " << step;
  });
}

TEST(Meeting, OfFragmentsIsOncePerRoundOfEach) {
  // Three fragments of 80 floats, bounds at multiples of 16: [0, 16), [16, 48), [48, 80).
  const MeetingSettings settings{.every = 6, .fragments = 3};
  run_replicas(settings, 2, 1, 12, [](int64_t step, const Values& weights) {
    const auto same = [&](size_t begin, size_t end) {
      return std::equal(weights[0].begin() + static_cast<long>(begin),
                        weights[0].begin() + static_cast<long>(end),
                        weights[1].begin() + static_cast<long>(begin));
    };
    EXPECT_EQ(same(0, 16), (step + 1) % 6 == 0) << step;
    EXPECT_EQ(same(16, 48), (step + 1 + 2) % 6 == 0) << step;
    EXPECT_EQ(same(48, 80), (step + 1 + 4) % 6 == 0) << step;
  });
}

TEST(Meeting, OuterStepsOfNoMomentumAreTheAverage) {
  const Met plain = run_replicas({.every = 2}, 4, 1, 6);
  for (const OuterStep outer : {OuterStep::momentum, OuterStep::nesterov}) {
    const Met met =
        run_replicas({.every = 2, .outer = outer, .outer_lr = 1, .outer_momentum = 0}, 4, 1, 6);
    for (size_t k = 0; k < kMetFloats; ++k)
      EXPECT_NEAR(met.weights[1][k], plain.weights[1][k], 1e-6) << k;
  }
}

TEST(Meeting, OuterStepsFollowTheirFormulas) {
  // One replica whose weights change by -0.5 between two meetings: d = 0.5.
  for (const bool nesterov : {false, true}) {
    const MeetingSettings settings{.outer = nesterov ? OuterStep::nesterov : OuterStep::momentum,
                                   .outer_lr = 0.7,
                                   .outer_momentum = 0.5};
    comm::run_ranks(1, [&](comm::Communicator& communicator) {
      const auto meeting =
          make_meeting(settings, communicator, exchange::ReplicaMap(1, 1, 0), kMetFloats);
      std::vector<float> weights(kMetFloats, 2.0f);
      const std::vector<ReplicaValues> local{{weights.data(), {}}};
      meeting->begin(local, false);
      double w = 2, u = 0;
      for (int64_t step = 0; step < 3; ++step) {
        for (float& value : weights) value -= 0.5f;
        meeting->after(step, 0.1, local);
        u = 0.5 * u + (nesterov ? 0.5 : 0.5 / 0.1);
        w -= nesterov ? 0.7 * (0.5 + 0.5 * u) : 0.7 * 0.1 * u;
        EXPECT_NEAR(weights[7], w, 1e-5) << "step " << step << ", nesterov " << nesterov;
      }
    });
  }
}

TEST(Meeting, AtACentreConservesTheSumOfAllAndTheCentre) {
  std::vector<double> all(kMetFloats);
  const Values alone = never_met(4, 8);
  const std::vector<float> center = some_values(0);
  for (size_t k = 0; k < kMetFloats; ++k) {
    all[k] = static_cast<double>(center[k]);
    for (const auto& one : alone) all[k] += static_cast<double>(one[k]);
  }
  const Met met = run_replicas({.kind = MeetingKind::elastic, .every = 2}, 4, 2, 8);
  EXPECT_EQ(met.model, met.shared.at("center"));
  EXPECT_NE(met.model, center);
  for (size_t k = 0; k < kMetFloats; ++k) {
    double sum = static_cast<double>(met.model[k]);
    for (const auto& one : met.weights) sum += static_cast<double>(one[k]);
    EXPECT_NEAR(sum, all[k], 1e-5) << k;
  }
}

TEST(Meeting, OfNeighboursKeepsTheMean) {
  for (const MixingGraph graph : {MixingGraph::ring, MixingGraph::torus, MixingGraph::exponential})
    for (const int replicas : {1, 2, 3, 6}) {
      const Met met =
          run_replicas({.kind = MeetingKind::neighbours, .graph = graph}, replicas, 1, 7);
      const std::vector<double> mean = mean_of(met.weights),
                                expected = mean_of(never_met(replicas, 7));
      for (size_t k = 0; k < kMetFloats; ++k) EXPECT_NEAR(mean[k], expected[k], 2e-6);
    }
}

TEST(Meeting, NeverIsIndependentRuns) {
  const Met met = run_replicas({.kind = MeetingKind::never}, 3, 2, 5);
  EXPECT_EQ(met.weights, never_met(3, 5));
  EXPECT_EQ(met.model, met.weights[0]);
}

TEST(MixingRow, RowsAndColumnsSumToOne) {
  for (const MixingGraph graph : {MixingGraph::ring, MixingGraph::torus, MixingGraph::exponential})
    for (int replicas = 1; replicas <= 17; ++replicas)
      for (int64_t meeting = 0; meeting < 6; ++meeting) {
        std::vector<double> columns(static_cast<size_t>(replicas));
        for (int r = 0; r < replicas; ++r) {
          double row = 0;
          for (const MixingWeight& entry : mixing_row(graph, replicas, r, meeting)) {
            row += static_cast<double>(entry.weight);
            columns[static_cast<size_t>(entry.replica)] += static_cast<double>(entry.weight);
          }
          EXPECT_NEAR(row, 1, 1e-6);
        }
        for (const double column : columns) EXPECT_NEAR(column, 1, 1e-6);
      }
}

TEST(MixingRow, OfExponentialDistancesReachesAllInLog2Meetings) {
  constexpr int kReplicas = 8;
  std::vector<double> reached(kReplicas);
  reached[5] = 1;  // replica 5 starts with a value, which then spreads
  for (int64_t meeting = 0; meeting < 3; ++meeting) {
    std::vector<double> next(kReplicas);
    for (int r = 0; r < kReplicas; ++r)
      for (const MixingWeight& entry : mixing_row(MixingGraph::exponential, kReplicas, r, meeting))
        next[static_cast<size_t>(r)] +=
            static_cast<double>(entry.weight) * reached[static_cast<size_t>(entry.replica)];
    reached = next;
  }
  for (const double part : reached) EXPECT_NEAR(part, 1.0 / kReplicas, 1e-6);
}

}  // namespace
}  // namespace tutti::sync
