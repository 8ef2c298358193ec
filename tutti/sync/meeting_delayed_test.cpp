#include <gtest/gtest.h>

#include "tutti/sync/meeting_job.h"

namespace tutti::sync {
namespace {

using namespace meeting_test;

constexpr int kReplicas = 3;
constexpr int64_t kEvery = 2;

/// Computes the same in double precision, all replicas at once.
class Reference {
 public:
  explicit Reference(const MeetingSettings& settings) : settings_(settings) {
    for (int r = 0; r < kReplicas; ++r) weights_.push_back(start());
    anchor_ = start();
    momentum_.assign(kMetFloats, 0.0);
  }

  void step(int64_t step) {
    for (int r = 0; r < kReplicas; ++r) {
      std::vector<float> change(kMetFloats, 0.0f);
      take_step(step, r, change);
      for (size_t k = 0; k < kMetFloats; ++k)
        weights_[static_cast<size_t>(r)][k] += static_cast<double>(change[k]);
    }
    if ((step + 1) % kEvery == 0) meet();
  }
  const std::vector<std::vector<double>>& weights() const { return weights_; }

 private:
  static std::vector<double> start() {
    const std::vector<float> values = some_values(0);
    return {values.begin(), values.end()};
  }
  void meet() {
    if (!sent_.empty())
      for (size_t k = 0; k < kMetFloats; ++k) {
        double mean = 0;
        for (const auto& sent : sent_) mean += sent[k] / kReplicas;
        if (settings_.outer == OuterStep::none) {
          anchor_[k] = mean;
        } else {
          const double change = anchor_[k] - mean, mu = settings_.outer_momentum;
          momentum_[k] = mu * momentum_[k] + change;
          anchor_[k] -= settings_.outer_lr * (change + mu * momentum_[k]);
        }
        for (size_t r = 0; r < weights_.size(); ++r)
          weights_[r][k] = anchor_[k] + (weights_[r][k] - sent_[r][k]);
      }
    sent_ = weights_;
  }

  const MeetingSettings settings_;
  std::vector<std::vector<double>> weights_, sent_;
  std::vector<double> anchor_, momentum_;
};

std::vector<MeetingSettings> both() {
  return {{.every = kEvery, .delay = 1},
          {.every = kEvery,
           .outer = OuterStep::nesterov,
           .outer_lr = 0.7,
           .outer_momentum = 0.5,
           .delay = 1}};
}

TEST(DelayedMeeting, FollowsItsFormula) {
  for (const MeetingSettings& settings : both()) {
    Reference reference(settings);
    for (int64_t step = 0; step < 9; ++step) reference.step(step);
    const Met met = run_replicas(settings, kReplicas, 1, 9);
    for (size_t r = 0; r < kReplicas; ++r)
      for (size_t k = 0; k < kMetFloats; ++k)
        EXPECT_NEAR(met.weights[r][k], reference.weights()[r][k], 1e-5) << r << ", " << k;
    EXPECT_EQ(met.meetings, std::vector<int64_t>{4});
  }
}

TEST(DelayedMeeting, TheFirstOneChangesNothing) {
  const Met met = run_replicas(both().front(), kReplicas, 1, 3);
  EXPECT_EQ(met.weights, never_met(kReplicas, 3));
}

TEST(DelayedMeeting, GoesOnWithAnAverageUnderWayOnOtherRanks) {
  for (const MeetingSettings& settings : both()) {
    const Met whole = run_replicas(settings, kReplicas, 1, 8);
    for (int64_t cut = 1; cut < 8; ++cut)
      for (const auto& [before, after] : {std::pair{1, 3}, std::pair{2, 1}}) {
        const Met first = run_replicas(settings, kReplicas, before, cut);
        const Met rest = run_replicas(settings, kReplicas, after, 8, {}, take_step, &first, cut);
        EXPECT_EQ(whole.weights, rest.weights) << cut << ", " << before << " and " << after;
        EXPECT_EQ(whole.model, rest.model) << cut;
        EXPECT_EQ(whole.shared, rest.shared) << cut;
        EXPECT_EQ(whole.saved, rest.saved) << cut;
      }
  }
}

}  // namespace
}  // namespace tutti::sync
