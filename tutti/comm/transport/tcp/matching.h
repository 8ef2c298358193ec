#pragma once
// Matching: finds the receive for each message by sender, wire and tag, in order. Internal to
// comm/transport/tcp.

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tutti/comm/transport/tcp/messages_in_flight.h"

namespace tutti::comm::tcp {

class Inbound;

/// A message that came before its receive: eager, whole or in part, or only announced.
struct Arrived {
  Inbound* from = nullptr;
  bool announced = false;  ///< only its announcement has come
  uint64_t id = 0;
  size_t bytes = 0;
  size_t have = 0;  ///< bytes that have arrived
  std::unique_ptr<std::byte[]> data;
};

class Matching {
 public:
  /// Gives messages for this wire and tag to one inbox from now on, from any sender, until it is
  /// closed again. None may have come yet.
  void open_inbox(uint64_t wire, int32_t tag) { inboxes_.insert({kAnybody, tag, wire}); }
  void close_inbox(uint64_t wire, int32_t tag) { inboxes_.erase({kAnybody, tag, wire}); }
  /// Returns the key under which a message of this sender, tag and wire is kept.
  Key address(const Key& key) const {
    const Key anybody{kAnybody, key.tag, key.wire};
    return inboxes_.contains(anybody) ? anybody : key;
  }
  /// Returns the first message for a receive, if there is one.
  std::unique_ptr<Arrived> message_for(const Key& key);
  /// Returns the receive that waits for a message, if there is one.
  Incoming* receive_for(const Key& key);
  void wait(Incoming& receive);
  void keep(const Key& key, std::unique_ptr<Arrived> message);
  void withdraw(const Incoming& receive);
  void withdraw(const Key& key, const Inbound& from, uint64_t id);
  /// Forgets an inbox's incomplete messages from a sender whose connection has ended.
  void forget_unfinished(const Inbound& from);
  /// Closes a wire, for which no more receives come. Returns its remaining messages.
  std::vector<std::unique_ptr<Arrived>> close(uint64_t wire);
  bool is_closed(uint64_t wire) const { return closed_.contains(wire); }

 private:
  struct Queue {  // one of the two is empty
    std::vector<Incoming*> receives;
    std::vector<std::unique_ptr<Arrived>> messages;
  };
  using Queues = std::unordered_map<Key, Queue, HashOfKey>;
  void tidy(Queues::iterator at);
  Queues queues_;
  std::unordered_set<uint64_t> closed_;
  std::unordered_set<Key, HashOfKey> inboxes_;
};

}  // namespace tutti::comm::tcp
