#include "tutti/comm/transport/shaped_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

// Returns 10e9 for "10gbit" with {{"gbit", 1e9}, ...}; negative for any other text.
double with_unit(std::string_view text,
                 std::initializer_list<std::pair<std::string_view, double>> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !std::isfinite(value)) return -1;
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

ShapedChannel::ShapedChannel(std::vector<RoundOfMessages> rounds, const OpenChannel& inner,
                             ShapedLink& link)
    : ChannelAround(std::move(rounds)), link_(link) {
  for (const RoundOfMessages& round : rounds_) {
    departing_.emplace_back(round.sends.size());
    arriving_.emplace_back(round.receives.size());
  }
  inner_ = inner(accompanied());
}

// Appends the times of a round's messages after them, in the same order.
std::vector<RoundOfMessages> ShapedChannel::accompanied() {
  const auto accompany = [](std::vector<RoundOfMessages::Item>& items, Times& times) {
    for (size_t i = 0; i < times.size(); ++i)
      items.push_back(
          {items[i].peer, reinterpret_cast<std::byte*>(&times[i]), sizeof(Times::value_type)});
  };
  std::vector<RoundOfMessages> all = rounds_;
  for (size_t r = 0; r < all.size(); ++r) {
    accompany(all[r].receives, arriving_[r]);
    accompany(all[r].sends, departing_[r]);
  }
  return all;
}

void ShapedChannel::post(size_t round) {
  left_ = Clock::now();
  bytes_ = 0;
  const auto& sends = rounds_[round].sends;
  for (size_t i = 0; i < sends.size(); ++i) {
    left_ = link_.send(sends[i].bytes);
    bytes_ += sends[i].bytes;
    departing_[round][i] = (left_ + link_.latency()).time_since_epoch().count();
  }
  ChannelAround::post(round);
}

bool ShapedChannel::received() {
  if (!inner_->received()) return false;
  const size_t messages = rounds_[round_].receives.size();
  const int64_t now = Clock::now().time_since_epoch().count();
  for (size_t i = 0; i < messages; ++i) {
    int64_t arrival = 0;
    std::memcpy(&arrival, inner_->where(messages + i), sizeof arrival);
    if (arrival > now) return false;
  }
  return true;
}

}  // namespace tutti::comm
