#pragma once
// ShapedChannel: makes messages as slow as on a described link, to see slow networks on one
// machine: `--shape 10gbit,50us`.
//
// A rank's outgoing link is a token bucket without depth: messages leave one after another at its
// rate, and arrive `latency` later. The sender writes down when each will have arrived, in memory
// that its peers see; a receiver does not look at it before.

#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "tutti/comm/channel.h"
#include "tutti/comm/window.h"

namespace tutti::comm {

class Communicator;

struct LinkShape {
  double bytes_per_second = 0;
  double latency = 0;  ///< seconds
  /// "10gbit,50us": rates in kbit, mbit, gbit (10^3, 10^6, 10^9 bits a second), delays in us, ms,
  /// s; the delay may be left out. Throws ConfigError.
  static LinkShape parse(std::string_view text);
};

/// One rank's outgoing link; shared by all its channels. Thread-safe.
class ShapedLink {
 public:
  using Clock = std::chrono::steady_clock;
  explicit ShapedLink(const LinkShape& shape) : shape_(shape) {}
  /// When a message of `bytes` that is handed over now will have left.
  Clock::time_point send(size_t bytes);
  /// How much later it will have arrived.
  Clock::duration latency() const;

 private:
  LinkShape shape_;
  std::mutex mutex_;
  Clock::time_point free_{};
};

class ShapedChannel final : public Channel {
 public:
  /// Collective. All ranks on one node. `link` outlives the channel.
  ShapedChannel(Communicator& communicator, std::unique_ptr<Channel> inner,
                const std::vector<RoundOfMessages>& rounds, ShapedLink& link);

  void post(size_t round) override;
  void rebind(std::vector<RoundOfMessages> rounds) override { inner_->rebind(std::move(rounds)); }
  bool received() override;
  const std::byte* where(size_t i) const override { return inner_->where(i); }
  void release() override;
  bool sent() override;
  bool leaving() override { return Clock::now() < left_; }
  std::vector<int> missing() const override { return inner_->missing(); }

 private:
  using Clock = ShapedLink::Clock;
  struct Message {
    int peer = 0;
    size_t bytes = 0;
  };
  struct Messages {
    std::vector<Message> receives, sends;
  };
  int64_t& time_of(int owner, int peer, uint64_t number) const;

  Communicator& communicator_;
  std::unique_ptr<Channel> inner_;
  ShapedLink& link_;
  std::vector<Messages> rounds_;
  size_t slots_ = 1;
  std::unique_ptr<Window> times_;  // when a message will have arrived: nanoseconds of the steady
                                   // clock, which a node's processes share
  std::vector<uint64_t> posted_, taken_;  // by peer
  size_t round_ = 0;
  Clock::time_point left_{};
  bool open_ = false;
};

}  // namespace tutti::comm
