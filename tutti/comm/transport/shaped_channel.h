#pragma once
// ShapedChannel: makes messages as slow as on a described link, to see slow networks on one
// machine: `--shape 10gbit,50us`.
//
// A rank's outgoing link is a token bucket without depth: messages leave one after another at its
// rate, and arrive `latency` later. Beside each message the sender sends its arrival time, by the
// steady clock that the processes of a machine share; a receiver does not read the message before.

#include <chrono>
#include <mutex>
#include <string_view>
#include <vector>

#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

struct LinkShape {
  double bytes_per_second = 0;
  double latency = 0;  ///< seconds
  /// Reads "10gbit,50us": rates in kbit, mbit, gbit (10^3, 10^6, 10^9 bits a second), delays in us,
  /// ms, s; the delay may be left out. Throws ConfigError.
  static LinkShape parse(std::string_view text);
};

/// One rank's outgoing link; shared by all its channels. Thread-safe.
class ShapedLink {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ShapedLink(const LinkShape& shape) : shape_(shape) {}
  /// Returns when a message of `bytes` that is handed over now will have left.
  Clock::time_point send(size_t bytes);
  /// Returns how much later it will have arrived.
  Clock::duration latency() const;

 private:
  LinkShape shape_;
  std::mutex mutex_;
  Clock::time_point free_{};
};

class ShapedChannel final : public ChannelAround {
 public:
  /// All ranks must be on one machine. `link` outlives the channel.
  ShapedChannel(std::vector<RoundOfMessages> rounds, const OpenChannel& inner, ShapedLink& link);
  ~ShapedChannel() override { inner_.reset(); }

  void post(size_t round) override;
  bool received() override;
  bool sent() override { return Clock::now() >= left_ && inner_->sent(); }
  size_t leaving() override { return Clock::now() < left_ ? bytes_ : 0; }

 private:
  using Clock = ShapedLink::Clock;
  using Times = std::vector<int64_t>;  // for a round's messages: nanoseconds of the steady clock
  std::vector<RoundOfMessages> accompanied() override;

  std::vector<Times> departing_, arriving_;  // by round
  ShapedLink& link_;
  Clock::time_point left_{};
  size_t bytes_ = 0;  // bytes of the posted round
};

}  // namespace tutti::comm
