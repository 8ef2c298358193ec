#include "tutti/comm/transport/mpi/mpi_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <string_view>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/comm/transport/mpi/alarm.h"

namespace tutti::comm {

void check_mpi(int code, const char* call, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  std::string_view path = file;
  if (const auto at = path.rfind("tutti/"); at != std::string_view::npos) path.remove_prefix(at);
  throw CommError(fmt::format("{} failed: {} ({}:{})", call,
                              std::string_view(text.data(), static_cast<size_t>(length)), path,
                              line));
}

// Not every MPI knows how much was sent.
void check_receive(int code, const MPI_Status& status, const std::string& from, size_t room,
                   const char* call, const char* file, int line) {
  int of = MPI_SUCCESS, bytes = 0;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &of);
  if (of != MPI_ERR_TRUNCATE) return check_mpi(code, call, file, line);
  if (MPI_Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED &&
      static_cast<size_t>(bytes) > room)
    throw CommError(other_size(from, static_cast<size_t>(bytes), room));
  throw CommError(
      fmt::format("{} sent more than the {} bytes that were expected; all ranks need the same "
                  "configuration and the same program",
                  from, room));
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_CALL(MPI_Comm_rank(comm, &rank));
  return rank;
}

int number_of_ranks(MPI_Comm comm) {
  int size = 0;
  MPI_CALL(MPI_Comm_size(comm, &size));
  return size;
}

void abort_in_turn(MPI_Comm comm, int code) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const std::chrono::milliseconds turn(100);
  std::this_thread::sleep_for(turn * std::min(rank, 10));
  MPI_Abort(comm, code);
}

void Requests::post_send(const void* data, size_t bytes, int to, int tag, bool until_taken) {
  CHECK(bytes <= INT_MAX, "a message of {} bytes", bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  if (until_taken)
    MPI_CALL(MPI_Issend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &request));
  else
    MPI_CALL(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_, &request));
  messages_.push_back({request, Kind::send, static_cast<int>(bytes), to, 0});
}

void Requests::post_receive(void* data, size_t bytes, int from, int tag, bool exactly) {
  CHECK(bytes <= INT_MAX, "a message of {} bytes", bytes);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_CALL(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, comm_, &request));
  messages_.push_back(
      {request, exactly ? Kind::receive : Kind::receive_up_to, static_cast<int>(bytes), from, 0});
}

std::string Requests::peer_name(const Message& message) {
  return fmt::format("rank {} of this group", message.peer);
}

bool Requests::test() {
  bool all = true;
  for (Message& message : messages_) {
    if (message.request == MPI_REQUEST_NULL) continue;
    int flag = 0;
    MPI_Status status;
    const int code = MPI_Test(&message.request, &flag, &status);
    if (code != MPI_SUCCESS && message.kind != Kind::send)
      check_receive(code, status, peer_name(message), static_cast<size_t>(message.bytes),
                    "MPI_Test", __FILE__, __LINE__);
    check_mpi(code, "MPI_Test", __FILE__, __LINE__);
    all = all && flag != 0;
    if (flag == 0 || message.kind == Kind::send) continue;
    MPI_CALL(MPI_Get_count(&status, MPI_BYTE, &message.arrived));
    if (message.kind == Kind::receive && message.arrived != message.bytes)
      throw CommError(other_size(peer_name(message), static_cast<size_t>(message.arrived),
                                 static_cast<size_t>(message.bytes)));
  }
  return all;
}

bool Requests::done(size_t i) const { return messages_[i].request == MPI_REQUEST_NULL; }

Requests::~Requests() {
  for (Message& message : messages_) {
    if (message.request == MPI_REQUEST_NULL) continue;
    if (message.kind == Kind::send)
      Alarm::abandon_send();
    else
      MPI_Cancel(&message.request);
    MPI_Request_free(&message.request);
  }
}

std::optional<Wire::Inbox::Letter> MpiInbox::next() {
  if (request_ == MPI_REQUEST_NULL)
    MPI_CALL(MPI_Irecv(room_.data(), static_cast<int>(room_.size()), MPI_BYTE, MPI_ANY_SOURCE, tag_,
                       comm_, &request_));
  int flag = 0, bytes = 0;
  MPI_Status status;
  MPI_CALL(MPI_Test(&request_, &flag, &status));
  if (flag == 0) return std::nullopt;
  MPI_CALL(MPI_Get_count(&status, MPI_BYTE, &bytes));
  return Letter{status.MPI_SOURCE, std::span(room_).first(static_cast<size_t>(bytes))};
}

MpiInbox::~MpiInbox() {
  if (request_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&request_);
  MPI_Request_free(&request_);
}

}  // namespace tutti::comm
