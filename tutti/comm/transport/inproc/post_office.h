#pragma once
// PostOffice: messages among ranks that are threads. A sender leaves the address of its bytes, the
// receiver copies them. Internal to comm/transport/inproc.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>

#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// One for all ranks of a group. Thread-safe; outlives the messages and inboxes.
class PostOffice {
 public:
  std::unique_ptr<Wire::Messages> messages(int rank);
  std::unique_ptr<Wire::Inbox> inbox(int rank, size_t room, int tag);

 private:
  friend class ThreadMessages;
  friend class ThreadInbox;
  static constexpr int kAnybody = -1;
  struct Address {
    int from, to, tag;
    auto operator<=>(const Address&) const = default;
  };
  struct Letter {
    Address address;  // in an inbox: from kAnybody
    int from = 0;
    std::span<const std::byte> bytes;
    bool taken = false;
  };
  struct Taken {
    int from;
    size_t bytes;
  };
  std::shared_ptr<Letter> post(Address address, std::span<const std::byte> bytes);
  bool taken(const Letter& letter);
  // Registers a receiver that waits from now on, and returns its number. The k-th letter of an
  // address is for the k-th receiver that waits there, whichever of these looks first.
  uint64_t expect(const Address& address);
  void forget(const Address& address, uint64_t receiver);
  // Copies the letter for this receiver, or the oldest of an inbox, into `room`; returns nothing
  // when it has not come.
  std::optional<Taken> take(const Address& address, uint64_t receiver, std::span<std::byte> room);
  void take_back(const std::shared_ptr<Letter>& letter);
  void open_inbox(const Address& address);
  void close_inbox(const Address& address);

  struct Box {
    std::deque<std::shared_ptr<Letter>> letters;
    std::deque<uint64_t> receivers;
  };
  std::mutex mutex_;
  std::map<Address, Box> boxes_;
  std::set<Address> inboxes_;
  uint64_t receivers_ = 0;
};

}  // namespace tutti::comm
