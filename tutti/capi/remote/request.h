#pragma once
// The protocol between an origin and a target. Internal to capi/remote.
//
//   origin -> target   Request, and the data behind it where they are few        tag `requests`
//   target -> origin   Answer `go`: there is space for the data                  tag `to_origin`
//   origin -> target   the data, in pieces (transfer.h)                          tag `to_target`
//   target -> origin   Answer `done`, and the data behind it where they are few  tag `to_origin`
//   target -> origin   the data, in pieces                                       tag `to_origin`
//
// Lines two and three only occur for requests that bring more data than fit behind them, the last
// one for requests that return more. An origin has one request at a time under way to a target. So
// messages of different requests cannot be confused, requests are done in the order of their start,
// and no unexpected message is longer than kMessage.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tutti/comm/schedule/element.h"
#include "tutti/comm/transport/wire.h"

namespace tutti::comm {
class Communicator;
}

namespace tutti::capi {

/// A kind of access to memory that another rank exposes. `fetch` accumulates and returns the
/// previous values; `atomic_get` returns the values between two accumulates.
enum class Access : uint8_t { put, get, atomic_get, accumulate, fetch };

namespace remote {

std::string_view name_of(Access access);
inline bool brings_data(Access access) {
  return access == Access::put || access == Access::accumulate || access == Access::fetch;
}
inline bool returns_data(Access access) {
  return access != Access::put && access != Access::accumulate;
}
inline bool computes(Access access) {
  return access == Access::accumulate || access == Access::fetch;
}

/// Numbers are in this machine's byte order, as in all messages.
struct Request {
  uint64_t offset = 0, bytes = 0;
  int32_t priority = 0;
  Access access = Access::put;
  comm::Element element = comm::Element::byte;
  comm::ReduceOp op = comm::ReduceOp::sum;
};
/// Returns why memory of `exposed` bytes cannot do the request; empty if it can.
std::string refusal_of(const Request& request, size_t exposed);

enum class Answer : uint64_t { go = 1, done, refused };

inline constexpr size_t kMessage = 1024;                       ///< bytes of the longest request
inline constexpr size_t kBehind = kMessage - sizeof(Request);  ///< bytes of data that fit behind it
inline bool goes_behind(const Request& request) { return request.bytes <= kBehind; }
/// A request or an answer, with the data behind it. It must not move until it has left.
class Note {
 public:
  template <class Head>
  void write(const Head& head, const std::byte* data, size_t bytes) {
    write_bytes(&head, sizeof head, data, bytes);
  }
  const std::byte* data() const { return bytes_.data(); }
  std::byte* room() { return bytes_.data(); }
  size_t size() const { return size_; }

 private:
  void write_bytes(const void* head, size_t head_bytes, const std::byte* data, size_t bytes);
  alignas(16) std::array<std::byte, kMessage> bytes_;
  size_t size_ = 0;
};

/// The ways by which the ranks of one exposed memory reach each other.
struct Ways {
  comm::Communicator& communicator;
  int requests = 0, to_target = 0, to_origin = 0;  ///< tags
  std::function<std::unique_ptr<comm::Wire::Messages>()> messages;
  std::function<std::string(int rank)> lost;  ///< how a rank is gone; empty while it is not
};

}  // namespace remote
}  // namespace tutti::capi
