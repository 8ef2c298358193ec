#include "tutti/comm/bootstrap/listener.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr auto kAnswerWithin = std::chrono::seconds(10);
constexpr auto kRest = std::chrono::milliseconds(100);
constexpr uint64_t kTheListener = 0;  // strangers have numbers from 1 on

// At least eight files are left for each stranger.
size_t most_strangers() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return Listener::kMost;
  return std::clamp<size_t>(files.rlim_cur / 8, 4, Listener::kMost);
}

bool is_for_lack_of_room(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

struct Listener::Waiting {
  Listener* listener = nullptr;
  uint64_t number = 0;
  size_t host = 0;  // a hash of its peer's address
  Socket socket;
  Nonce challenge{};
  std::string answer;
  Time deadline{};
};

struct Listener::Budget {
  std::mutex mutex;
  std::vector<Waiting> waiting;
  uint64_t last_number = kTheListener;
};

// Never destroyed: a listener may live as long as the process.
Listener::Budget& Listener::budget() {
  static Budget& one = *std::make_unique<Budget>().release();
  return one;
}

Listener::Listener(Socket socket, Protocol protocol)
    : socket_(std::move(socket)), poll_(epoll_create1(EPOLL_CLOEXEC)), protocol_(protocol) {
  if (!poll_) throw CommError(fmt::format("epoll_create1: {}", file_error(errno)));
  if (!watch(EPOLL_CTL_ADD, socket_, EPOLLIN, kTheListener))
    throw CommError(fmt::format("epoll_ctl: {}", std::generic_category().message(errno)));
}

Listener::~Listener() {
  Budget& all = budget();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.waiting, [&](const Waiting& one) { return one.listener == this; });
}

void Listener::close() { ::shutdown(socket_.descriptor(), SHUT_RDWR); }

bool Listener::watch(int operation, const Socket& socket, uint32_t events, uint64_t number) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return epoll_ctl(poll_.descriptor(), operation, socket.descriptor(), &event) == 0;
}

// A forked process may also have the socket, so that closing it does not end the watch.
void Listener::forget(Budget& all, size_t index) {
  Waiting& one = all.waiting[index];
  one.listener->watch(EPOLL_CTL_DEL, one.socket, 0, 0);
  --one.listener->strangers_;
  std::swap(one, all.waiting.back());
  all.waiting.pop_back();
}

// `lot` is random and known only to the newcomer.
void Listener::evict_one(Budget& all, const Nonce& lot) {
  std::vector<size_t> candidates(all.waiting.size());
  std::iota(candidates.begin(), candidates.end(), size_t{0});
  const auto keep_largest_group = [&](auto group_of) {
    const auto group = [&](size_t i) { return all.waiting[i].*group_of; };
    const auto members = [&](size_t i) { return std::ranges::count(candidates, group(i), group); };
    const auto largest = group(*std::ranges::max_element(candidates, {}, members));
    std::erase_if(candidates, [&](size_t i) { return group(i) != largest; });
  };
  keep_largest_group(&Waiting::listener);
  keep_largest_group(&Waiting::host);  // among those that are left
  uint64_t number = 0;
  std::memcpy(&number, lot.data(), sizeof number);
  forget(all, candidates[number % candidates.size()]);
}

void Listener::hear(Budget& all, uint64_t number, std::vector<Stranger>& answered) {
  const auto at = std::ranges::find(all.waiting, number, &Waiting::number);
  if (at == all.waiting.end()) return;
  std::array<char, 256> piece;
  const size_t wanted = protocol_.hello_bytes - at->answer.size();
  const ssize_t n =
      ::recv(at->socket.descriptor(), piece.data(), std::min(piece.size(), wanted), 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (n > 0) at->answer.append(piece.data(), static_cast<size_t>(n));
  if (n > 0 && at->answer.size() < protocol_.hello_bytes) return;
  if (n > 0) {
    watch(EPOLL_CTL_DEL, at->socket, 0, 0);
    answered.push_back({std::move(at->socket), at->challenge, std::move(at->answer)});
  }
  forget(all, static_cast<size_t>(at - all.waiting.begin()));
}

void Listener::accept_some(Budget& all, Time now) {
  const size_t most = most_strangers();
  for (size_t i = 0; i < kAcceptAtOnce; ++i) {
    SocketAddress from;
    Socket socket = accept_on(socket_, &from);
    if (!socket && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket) {
      if (is_for_lack_of_room(errno)) {
        watch(EPOLL_CTL_MOD, socket_, 0, kTheListener);  // it would be ready again at once
        rests_until_ = now + kRest;
        resting_ = true;
      } else if (errno == EINVAL) {
        watch(EPOLL_CTL_DEL, socket_, 0, kTheListener);  // after close()
      }
      return;
    }
    const Nonce challenge = fresh_nonce();
    const std::string greeting = protocol_.greeting(challenge);
    // The first bytes on a connection always fit.
    if (::send(socket.descriptor(), greeting.data(), greeting.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(greeting.size()))
      continue;
    while (all.waiting.size() >= most) evict_one(all, challenge);
    Waiting one{.listener = this,
                .number = ++all.last_number,
                .host = std::hash<std::string>()(from.host()),
                .socket = std::move(socket),
                .challenge = challenge,
                .answer = {},
                .deadline = now + kAnswerWithin};
    if (!watch(EPOLL_CTL_ADD, one.socket, EPOLLIN, one.number)) continue;  // the caller tries again
    all.waiting.push_back(std::move(one));
    ++strangers_;
  }
}

std::vector<Stranger> Listener::look() {
  std::vector<Stranger> answered;
  std::array<epoll_event, kMost + 1> events;
  const int n = epoll_wait(poll_.descriptor(), events.data(), static_cast<int>(events.size()), 0);
  const auto now = std::chrono::steady_clock::now();
  Budget& all = budget();
  const std::lock_guard lock(all.mutex);
  bool asked = false;
  // Connections that are here already come first, so that a flood does not evict them before their
  // answers are read.
  for (int i = 0; i < n; ++i) {
    const uint64_t number = events[static_cast<size_t>(i)].data.u64;
    if (number == kTheListener)
      asked = true;
    else
      hear(all, number, answered);
  }
  for (size_t i = all.waiting.size(); i-- > 0;)
    if (all.waiting[i].listener == this && all.waiting[i].deadline <= now) forget(all, i);
  if (resting_ && now >= rests_until_) {
    resting_ = false;
    watch(EPOLL_CTL_MOD, socket_, EPOLLIN, kTheListener);
  }
  if (asked) accept_some(all, now);
  return answered;
}

}  // namespace tutti::comm
