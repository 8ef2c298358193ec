#pragma once
// Connection: the exchange between an output and the input it becomes, planned in both directions
// on communication buffers of its own.

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

  /// The communication buffer of a side, bytes() long: what it packs, and what the other has sent.
  std::byte* buffer(Side side) const { return buffers_[static_cast<size_t>(side)]; }
  size_t bytes() const { return bytes_; }
  /// Whether `sender` sends anything.
  bool sends(Side sender) const { return route(sender).exchange != nullptr; }
  /// Given to the collective at each start.
  size_t sent_bytes(Side sender) const {
    return sends(sender) ? route(sender).exchange->bytes() : 0;
  }
  /// Sends what is packed in `packed`, as long as a buffer: buffer(sender), or the program's own.
  /// Only where sends(sender).
  void start(Side sender, const void* packed);
  /// Waits for what the other side has started. Null: nothing is ever sent to this side, or has
  /// been so far.
  void* wait(Side receiver);
  /// Waits for whatever is in flight.
  void complete();

 private:
  struct Route {
    std::unique_ptr<Planned> exchange;
    size_t begin = 0;  // in the sender's buffer, of what it reads
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
