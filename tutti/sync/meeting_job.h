#pragma once
// Runs replicas that meet, for the tests of meetings.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>

#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/sync/meeting.h"

namespace tutti::sync::meeting_test {

inline constexpr size_t kMetFloats = 80;
using Values = std::vector<std::vector<float>>;  // by replica

/// Returns weights that differ from replica to replica (`stream`), or are identical at the start.
inline std::vector<float> some_values(int stream) {
  std::vector<float> values(kMetFloats);
  for (size_t k = 0; k < kMetFloats; ++k)
    values[k] = std::sin(static_cast<float>(k + 1) * 0.7f + static_cast<float>(stream));
  return values;
}

/// Changes a replica's weights as a step does, differently for each replica.
inline void take_step(int64_t step, int replica, std::span<float> weights) {
  for (size_t k = 0; k < weights.size(); ++k)
    weights[k] += 0.01f * std::cos(static_cast<float>(k) + static_cast<float>(step) * 0.3f +
                                   static_cast<float>(replica) * 1.3f);
}

struct Met {
  Values weights, states;
  std::vector<float> model;
  std::map<std::string, std::vector<float>> shared{};
  std::map<std::string, Values> own{};    // by replica
  std::map<std::string, double> saved{};  // numbers of a checkpoint
  int64_t bytes = 0;                      // sum over all ranks
  std::vector<int64_t> meetings = {};     // by rank, in any order
  double moved_of = 0;                    // sum over all ranks
};

using Step = std::function<void(int64_t step, int replica, std::span<float> weights)>;

/// Runs steps up to `steps` with so many replicas, which begin with equal weights, on so many
/// ranks; or continues after `done` steps from the state `before`.
inline Met run_replicas(const MeetingSettings& settings, int replicas, int ranks, int64_t steps,
                        const std::function<void(int64_t step, const Values&)>& look = {},
                        const Step& take = take_step, const Met* before = nullptr,
                        int64_t done = 0) {
  Met met{.weights = Values(static_cast<size_t>(replicas), some_values(0)),
          .states = Values(static_cast<size_t>(replicas)),
          .model = std::vector<float>(kMetFloats)};
  for (int r = 0; r < replicas; ++r) met.states[static_cast<size_t>(r)] = some_values(r);
  if (before) met.weights = before->weights;
  std::mutex lock;
  Values models;  // by rank
  comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
    const exchange::ReplicaMap map(replicas, ranks, communicator.rank());
    const auto meeting = make_meeting(settings, communicator, map, kMetFloats);
    std::vector<ReplicaValues> local;
    for (int i = 0; i < map.local_count(); ++i) {
      const auto r = static_cast<size_t>(map.replica(i));
      local.push_back({met.weights[r].data(), {met.states[r].data()}});
    }
    if (before) {
      for (const OwnValues& own : meeting->own())
        for (int i = 0; i < map.local_count(); ++i)
          std::ranges::copy(before->own.at(own.name)[static_cast<size_t>(map.replica(i))],
                            own.of_local[static_cast<size_t>(i)]);
      for (const SharedValues& shared : meeting->shared())
        std::ranges::copy(before->shared.at(shared.name), shared.values.begin());
      EXPECT_TRUE(meeting->restore(before->saved));
    }
    meeting->begin(local, before != nullptr);
    for (int64_t step = done; step < steps; ++step) {
      meeting->before(step, local);
      for (int i = 0; i < map.local_count(); ++i)
        take(step, map.replica(i), met.weights[static_cast<size_t>(map.replica(i))]);
      meeting->after(step, 0.1, local);
      communicator.barrier();
      if (look && communicator.rank() == 0) look(step, met.weights);
      communicator.barrier();
    }
    std::vector<float> model(kMetFloats);
    meeting->model(local, model);
    const std::scoped_lock held(lock);
    met.bytes += meeting->bytes_sent();
    met.meetings.push_back(meeting->meetings());
    met.moved_of += meeting->moved().of;
    models.push_back(model);
    for (const OwnValues& own : meeting->own()) {
      met.own[own.name].resize(static_cast<size_t>(replicas));
      for (int i = 0; i < map.local_count(); ++i) {
        const float* const values = own.of_local[static_cast<size_t>(i)];
        met.own[own.name][static_cast<size_t>(map.replica(i))].assign(values, values + kMetFloats);
      }
    }
    if (communicator.rank() > 0) return;
    met.model = model;
    meeting->save(met.saved);
    for (const SharedValues& shared : meeting->shared())
      met.shared[shared.name].assign(shared.values.begin(), shared.values.end());
  });
  for (const auto& model : models) EXPECT_EQ(model, met.model);
  return met;
}

inline std::vector<double> mean_of(const Values& values) {
  std::vector<double> mean(kMetFloats);
  for (const auto& one : values)
    for (size_t k = 0; k < kMetFloats; ++k)
      mean[k] += static_cast<double>(one[k]) / static_cast<double>(values.size());
  return mean;
}

/// Runs the same steps without any meeting.
inline Values never_met(int replicas, int64_t steps) {
  Values values(static_cast<size_t>(replicas), some_values(0));
  for (int64_t step = 0; step < steps; ++step)
    for (int r = 0; r < replicas; ++r) take_step(step, r, values[static_cast<size_t>(r)]);
  return values;
}

inline void expect_close(std::span<const double> expected, std::span<const float> found) {
  for (size_t k = 0; k < kMetFloats; ++k) EXPECT_NEAR(expected[k], found[k], 2e-6) << k;
}

}  // namespace tutti::sync::meeting_test
