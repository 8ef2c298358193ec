#include "tutti/train/rounds/served_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/train/rounds/replay_clock.h"

namespace tutti::train {
namespace {

std::string version_suffix(int64_t version) { return fmt::format(".version {}", version); }

}  // namespace

ServedReplay::ServedReplay(const RoundsSpec& spec, const ServerSettings& settings)
    : spec_(spec), settings_(settings), clock_(server_clock_spec(spec)) {
  warn_of_slow_devices(spec);
  count_workers();
}

void ServedReplay::start(const keep::Checkpoint* resumed, int64_t step) {
  if (resumed) restore(resumed->state, virtual_seconds_of(resumed), step);
  log::info(
      "{} server(s) hold the weights of {} worker(s) of {} replica(s), whose gradients are applied "
      "one by one: sync.scheme = \"{}\"",
      settings_.servers, clock_.workers(), settings_.group_of(spec_.replicas.replicas()),
      spec_.config.sync.scheme);
  spec_.step.start();
}

void ServedReplay::begin(int64_t first, int64_t) {
  step_ = first;
  made_ = 0;
  spec_.step.begin(first, static_cast<float>(spec_.rate(first)));
}

std::optional<RoundGradient> ServedReplay::next(int) {
  if (made_ > 0) apply();
  const auto batches = static_cast<int>(spec_.config.batch.accumulate);
  if (made_ == spec_.replicas.local_count() * batches) return std::nullopt;
  return begin_gradient();
}

int64_t ServedReplay::end(int) {
  times_ = spec_.step.times();
  return step_ + 1;
}

/// Returns the next gradient to arrive: it uses the step's next micro-batches, in the order in
/// which its worker takes them.
RoundGradient ServedReplay::begin_gradient() {
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

/// Allocates space for a version of the weights.
device::Buffer ServedReplay::room() const {
  return {spec_.step.weights().variables().parameter_bytes, spec_.config.replay.spill};
}

void ServedReplay::count_workers() {
  versions_.clear();
  for (int w = 0; w < clock_.workers(); ++w)
    if (!clock_.waits(w)) ++versions_[clock_.version(w)].workers;
}

const std::byte* ServedReplay::weights_of(int64_t version) const {
  const Version& kept = versions_.at(version);
  return kept.copy.bytes() > 0 ? kept.copy.data() : spec_.step.weights().parameters();
}

/// The servers' weights are about to change: if other workers use them, a copy is made.
void ServedReplay::keep_current() {
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

void ServedReplay::release(int64_t version) {
  const auto at = versions_.find(version);
  CHECK(at != versions_.end() && at->second.workers > 0, "nobody has version {}", version);
  if (--at->second.workers > 0) return;
  if (at->second.copy.bytes() > 0) free_.push_back(std::move(at->second.copy));
  versions_.erase(at);
}

void ServedReplay::apply() {
  keep_current();
  spec_.step.update({.settled = true, .late = late_});
  release(arrived_.read);
  if (!arrived_.served.empty())
    versions_[arrived_.version + 1].workers += static_cast<int>(arrived_.served.size());
}

void ServedReplay::save(keep::SavedRun& saved) {
  spec_.step.save_state(saved);
  saved.shared.push_back(export_clock(clock_));
  saved.numbers[kVirtualSeconds] = clock_.seconds();
  for (const auto& [version, kept] : versions_)
    if (kept.copy.bytes() > 0)
      std::ranges::move(
          spec_.step.weights().arena_tensors(version_suffix(version), kept.copy.data()),
          std::back_inserter(saved.shared));
}

/// Restores what save() added, after the step's weights have been restored. If the checkpoint's run
/// had no servers or other workers, it holds none of it: then all begin with its weights.
void ServedReplay::restore(const keep::SafetensorsFile& state, double seconds, int64_t step) {
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

void ServedReplay::report(int64_t step, trace::RunRecord* record) {
  report_servers(servers_line(clock_, clock_.take_counts(), step, spec_.steps_per_epoch), true,
                 record);
}

}  // namespace tutti::train
