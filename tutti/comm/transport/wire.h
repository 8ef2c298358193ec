#pragma once
// Wire: messages between any two ranks of a group, over any network. comm/transport builds
// communicators on it; implementations: comm/transport/mpi, comm/transport/tcp.
//
// Messages from one rank to another with equal tags arrive in their order. A wire also carries the
// alarm of a rank that gives up to all ranks of the job.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/transport/channel.h"

namespace tutti::comm {

class Communicator;

class Wire {
 public:
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string name() const = 0;  ///< "MPI": for messages

  /// Control messages in flight. When they are abandoned (an exception passes), receives are
  /// cancelled, so that nothing is written into memory that is gone.
  class Messages {
   public:
    virtual ~Messages() = default;
    /// Sends a message; `data` must not change until test() is true.
    void send(const void* data, size_t bytes, int to, int tag) {
      post_send(data, bytes, to, tag, false);
    }
    /// Does the same, but is complete only when the receiver has begun to take the message.
    void send_taken(const void* data, size_t bytes, int to, int tag) {
      post_send(data, bytes, to, tag, true);
    }
    /// Receives a message. Once it has come, throws CommError if it has any other size.
    void receive(void* data, size_t bytes, int from, int tag) {
      post_receive(data, bytes, from, tag, true);
    }
    /// Receives a message of any size up to `room`; arrived() returns its size.
    void receive_up_to(void* data, size_t room, int from, int tag) {
      post_receive(data, room, from, tag, false);
    }
    /// Returns whether all are complete. Makes progress, never blocks.
    virtual bool test() = 0;
    /// Returns whether message i, in the order of the calls, is complete.
    virtual bool done(size_t i) const = 0;
    /// Returns the bytes of message i, which was received.
    virtual size_t arrived(size_t i) const = 0;

   private:
    virtual void post_send(const void* data, size_t bytes, int to, int tag, bool until_taken) = 0;
    virtual void post_receive(void* data, size_t room, int from, int tag, bool exactly) = 0;
  };
  virtual std::unique_ptr<Messages> messages() = 0;

  /// Receives messages with one tag from any rank, in the order in which they come. While it lives,
  /// no other object of this rank receives that tag. It takes one message at a time.
  class Inbox {
   public:
    virtual ~Inbox() = default;
    struct Letter {
      int from = 0;
      std::span<const std::byte> data;  ///< valid until the next call of next()
    };
    /// Returns the next message, if it has come. Makes progress, never blocks. Throws CommError for
    /// a message longer than `room`.
    virtual std::optional<Letter> next() = 0;
  };
  /// Opens an inbox. Not collective; senders use send() with the same tag once they know of it.
  virtual std::unique_ptr<Inbox> inbox(size_t room, int tag) = 0;
  /// Control messages have tags below kControlTags; above, channels and users' messages have every
  /// other tag, because the smallest number of tags that an MPI has is 32,767.
  static constexpr int kControlTags = 16;
  static int tag_of_channel(int number) { return kControlTags + 2 * number; }
  static int tag_of_user(int tag) { return kControlTags + 2 * tag + 1; }
  /// Bytes of the longest control message. Longer ones are cut in the same way on both sides.
  static constexpr size_t kLongestMessage = size_t{1} << 30;
  /// Calls body(begin, size) for each message of so many bytes; once for none.
  template <class Body>
  static void for_each_message(size_t bytes, Body body) {
    size_t begin = 0;
    do {
      const size_t size = std::min(kLongestMessage, bytes - begin);
      body(begin, size);
      begin += size;
    } while (begin < bytes);
  }

  /// Opens a channel for the messages of a planned operation, apart from those with other numbers.
  /// `communicator` names ranks in errors. Not collective. Throws CommError when numbers run out.
  virtual std::unique_ptr<Channel> channel(const Communicator& communicator,
                                           std::vector<RoundOfMessages> rounds, int number) = 0;
  /// Makes a wire among `members`, ranks of this one in their new order, this rank among them.
  /// Collective: every rank calls it with the part that it belongs to. `what` and `timeout`, in
  /// seconds, serve the error when not all come.
  virtual std::unique_ptr<Wire> part(const std::vector<int>& members, const std::string& what,
                                     double timeout) = 0;

  /// Returns why no other thread may move messages; empty when it may.
  virtual std::string thread_refusal() const = 0;
  virtual void raise_alarm() = 0;
  /// Returns the rank of the job that has given up, if one has. Never blocks.
  virtual std::optional<int> alarm() = 0;
  /// Returns how the process of `rank` is known to have ended; empty otherwise. Never blocks.
  virtual std::string lost(int rank) = 0;
  /// Returns how a rank whose process is known to live has left the group; empty otherwise.
  /// `find_out`: may cost a connection; otherwise only what is known already.
  virtual std::string left(int rank, bool find_out) = 0;
  /// Ends the job after `message` is printed, once the others have printed theirs.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;

 protected:
  Wire(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

/// Returns the error text for a message of unexpected size.
std::string other_size(const std::string& from, size_t sent, size_t expected);

}  // namespace tutti::comm
