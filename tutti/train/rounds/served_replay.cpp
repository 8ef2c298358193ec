#include "tutti/train/rounds/rounds_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/sync/server_clock.h"
#include "tutti/train/rounds/replay_clock.h"

namespace tutti::train {
namespace {

std::string version_suffix(int64_t version) { return fmt::format(".version {}", version); }

/// A replay of workers that take the weights from servers, and send gradients that are applied on
/// arrival. A ServerClock determines the weights with which a gradient is computed and the time of
/// its arrival. The data stay in the order of the seed: the n-th gradient of a step uses the step's
/// n-th batches, whichever worker makes it.
///
/// The step's own weights and optimizer state are the servers'. Each older version that a worker
/// still uses is kept as a copy.
class ServedReplay final : public Rounds {
 public:
  ServedReplay(const RoundsSpec& spec, const ServerSettings& settings)
      : spec_(spec), settings_(settings), clock_(server_clock_spec(spec)) {
    warn_of_slow_devices(spec);
    count_workers();
  }

  void start(const keep::Checkpoint* resumed, int64_t step) override {
    if (resumed) restore(resumed->state, virtual_seconds_of(resumed), step);
    log::info(
        "{} server(s) hold the weights of {} worker(s) of {} replica(s), whose gradients are "
        "applied one by one: sync.scheme = \"{}\"",
        settings_.servers, clock_.workers(), settings_.group_of(spec_.replicas.replicas()),
        spec_.config.sync.scheme);
    spec_.step.start();
  }

  void begin(int64_t first, int64_t) override {
    step_ = first;
    made_ = 0;
    spec_.step.begin(first, static_cast<float>(spec_.rate(first)));
  }

  std::optional<RoundGradient> next(int) override {
    if (made_ > 0) apply();
    const auto batches = static_cast<int>(spec_.config.batch.accumulate);
    if (made_ == spec_.replicas.local_count() * batches) return std::nullopt;
    return begin_gradient();
  }

  int64_t end(int) override {
    times_ = spec_.step.times();
    return step_ + 1;
  }

  StepTimes times() const override { return times_; }

  void report(int64_t step, trace::RunRecord* record) override {
    report_servers(spec_, clock_.take_counts(), step, record);
  }

  std::optional<double> virtual_seconds() const override { return clock_.seconds(); }
  double take_virtual_wait() override { return clock_.take_waited(); }

  /// Returns the servers' state, "servers/clock", and, as "NAME.version 12", each version of the
  /// weights that workers use and servers no longer have.
  void save(keep::SavedRun& saved) override {
    spec_.step.save_state(saved);
    saved.shared.push_back(export_clock(clock_));
    saved.numbers[kVirtualSeconds] = clock_.seconds();
    for (const auto& [version, kept] : versions_)
      if (kept.copy.bytes() > 0)
        std::ranges::move(
            spec_.step.weights().arena_tensors(version_suffix(version), kept.copy.data()),
            std::back_inserter(saved.shared));
  }

 private:
  struct Version {
    int workers = 0;      // how many use it
    device::Buffer copy;  // empty: equals the servers' own
  };

  /// Restores what save() added, after the step's weights have been restored. If the checkpoint's
  /// run had no servers or other workers, it holds none of it: then all begin with its weights.
  void restore(const keep::SafetensorsFile& state, double seconds, int64_t step) {
    const int64_t left = spec_.steps_per_epoch - step % spec_.steps_per_epoch;
    if (!import_clock(state, clock_)) {
      clock_.begin(seconds, step, left * clock_.workers());
      warn_of_new_workers(step);
    }
    count_workers();
    const Weights& weights = spec_.step.weights();
    for (auto& [number, kept] : versions_) {
      if (number == clock_.version()) continue;
      const size_t bytes = weights.variables().parameter_bytes;
      kept.copy = room();
      std::memcpy(kept.copy.data(), weights.parameters(), bytes);  // includes frozen ones
      weights.import_arena(state, version_suffix(number), kept.copy.data());
    }
  }

  /// Returns the next gradient to arrive: it uses the step's next micro-batches, in the order in
  /// which its worker takes them.
  RoundGradient begin_gradient() {
    arrived_ = clock_.next();
    const int64_t stale = arrived_.version - arrived_.read;
    double rate = spec_.rate(step_);
    if (settings_.stale_rate > 0 && stale > 1)
      rate /= std::pow(static_cast<double>(stale), settings_.stale_rate);
    late_ = {.update = arrived_.version,
             .rate = static_cast<float>(rate),
             .of = weights_of(arrived_.read)};
    if (stale > 0) late_.compensation = static_cast<float>(settings_.delay_compensation);
    RoundGradient gradient{.number = step_, .slowed = made_ == 0, .first = made_, .batches = {}};
    const int each = spec_.step.summed().local_count(),
              accumulate = static_cast<int>(spec_.config.batch.accumulate);
    for (int place = 0; place < each; ++place)
      gradient.batches.push_back(
          {.place = place,
           .number = made_++,
           .local_replica = arrived_.worker * (each / accumulate) + place / accumulate,
           .parameters = late_.of});
    // Packed weights are those that all updates change.
    if (late_.of != spec_.step.weights().parameters()) spec_.step.weights_changed();
    return gradient;
  }

  void apply() {
    keep_current();
    spec_.step.update({.settled = true, .late = late_});
    release(arrived_.read);
    if (!arrived_.served.empty())
      versions_[arrived_.version + 1].workers += static_cast<int>(arrived_.served.size());
  }

  const std::byte* weights_of(int64_t version) const {
    const Version& kept = versions_.at(version);
    return kept.copy.bytes() > 0 ? kept.copy.data() : spec_.step.weights().parameters();
  }

  /// Allocates space for a version of the weights.
  device::Buffer room() const {
    return {spec_.step.weights().variables().parameter_bytes, spec_.config.replay.spill};
  }

  /// The servers' weights are about to change: if other workers use them, a copy is made.
  void keep_current() {
    const auto current = versions_.find(arrived_.version);
    if (current == versions_.end()) return;
    const int arrived = arrived_.read == arrived_.version ? 1 : 0;
    if (current->second.workers == arrived) return;
    if (free_.empty()) free_.push_back(room());
    device::Buffer& copy = current->second.copy;
    copy = std::move(free_.back());
    free_.pop_back();
    std::memcpy(copy.data(), spec_.step.weights().parameters(),
                spec_.step.weights().variables().parameter_bytes);
  }

  void release(int64_t version) {
    const auto at = versions_.find(version);
    CHECK(at != versions_.end() && at->second.workers > 0, "nobody has version {}", version);
    if (--at->second.workers > 0) return;
    if (at->second.copy.bytes() > 0) free_.push_back(std::move(at->second.copy));
    versions_.erase(at);
  }

  /// Counts the workers that use each version, from the clock's state.
  void count_workers() {
    versions_.clear();
    for (int w = 0; w < clock_.workers(); ++w)
      if (!clock_.waits(w)) ++versions_[clock_.version(w)].workers;
  }

  const RoundsSpec spec_;
  const ServerSettings settings_;
  sync::ServerClock clock_;              // has advanced to arrived_
  std::map<int64_t, Version> versions_;  // those that any worker uses
  std::vector<device::Buffer> free_;
  sync::ArrivedGradient arrived_;
  LateGradient late_;
  int64_t step_ = 0;
  int made_ = 0;  // micro-batches of this step
  StepTimes times_;
};

}  // namespace

std::unique_ptr<Rounds> make_served_replay(const RoundsSpec& spec, const ServerSettings& settings) {
  return std::make_unique<ServedReplay>(spec, settings);
}

}  // namespace tutti::train
