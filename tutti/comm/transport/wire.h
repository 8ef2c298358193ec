#pragma once
// Wire: messages between any two ranks of a group, whatever lies between them. What
// comm/transport makes a communicator of; implementations: comm/transport/mpi, comm/transport/tcp.
//
// Messages from one rank to another with equal tags arrive in their order. A wire also carries the
// alarm of a rank that gives up, to all ranks of the job.

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
    /// `data` stays untouched until test() says so.
    virtual void send(const void* data, size_t bytes, int to, int tag) = 0;
    /// The same, complete only when the receiver has begun to take it.
    virtual void send_taken(const void* data, size_t bytes, int to, int tag) = 0;
    /// Throws CommError, when it has come, for a message of any other size.
    virtual void receive(void* data, size_t bytes, int from, int tag) = 0;
    /// A message of any size up to `room`; arrived() says which.
    virtual void receive_up_to(void* data, size_t room, int from, int tag) = 0;
    /// Whether all are complete. Makes progress, never blocks.
    virtual bool test() = 0;
    /// Whether message i, in the order of the calls, is complete.
    virtual bool done(size_t i) const = 0;
    /// Bytes of message i, which was received.
    virtual size_t arrived(size_t i) const = 0;
  };
  virtual std::unique_ptr<Messages> messages() = 0;

  /// Messages of anybody with one tag, in the order in which they come. While it lives nobody else
  /// of this rank receives that tag. One message at a time is taken from the transport.
  class Inbox {
   public:
    virtual ~Inbox() = default;
    struct Letter {
      int from = 0;
      std::span<const std::byte> data;  ///< until the next call of next()
    };
    /// The next one, if it has come. Makes progress, never blocks. One that is longer than there is
    /// room is a CommError.
    virtual std::optional<Letter> next() = 0;
  };
  /// Of this rank alone; senders use send() with the same tag, once they know that it is there.
  virtual std::unique_ptr<Inbox> inbox(size_t room, int tag) = 0;
  /// Tags: control messages have those below kControlTags, channels and users' messages take turns
  /// above, because the smallest number of tags that an MPI has is 32,767.
  static constexpr int kControlTags = 16;
  static int tag_of_channel(int number) { return kControlTags + 2 * number; }
  static int tag_of_user(int tag) { return kControlTags + 2 * tag + 1; }
  /// Bytes of the longest control message. Longer ones are cut, alike on both sides.
  static constexpr size_t kLongestMessage = size_t{1} << 30;

  /// The messages of a planned operation, apart from those of all other numbers. `communicator`
  /// names ranks in errors. Of this rank alone. Throws CommError when there are no more numbers.
  virtual std::unique_ptr<Channel> channel(const Communicator& communicator,
                                           std::vector<RoundOfMessages> rounds, int number) = 0;
  /// A wire among `members`, ranks of this one in their new order, this rank among them.
  /// Collective: every rank calls it with the part that it belongs to. `what` and `timeout`, in
  /// seconds, are for the case that not all come.
  virtual std::unique_ptr<Wire> part(const std::vector<int>& members, const std::string& what,
                                     double timeout) = 0;

  /// Why no other thread may move messages; empty when it may.
  virtual std::string thread_refusal() const = 0;
  virtual void raise_alarm() = 0;
  /// The rank of the job that has given up, if one has. Never blocks.
  virtual std::optional<int> alarm() = 0;
  /// How the process of `rank` is known to have left or ended; empty where it is not. Never blocks.
  virtual std::string lost(int rank) = 0;
  /// The same of one whose process is known to live: how it has left the group. `find_out`: may
  /// cost a connection; otherwise what is known already.
  virtual std::string left(int rank, bool find_out) = 0;
  /// Ends the job after `message` is printed, once the others have printed theirs.
  [[noreturn]] virtual void abort(int code, const std::string& message) = 0;

 protected:
  Wire(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

/// The text of what a rank sent that another did not expect.
std::string other_size(const std::string& from, size_t sent, size_t expected);

}  // namespace tutti::comm
