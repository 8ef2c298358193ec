#include "tutti/comm/transport/tcp/readiness.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::comm::tcp {
namespace {

void control(const Socket& poll, int operation, const Socket& socket, uint64_t name,
             bool writable) {
  epoll_event event{};
  event.events = EPOLLIN | (writable ? uint32_t{EPOLLOUT} : 0);
  event.data.u64 = name;
  if (epoll_ctl(poll.descriptor(), operation, socket.descriptor(), &event) != 0)
    throw CommError(fmt::format("epoll_ctl: {}", std::strerror(errno)));
}

uint64_t name_of_socket(Readiness::What what, uint32_t number) {
  return static_cast<uint64_t>(what) << 32 | number;
}

}  // namespace

Readiness::Readiness() : poll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!poll_) throw CommError(fmt::format("epoll_create1: {}", file_error(errno)));
}

void Readiness::add(const Socket& socket, What what, uint32_t number, bool writable) const {
  control(poll_, EPOLL_CTL_ADD, socket, name_of_socket(what, number), writable);
}

void Readiness::change(const Socket& socket, What what, uint32_t number, bool writable) const {
  control(poll_, EPOLL_CTL_MOD, socket, name_of_socket(what, number), writable);
}

int Readiness::look(Event* events) const {
  std::array<epoll_event, kMost> found;
  const int n = epoll_wait(poll_.descriptor(), found.data(), kMost, 0);
  for (int i = 0; i < n; ++i) {
    const epoll_event& event = found[static_cast<size_t>(i)];
    constexpr uint32_t kOver = EPOLLHUP | EPOLLERR;  // reading or writing reports the error
    events[i] = {.what = static_cast<What>(event.data.u64 >> 32),
                 .number = static_cast<uint32_t>(event.data.u64),
                 .readable = (event.events & (EPOLLIN | kOver)) != 0,
                 .writable = (event.events & (EPOLLOUT | kOver)) != 0};
  }
  return n < 0 ? 0 : n;
}

}  // namespace tutti::comm::tcp
