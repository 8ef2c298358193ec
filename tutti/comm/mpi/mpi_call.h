#pragma once
// The one way to call MPI: MPI_CALL(MPI_Barrier(c)) throws CommError with MPI's own text. Only
// files of this folder include this.

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace tutti::comm {

void check_mpi(int code, const char* call, const char* file, int line);

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
  void receive(void* data, size_t bytes, int from, int tag, MPI_Comm comm);
  /// Whether all are complete. Makes progress, never blocks.
  bool test();
  /// Whether message i, in the order of the calls, is complete.
  bool done(size_t i) const;

 private:
  struct Message {
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_receive = false;
  };
  void abandon() noexcept;
  std::vector<Message> messages_;
};

}  // namespace tutti::comm

#define MPI_CALL(call) ::tutti::comm::check_mpi((call), #call, __FILE__, __LINE__)
