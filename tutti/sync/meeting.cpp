#include "tutti/sync/meeting.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/exchange/average.h"
#include "tutti/sync/meeting_kinds.h"

namespace tutti::sync {
namespace {

/// The same part of every replica's arena, and its average.
struct MeetingFragment {
  size_t begin, floats;
  exchange::ReplicaAverage average;

  /// Averages the fragment; `arena(i)` is local replica i's arena.
  template <class Arena>
  std::span<const float> of(const Arena& arena) {
    return average.average([&](int local, std::span<float> place) {
      std::memcpy(place.data(), arena(local) + begin, place.size_bytes());
    });
  }
};

/// Local SGD: all replicas take the average of their weights, or an outer optimizer's step with it.
/// With several fragments, one of them meets every `every` / `fragments` steps (Streaming DiLoCo,
/// Douillard et al. 2025).
class AverageMeeting final : public Meeting {
 public:
  AverageMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
                 const exchange::ReplicaMap& map, size_t floats)
      : settings_(settings), ranks_(communicator.size()) {
    constexpr size_t kLine = 16;  // floats
    const auto count = static_cast<size_t>(settings.fragments);
    const auto bound = [&](size_t f) {
      return f == count ? floats : floats * f / count / kLine * kLine;
    };
    for (size_t f = 0; f < count; ++f)
      if (const size_t size = bound(f + 1) - bound(f); size > 0)
        fragments_.push_back({bound(f), size, exchange::ReplicaAverage(communicator, map, size)});
    if (settings.outer != OuterStep::none) {
      anchor_.resize(floats);
      momentum_.resize(floats);
    }
  }

  void begin(std::span<const ReplicaValues> local, bool filled) override {
    if (!filled && !anchor_.empty())
      std::copy_n(local.front().parameters, anchor_.size(), anchor_.data());
  }

  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t step, double rate, std::span<const ReplicaValues> local) override {
    const bool first = step < settings_.first_steps;
    bool met = false;
    for (size_t f = 0; f < fragments_.size(); ++f) {
      const auto offset =
          static_cast<int64_t>(f) * settings_.every / static_cast<int64_t>(fragments_.size());
      if (!first && (step + 1 + offset) % settings_.every != 0) continue;
      if (!met) moved_ = {};
      meet(fragments_[f], first, rate, local);
      meet_states(fragments_[f], first ? MetState::average : settings_.state, local);
      met = true;
    }
    meetings_ += met;
    return met;
  }

  void model(std::span<const ReplicaValues> local, std::span<float> weights) override {
    for (MeetingFragment& part : fragments_)
      std::ranges::copy(part.of([&](int i) { return parameters(local, i); }),
                        weights.begin() + static_cast<std::ptrdiff_t>(part.begin));
  }

  std::vector<SharedValues> shared() override {
    if (anchor_.empty()) return {};
    return {{"anchor", anchor_, true}, {"outer_momentum", momentum_}};
  }

 private:
  static float* parameters(std::span<const ReplicaValues> local, int i) {
    return local[static_cast<size_t>(i)].parameters;
  }

  void meet(MeetingFragment& part, bool first, double rate, std::span<const ReplicaValues> local) {
    std::span<const float> weights = part.of([&](int i) { return parameters(local, i); });
    if (settings_.outer != OuterStep::none) {
      const std::span<float> anchor = std::span(anchor_).subspan(part.begin, part.floats);
      if (first)  // the first steps use the plain average
        std::ranges::copy(weights, anchor.begin());
      else
        outer_step(settings_, weights, rate, anchor,
                   std::span(momentum_).subspan(part.begin, part.floats));
      weights = anchor;
    }
    for (const ReplicaValues& replica : local) move(weights, replica.parameters + part.begin);
    count(part);
  }

  void meet_states(MeetingFragment& part, MetState what, std::span<const ReplicaValues> local) {
    if (what == MetState::keep) return;
    for (size_t kind = 0; kind < local.front().states.size(); ++kind) {
      if (what == MetState::reset) {
        for (const ReplicaValues& replica : local)
          std::fill_n(replica.states[kind] + part.begin, part.floats, 0.0f);
        continue;
      }
      const std::span<const float> average =
          part.of([&](int i) { return local[static_cast<size_t>(i)].states[kind]; });
      for (const ReplicaValues& replica : local)
        std::ranges::copy(average, replica.states[kind] + part.begin);
      count(part);
    }
  }

  /// A sum by halves and its distribution send 2 (P - 1) / P times the fragment.
  void count(const MeetingFragment& part) {
    bytes_sent_ += static_cast<int64_t>(2 * part.floats * sizeof(float)) * (ranks_ - 1) / ranks_;
  }

  const MeetingSettings settings_;
  const int ranks_;
  std::vector<MeetingFragment> fragments_;
  std::vector<float> anchor_, momentum_;  // used with an outer step
};

/// EASGD, the synchronous form (Zhang et al. 2015, equations 5 and 6): the centre takes what each
/// replica gives up, so that the sum of them all is conserved.
class ElasticMeeting final : public Meeting {
 public:
  ElasticMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
                 const exchange::ReplicaMap& map, size_t floats)
      : every_(settings.every), replicas_(map.replicas()), ranks_(communicator.size()),
        alpha_(static_cast<float>(settings.alpha > 0 ? settings.alpha : 0.9 / map.replicas())),
        average_(communicator, map, floats), center_(floats) {
    // A meeting scales the mean's distance from the centre by 1 - alpha (1 + R).
    if (alpha_ * static_cast<float>(1 + replicas_) >= 2)
      throw ConfigError(fmt::format(
          "sync.alpha = {} of {} replicas: they and their centre would swing ever further; it must "
          "be below 2 / (1 + replicas) = {:.4g}",
          alpha_, replicas_, 2.0 / (1 + replicas_)));
  }

  void begin(std::span<const ReplicaValues> local, bool filled) override {
    if (!filled) std::copy_n(local.front().parameters, center_.size(), center_.data());
  }

  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t step, double, std::span<const ReplicaValues> local) override {
    if ((step + 1) % every_ != 0) return false;
    moved_ = {};
    // The average of what each replica gives.
    const std::span<const float> given = average_.average([&](int i, std::span<float> place) {
      float* const w = local[static_cast<size_t>(i)].parameters;
      for (size_t k = 0; k < place.size(); ++k) {
        place[k] = alpha_ * (w[k] - center_[k]);
        w[k] -= place[k];
        moved_.squares += static_cast<double>(place[k]) * static_cast<double>(place[k]);
        moved_.of += static_cast<double>(w[k]) * static_cast<double>(w[k]);
      }
    });
    const auto all = static_cast<float>(replicas_);
    for (size_t k = 0; k < center_.size(); ++k) center_[k] += all * given[k];
    bytes_sent_ += static_cast<int64_t>(2 * center_.size() * sizeof(float)) * (ranks_ - 1) / ranks_;
    ++meetings_;
    return true;
  }

  void model(std::span<const ReplicaValues>, std::span<float> weights) override {
    std::ranges::copy(center_, weights.begin());
  }
  std::vector<SharedValues> shared() override { return {{"center", center_, true}}; }

 private:
  const int64_t every_;
  const int replicas_, ranks_;
  const float alpha_;
  exchange::ReplicaAverage average_;
  std::vector<float> center_;
};

/// Independent runs; the first one represents all.
class NoMeeting final : public Meeting {
 public:
  explicit NoMeeting(comm::Communicator& communicator) : communicator_(communicator) {}
  void begin(std::span<const ReplicaValues>, bool) override {}
  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t, double, std::span<const ReplicaValues>) override { return false; }
  void model(std::span<const ReplicaValues> local, std::span<float> weights) override {
    std::copy_n(local.front().parameters, weights.size(), weights.begin());
    communicator_.broadcast(std::as_writable_bytes(weights), 0);
  }

 private:
  comm::Communicator& communicator_;
};

/// Sums are split into pieces, but messages are not.
void check_message_size(comm::Communicator& communicator, size_t floats) {
  const size_t bytes = floats * sizeof(float);
  if (communicator.size() > 1 && bytes > comm::Wire::kLongestMessage)
    throw ConfigError(fmt::format(
        "sync.scheme = \"gossip\", \"dpsgd\" and a tree send a replica's weights in one message, "
        "which takes {} bytes at most: these are {}; use \"step\", \"local\" or \"easgd\" without "
        "a tree, or one rank",
        comm::Wire::kLongestMessage, bytes));
}

}  // namespace

int copies_for_meetings(const MeetingSettings& settings, int local_replicas) {
  const int outer = settings.outer == OuterStep::none ? 0 : 1;
  switch (settings.kind) {
    case MeetingKind::never: return 1;
    case MeetingKind::average: return 1 + (settings.delay > 0 ? local_replicas + 1 : outer) + outer;
    case MeetingKind::elastic: return 2;
    case MeetingKind::tree: return 2 + settings.children + local_replicas;
    case MeetingKind::neighbours:
      return 2 + 2 * local_replicas + (settings.graph == MixingGraph::torus ? 2 : 0);
    case MeetingKind::gossip: return 1 + 2 * local_replicas;
  }
  return 0;
}

void Meeting::move(std::span<const float> to, float* weights) {
  double squares = 0, of = 0;
  for (size_t k = 0; k < to.size(); ++k) {
    const auto change = static_cast<double>(to[k] - weights[k]);
    squares += change * change;
    of += static_cast<double>(to[k]) * static_cast<double>(to[k]);
    weights[k] = to[k];
  }
  moved_.squares += squares;
  moved_.of += of;
}

void outer_step(const MeetingSettings& settings, std::span<const float> average, double rate,
                std::span<float> anchor, std::span<float> momentum) {
  const auto lr = static_cast<float>(settings.outer_lr);
  const auto mu = static_cast<float>(settings.outer_momentum);
  const auto inner = static_cast<float>(rate);
  const bool slow = settings.outer == OuterStep::momentum;
  // SlowMo divides by the rate: at a rate of 0 the average is taken.
  if (settings.outer == OuterStep::none || (slow && rate == 0)) {
    std::ranges::copy(average, anchor.begin());
    return;
  }
  for (size_t i = 0; i < average.size(); ++i) {
    float& w = anchor[i];
    float& u = momentum[i];
    const float change = w - average[i];
    u = mu * u + (slow ? change / inner : change);
    w -= slow ? lr * inner * u : lr * (change + mu * u);
  }
}

std::unique_ptr<Meeting> make_meeting(const MeetingSettings& settings,
                                      comm::Communicator& communicator,
                                      const exchange::ReplicaMap& map, size_t floats) {
  if (settings.kind == MeetingKind::tree || settings.kind == MeetingKind::gossip ||
      settings.kind == MeetingKind::neighbours)
    check_message_size(communicator, floats);
  switch (settings.kind) {
    case MeetingKind::average:
      if (settings.delay > 0) return make_delayed_meeting(settings, communicator, map, floats);
      return std::make_unique<AverageMeeting>(settings, communicator, map, floats);
    case MeetingKind::elastic:
      return std::make_unique<ElasticMeeting>(settings, communicator, map, floats);
    case MeetingKind::tree: return make_tree_meeting(settings, communicator, map, floats);
    case MeetingKind::gossip: return make_gossip_meeting(settings, communicator, map, floats);
    case MeetingKind::neighbours:
      return make_neighbour_meeting(settings, communicator, map, floats);
    case MeetingKind::never: return std::make_unique<NoMeeting>(communicator);
  }
  return nullptr;
}

}  // namespace tutti::sync
