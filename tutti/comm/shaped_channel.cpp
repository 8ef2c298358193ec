#include "tutti/comm/shaped_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <string>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"
#include "tutti/comm/message_slots.h"

namespace tutti::comm {
namespace {

// "10gbit" with {{"gbit", 1e9}, ...}: 10e9; negative when it is something else.
double with_unit(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, double>> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc()) return -1;
  for (const auto& [name, scale] : units)
    if (unit == name) return value * scale;
  return -1;
}

}  // namespace

LinkShape LinkShape::parse(std::string_view text) {
  const size_t comma = text.find(',');
  LinkShape shape;
  shape.bytes_per_second =
      with_unit(text.substr(0, comma), {{"kbit", 1e3 / 8}, {"mbit", 1e6 / 8}, {"gbit", 1e9 / 8}});
  if (comma != std::string_view::npos)
    shape.latency = with_unit(text.substr(comma + 1), {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}});
  if (shape.bytes_per_second <= 0 || shape.latency < 0)
    throw ConfigError(
        fmt::format("a link's shape is a rate and a delay such as '10gbit,50us', not '{}'", text));
  return shape;
}

ShapedLink::Clock::time_point ShapedLink::send(size_t bytes) {
  const auto busy = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / shape_.bytes_per_second));
  const std::lock_guard lock(mutex_);
  return free_ = std::max(free_, Clock::now()) + busy;
}

ShapedLink::Clock::duration ShapedLink::latency() const {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(shape_.latency));
}

ShapedChannel::ShapedChannel(Communicator& communicator, std::unique_ptr<Channel> inner,
                             const std::vector<RoundOfMessages>& rounds, ShapedLink& link)
    : communicator_(communicator), inner_(std::move(inner)), link_(link) {
  for (const RoundOfMessages& round : rounds) {
    Messages& messages = rounds_.emplace_back();
    for (const auto& item : round.receives) messages.receives.push_back({item.peer, item.bytes});
    for (const auto& item : round.sends) messages.sends.push_back({item.peer, item.bytes});
  }
  slots_ = message_slots(communicator, rounds);
  const auto ranks = static_cast<size_t>(communicator.size());
  posted_.resize(ranks);
  taken_.resize(ranks);
  times_ = communicator.allocate(ranks * slots_ * sizeof(int64_t));
  if (!times_->shared())
    throw CommError("a shaped link needs all ranks on one node, with shared memory");
}

int64_t& ShapedChannel::time_of(int owner, int peer, uint64_t number) const {
  return reinterpret_cast<int64_t*>(
      times_->peer(owner))[static_cast<size_t>(peer) * slots_ + number % slots_];
}

void ShapedChannel::post(size_t round) {
  round_ = round;
  open_ = true;
  left_ = Clock::now();
  for (const Message& m : rounds_[round].sends) {
    left_ = link_.send(m.bytes);
    const auto arrival = left_ + link_.latency();
    std::atomic_ref(time_of(communicator_.rank(), m.peer, posted_[static_cast<size_t>(m.peer)]++))
        .store(arrival.time_since_epoch().count(), std::memory_order_release);
  }
  inner_->post(round);
}

bool ShapedChannel::received() {
  if (!inner_->received()) return false;
  const int64_t now = Clock::now().time_since_epoch().count();
  std::map<int, uint64_t> number;
  for (const Message& m : rounds_[round_].receives) {
    const uint64_t n = taken_[static_cast<size_t>(m.peer)] + number[m.peer]++;
    if (std::atomic_ref(time_of(m.peer, communicator_.rank(), n)).load(std::memory_order_acquire) >
        now)
      return false;
  }
  return true;
}

void ShapedChannel::release() {
  if (open_)
    for (const Message& m : rounds_[round_].receives) ++taken_[static_cast<size_t>(m.peer)];
  open_ = false;
  inner_->release();
}

bool ShapedChannel::sent() { return Clock::now() >= left_ && inner_->sent(); }

}  // namespace tutti::comm
