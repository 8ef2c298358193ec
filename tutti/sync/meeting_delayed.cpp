#include "tutti/sync/meeting_kinds.h"

#include <algorithm>

#include "tutti/comm/communicator.h"
#include "tutti/exchange/average.h"

namespace tutti::sync {
namespace {

constexpr const char* kUnderWay = "sync.under_way";

class DelayedMeeting final : public Meeting {
 public:
  DelayedMeeting(const MeetingSettings& settings, comm::Communicator& communicator,
                 const exchange::ReplicaMap& map, size_t floats)
      : settings_(settings), ranks_(communicator.size()), travelling_(communicator, map, floats),
        shown_(communicator, map, floats), anchor_(floats),
        momentum_(settings.outer == OuterStep::none ? 0 : floats) {
    for (int local = 0; local < map.local_count(); ++local) sent_.push_back(settings.room(floats));
  }

  void begin(std::span<const ReplicaValues> local, bool filled) override {
    if (!filled)
      std::copy_n(local.front().parameters, anchor_.size(), anchor_.data());
    else if (under_way_)
      send();
  }

  void before(int64_t, std::span<const ReplicaValues>) override {}
  bool after(int64_t step, double rate, std::span<const ReplicaValues> local) override {
    if ((step + 1) % settings_.every != 0) return false;
    moved_ = {};
    const bool arrived = under_way_;
    if (arrived) apply(travelling_.finish(), rate, local);
    for (size_t i = 0; i < local.size(); ++i)
      std::copy_n(local[i].parameters, anchor_.size(), sent(i));
    send();
    under_way_ = true;
    ++meetings_;
    return arrived;
  }

  void model(std::span<const ReplicaValues> local, std::span<float> weights) override {
    const std::span<const float> mean = shown_.average([&](int i, std::span<float> place) {
      std::copy_n(local[static_cast<size_t>(i)].parameters, place.size(), place.data());
    });
    std::ranges::copy(mean, weights.begin());
  }

  std::vector<SharedValues> shared() override {
    std::vector<SharedValues> values = {{"anchor", anchor_, true}};
    if (!momentum_.empty()) values.push_back({"outer_momentum", momentum_});
    return values;
  }
  std::vector<OwnValues> own() override {
    OwnValues values{"sent", {}};
    for (size_t i = 0; i < sent_.size(); ++i) values.of_local.push_back(sent(i));
    return {values};
  }
  void save(std::map<std::string, double>& metrics) const override {
    metrics[kUnderWay] = under_way_;
  }
  bool restore(const std::map<std::string, double>& metrics) override {
    const auto at = metrics.find(kUnderWay);
    under_way_ = at != metrics.end() && at->second != 0;
    return at != metrics.end();
  }

 private:
  float* sent(size_t local) { return reinterpret_cast<float*>(sent_[local].data()); }

  /// A sum by halves and its distribution send 2 (P - 1) / P times the weights.
  void send() {
    travelling_.begin([&](int i, std::span<float> place) {
      std::copy_n(sent(static_cast<size_t>(i)), place.size(), place.data());
    });
    bytes_sent_ += static_cast<int64_t>(2 * anchor_.size() * sizeof(float)) * (ranks_ - 1) / ranks_;
  }

  void apply(std::span<const float> average, double rate, std::span<const ReplicaValues> local) {
    outer_step(settings_, average, rate, anchor_, momentum_);
    std::vector<float> to(anchor_.size());
    for (size_t i = 0; i < local.size(); ++i) {
      for (size_t k = 0; k < to.size(); ++k)
        to[k] = anchor_[k] + (local[i].parameters[k] - sent(i)[k]);
      move(to, local[i].parameters);
    }
  }

  const MeetingSettings settings_;
  const int ranks_;
  exchange::ReplicaAverage travelling_, shown_;
  std::vector<float> anchor_, momentum_;  // momentum_ is used with an outer step
  std::vector<device::Buffer> sent_;      // local replicas' weights at the last meeting
  bool under_way_ = false;                // their average is being computed
};

}  // namespace

std::unique_ptr<Meeting> make_delayed_meeting(const MeetingSettings& settings,
                                              comm::Communicator& communicator,
                                              const exchange::ReplicaMap& map, size_t floats) {
  return std::make_unique<DelayedMeeting>(settings, communicator, map, floats);
}

}  // namespace tutti::sync
