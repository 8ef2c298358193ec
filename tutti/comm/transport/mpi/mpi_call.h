#pragma once
// The one way to call MPI: MPI_CALL(MPI_Barrier(c)) throws CommError with MPI's own text. Only
// files of this folder include this.

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

void check_mpi(int code, const char* call, const char* file, int line);

int rank_in(MPI_Comm comm);
int number_of_ranks(MPI_Comm comm);

/// Calls MPI_Abort, one rank after the other: the first call ends them all. With several calls at
/// once mpirun of Open MPI 5.0.7 crashed or hung in one job of seven.
void abort_in_turn(MPI_Comm comm, int code);

/// Checks a receive into `room` bytes that MPI has completed with `code`. Where `room` was too
/// short, throws a CommError with the sender's name, `from`, and the size sent. Checks other errors
/// as check_mpi() does.
void check_receive(int code, const MPI_Status& status, const std::string& from, size_t room,
                   const char* call, const char* file, int line);

class Requests final : public Wire::Messages {
 public:
  explicit Requests(MPI_Comm comm) : comm_(comm) {}
  ~Requests() override;
  bool test() override;
  bool done(size_t i) const override;
  size_t arrived(size_t i) const override { return static_cast<size_t>(messages_[i].arrived); }

 private:
  enum class Kind { send, receive, receive_up_to };
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    Kind kind = Kind::send;
    int bytes = 0;
    int peer = 0;
    int arrived = 0;
  };
  static std::string peer_name(const Message& message);
  void post_send(const void* data, size_t bytes, int to, int tag, bool until_taken) override;
  void post_receive(void* data, size_t room, int from, int tag, bool exactly) override;
  MPI_Comm comm_;
  std::vector<Message> messages_;
};

/// A receive from any source, posted again whenever its message has been read.
class MpiInbox final : public Wire::Inbox {
 public:
  MpiInbox(MPI_Comm comm, size_t room, int tag) : comm_(comm), tag_(tag), room_(room) {}
  ~MpiInbox() override;
  std::optional<Letter> next() override;

 private:
  MPI_Comm comm_;
  int tag_;
  std::vector<std::byte> room_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace tutti::comm

#define MPI_CALL(call) ::tutti::comm::check_mpi((call), #call, __FILE__, __LINE__)
