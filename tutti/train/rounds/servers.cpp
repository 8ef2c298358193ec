#include "tutti/train/rounds/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "tutti/base/error.h"

namespace tutti {
namespace {

constexpr const char* kClock = "servers/clock";

std::string version_suffix(int64_t version) { return fmt::format(".version {}", version); }

}  // namespace

NamedTensor export_clock(const ServerClock& clock) {
  const std::vector<double> numbers = clock.state();
  const auto bytes = std::as_bytes(std::span(numbers));
  // Of a type that tensors have: a double is two of them, with all its bits.
  return {kClock,
          {DType::i32, Shape{static_cast<int64_t>(numbers.size()), 2}, {}},
          {bytes.begin(), bytes.end()}};
}

bool import_clock(const SafetensorsFile& file, ServerClock& clock) {
  const SafetensorsFile::Entry* entry = file.find(kClock);
  if (!entry) return false;
  std::vector<double> numbers((entry->end - entry->begin) / sizeof(double));
  file.read_part(*entry, 0, std::as_writable_bytes(std::span(numbers)));
  return clock.restore(numbers);
}

Servers::Servers(const ServerSettings& settings, ServerClockSpec clock, TrainingStep& step,
                 std::string spill)
    : settings_(settings), clock_(std::move(clock)), step_(step), spill_(std::move(spill)) {
  count_workers();
}

/// For a version of the weights.
Buffer Servers::room() const { return {step_.weights().variables().parameter_bytes, spill_}; }

void Servers::count_workers() {
  versions_.clear();
  for (int w = 0; w < clock_.workers(); ++w)
    if (!clock_.waits(w)) ++versions_[clock_.version(w)].workers;
}

const std::byte* Servers::weights_of(int64_t version) const {
  const Version& kept = versions_.at(version);
  return kept.copy.bytes() > 0 ? kept.copy.data() : step_.weights().parameters();
}

void Servers::begin(double rate) {
  arrived_ = clock_.next();
  const int64_t stale = arrived_.version - arrived_.read;
  if (settings_.stale_rate > 0 && stale > 1)
    rate /= std::pow(static_cast<double>(stale), settings_.stale_rate);
  ServedGradient gradient{.worker = arrived_.worker,
                          .update = arrived_.version,
                          .rate = static_cast<float>(rate),
                          .weights = weights_of(arrived_.read)};
  if (stale > 0) gradient.compensation = static_cast<float>(settings_.delay_compensation);
  step_.serve(gradient);
}

/// The servers' weights are about to change: whoever else has them needs a copy.
void Servers::keep_current() {
  const auto current = versions_.find(arrived_.version);
  if (current == versions_.end()) return;
  const int arrived = arrived_.read == arrived_.version ? 1 : 0;
  if (current->second.workers == arrived) return;
  if (free_.empty()) free_.push_back(room());
  Buffer& copy = current->second.copy;
  copy = std::move(free_.back());
  free_.pop_back();
  std::memcpy(copy.data(), step_.weights().parameters(),
              step_.weights().variables().parameter_bytes);
}

void Servers::release(int64_t version) {
  const auto at = versions_.find(version);
  CHECK(at != versions_.end() && at->second.workers > 0, "nobody has version {}", version);
  if (--at->second.workers > 0) return;
  if (at->second.copy.bytes() > 0) free_.push_back(std::move(at->second.copy));
  versions_.erase(at);
}

void Servers::apply() {
  keep_current();
  step_.update();
  release(arrived_.read);
  if (!arrived_.served.empty())
    versions_[arrived_.version + 1].workers += static_cast<int>(arrived_.served.size());
}

std::vector<NamedTensor> Servers::state() const {
  std::vector<NamedTensor> tensors;
  tensors.push_back(export_clock(clock_));
  for (const auto& [version, kept] : versions_)
    if (kept.copy.bytes() > 0)
      std::ranges::move(step_.weights().export_arena(version_suffix(version), kept.copy.data()),
                        std::back_inserter(tensors));
  return tensors;
}

bool Servers::restore(const SafetensorsFile& state, double seconds, int64_t version, int64_t left) {
  const bool known = import_clock(state, clock_);
  if (!known) clock_.begin(seconds, version, left);
  count_workers();
  const Weights& weights = step_.weights();
  for (auto& [number, kept] : versions_) {
    if (number == clock_.version()) continue;
    const size_t bytes = weights.variables().parameter_bytes;
    kept.copy = room();
    std::memcpy(kept.copy.data(), weights.parameters(), bytes);  // frozen ones among them
    weights.import_arena(state, version_suffix(number), kept.copy.data());
  }
  return known;
}

}  // namespace tutti
