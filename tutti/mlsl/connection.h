#pragma once
// Connection: the exchange between an output and the input that it becomes, planned in both
// directions on communication buffers of its own.

#include <array>

#include "tutti/mlsl/exchange.h"
#include "tutti/mlsl/layout/activation_exchange.h"

namespace tutti::mlsl {

enum class Side : uint8_t { producer, consumer };
inline Side other(Side side) { return side == Side::producer ? Side::consumer : Side::producer; }

class Connection {
 public:
  /// Collective over the group, which is exchange.group. `exchange.kind` is not none.
  Connection(Group& group, const layout::ActivationExchange& exchange, comm::Element element);

  /// Returns the communication buffer of a side, bytes() long: it holds what the side packs,
  /// and what the other side has sent.
  std::byte* buffer(Side side) const { return buffers_[static_cast<size_t>(side)]; }
  size_t bytes() const { return bytes_; }
  /// Whether `sender` sends anything in its direction.
  bool sends(Side sender) const { return route(sender).exchange != nullptr; }
  /// Returns the bytes passed to the collective at each start.
  size_t sent_bytes(Side sender) const {
    return sends(sender) ? route(sender).exchange->bytes() : 0;
  }
  /// Sends the values packed in `packed`, as long as a buffer: buffer(sender), or the program's
  /// own. Only if sends(sender).
  void start(Side sender, const void* packed);
  /// Waits for the exchange that the other side has started. Returns null if nothing is ever sent
  /// to this side, or nothing has been so far.
  void* wait(Side receiver);
  /// Waits for all operations in flight.
  void complete();

 private:
  struct Route {
    std::unique_ptr<Planned> exchange;
    size_t begin = 0;  // where its values begin in the sender's buffer
    bool started = false;
  };
  const Route& route(Side sender) const { return routes_[static_cast<size_t>(sender)]; }
  void plan(Group& group, Side sender, const layout::ActivationExchange& exchange,
            const layout::GroupCollective& collective, comm::Element element);

  size_t bytes_;
  std::unique_ptr<comm::Window> window_;
  std::array<std::byte*, 2> buffers_{};
  std::array<Route, 2> routes_;  // by sender
};

}  // namespace tutti::mlsl
