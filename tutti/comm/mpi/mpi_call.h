#pragma once
// The one way to call MPI: MPI_CALL(MPI_Barrier(c)) throws CommError with MPI's own text. Only
// files of this folder include this.

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::comm {

/// Bytes of the longest single message: MPI counts them in an int. Longer ones are cut, alike on
/// both sides.
constexpr size_t kLongestMessage = size_t{1} << 30;

/// The text of what a rank sent that another did not expect; both only where they are known.
std::string other_size(const std::string& from, size_t sent, size_t expected);

void check_mpi(int code, const char* call, const char* file, int line);

/// MPI_Abort, of one rank after the other: the first call ends them all. With several at once
/// mpirun of Open MPI 5.0.7 crashed or hung in one job of seven.
void abort_in_turn(MPI_Comm comm, int code);

/// Messages in flight. When they are abandoned (an exception passes), receives are cancelled, so
/// that nothing is written into memory that is gone. Move-only.
class Requests {
 public:
  Requests() = default;
  ~Requests();
  Requests(Requests&& other) noexcept;
  Requests& operator=(Requests&& other) noexcept;

  /// One message of at most INT_MAX bytes; `data` stays untouched until test() says so.
  void send(const void* data, size_t bytes, int to, int tag, MPI_Comm comm);
  /// Throws CommError, when it has come, for a message of any other size.
  void receive(void* data, size_t bytes, int from, int tag, MPI_Comm comm);
  /// A message of any size up to `room`; arrived() says which.
  void receive_up_to(void* data, size_t room, int from, int tag, MPI_Comm comm);
  /// Whether all are complete. Makes progress, never blocks.
  bool test();
  /// Whether message i, in the order of the calls, is complete.
  bool done(size_t i) const;
  /// Bytes of message i, which was received.
  size_t arrived(size_t i) const { return static_cast<size_t>(messages_[i].arrived); }

 private:
  enum class Kind { send, receive, receive_up_to };
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    Kind kind = Kind::send;
    int bytes = 0;
    int peer = 0;
    int arrived = 0;
  };
  void receive(Kind kind, void* data, size_t bytes, int from, int tag, MPI_Comm comm);
  void abandon() noexcept;
  std::vector<Message> messages_;
};

}  // namespace tutti::comm

#define MPI_CALL(call) ::tutti::comm::check_mpi((call), #call, __FILE__, __LINE__)
