// The thread that serves a TcpStore.

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "tutti/base/error.h"
#include "tutti/comm/bootstrap/listener.h"
#include "tutti/comm/bootstrap/store_protocol.h"
#include "tutti/comm/bootstrap/tcp_store.h"

namespace tutti::comm {

using namespace store_protocol;

namespace {

using StoreClock = std::chrono::steady_clock;
constexpr auto kLookAtDeadlines = std::chrono::milliseconds(100);
constexpr size_t kLongestRequest =
    sizeof(store_protocol::Request) + Store::kLongestKey + Store::kLongestValue;

std::string challenge_text(const Nonce& nonce) {
  const store_protocol::Challenge challenge{store_protocol::kMagic, nonce};
  return {reinterpret_cast<const char*>(&challenge), sizeof challenge};
}

}  // namespace

class TcpStoreServer::Service {
 public:
  Service(Socket listener, const Socket& wake, std::string secret)
      : listener_(std::move(listener), {sizeof(store_protocol::Introduction), challenge_text}),
        secret_(std::move(secret)), poll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!poll_) throw CommError(fmt::format("epoll_create1: {}", file_error(errno)));
    watch(EPOLL_CTL_ADD, listener_.ready().descriptor(), EPOLLIN);
    watch(EPOLL_CTL_ADD, wake.descriptor(), EPOLLIN);
    wake_ = wake.descriptor();
  }

  void admit_nobody() { listener_.close(); }

  void serve() {
    std::array<epoll_event, 64> events;
    for (;;) {
      const int n = epoll_wait(poll_.descriptor(), events.data(), static_cast<int>(events.size()),
                               pending() ? static_cast<int>(kLookAtDeadlines.count()) : -1);
      for (int i = 0; i < n; ++i) {
        const int descriptor = events[static_cast<size_t>(i)].data.fd;
        if (descriptor == wake_) return;
        if (descriptor == listener_.ready().descriptor())
          admit_strangers();
        else if (const auto at = clients_.find(descriptor);
                 at != clients_.end() && !serve_safely(at->second))
          forget(descriptor);
      }
      look_at_deadlines();
    }
  }

 private:
  struct Client {
    Socket socket;
    std::string in = {}, out = {};      // `in` never longer than a request, `out` than a reply
    std::string waits_for = {};         // a key that is not set yet
    StoreClock::time_point deadline{};  // end of the wait
  };

  // Whether there is a deadline to check.
  bool pending() const { return waiting_ > 0 || listener_.pending(); }

  void watch(int operation, int descriptor, uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor;
    epoll_ctl(poll_.descriptor(), operation, descriptor, &event);
  }

  // Without memory or random numbers for a stranger its connection ends, and it connects again.
  void admit_strangers() {
    try {
      for (Stranger& stranger : listener_.look()) admit(stranger);
    } catch (const std::exception&) {}  // their connections have ended
  }

  void admit(Stranger& stranger) {
    store_protocol::Introduction theirs;
    std::memcpy(&theirs, stranger.answer.data(), sizeof theirs);
    const std::string transcript = both(stranger.challenge, theirs.nonce);
    const bool proved = theirs.magic == store_protocol::kMagic &&
                        equal(theirs.proof, proof(secret_, "store client", transcript));
    const store_protocol::Welcome welcome =
        proved ? store_protocol::Welcome{1, proof(secret_, "store server", transcript)}
               : store_protocol::Welcome{0, {}};
    const int descriptor = stranger.socket.descriptor();
    // The first bytes on a connection always fit.
    if (::send(descriptor, &welcome, sizeof welcome, MSG_NOSIGNAL) != sizeof welcome || !proved)
      return;
    watch(EPOLL_CTL_ADD, descriptor, EPOLLIN);
    const auto at =
        clients_.emplace(descriptor, Client{.socket = std::move(stranger.socket)}).first;
    if (!serve_safely(at->second)) forget(descriptor);
  }

  void forget(int descriptor) {
    const auto at = clients_.find(descriptor);
    if (!at->second.waits_for.empty()) --waiting_;
    clients_.erase(at);  // closed, and therefore no longer watched
  }

  // Without memory for a client its connection is over.
  bool serve_safely(Client& client) {
    try {
      return serve(client);
    } catch (const std::exception&) {
      return false;
    }
  }

  // Returns false where the connection is over.
  bool serve(Client& client) {
    for (;;) {
      if (!flush(client)) return false;
      // One request at a time: a client that does not read its answers gets no more of them.
      if (!client.out.empty() || !client.waits_for.empty()) return still_there(client);
      const size_t wanted = wanted_by(client);
      if (wanted > kLongestRequest) return false;
      if (client.in.size() >= wanted) {
        if (!act(client)) return false;
        continue;
      }
      std::array<char, 4096> piece;
      const ssize_t n = ::recv(client.socket.descriptor(), piece.data(),
                               std::min(piece.size(), wanted - client.in.size()), 0);
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
      if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
      if (n > 0) client.in.append(piece.data(), static_cast<size_t>(n));
    }
  }

  // Returns the length of the client's request, as far as it is known; more than kLongestRequest
  // for an invalid one.
  static size_t wanted_by(const Client& client) {
    if (client.in.size() < sizeof(store_protocol::Request)) return sizeof(store_protocol::Request);
    const store_protocol::Request request = request_of(client);
    if (request.key_bytes == 0 || request.key_bytes > Store::kLongestKey ||
        request.value_bytes > Store::kLongestValue)
      return kLongestRequest + 1;
    return sizeof(store_protocol::Request) + request.key_bytes + request.value_bytes;
  }
  static store_protocol::Request request_of(const Client& client) {
    store_protocol::Request request;
    std::memcpy(&request, client.in.data(), sizeof request);
    return request;
  }

  // A client that waits sends nothing; it may go away.
  static bool still_there(const Client& client) {
    char ignored = 0;
    const ssize_t n = ::recv(client.socket.descriptor(), &ignored, 1, MSG_PEEK);
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  }

  bool flush(Client& client) const {
    while (!client.out.empty()) {
      const ssize_t n =
          ::send(client.socket.descriptor(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        watch(EPOLL_CTL_MOD, client.socket.descriptor(), EPOLLIN | EPOLLOUT);
        return true;
      }
      if (n <= 0) return false;
      client.out.erase(0, static_cast<size_t>(n));
      if (client.out.empty()) watch(EPOLL_CTL_MOD, client.socket.descriptor(), EPOLLIN);
    }
    return true;
  }

  bool act(Client& client) {
    const store_protocol::Request request = request_of(client);
    const std::string key = client.in.substr(sizeof request, request.key_bytes);
    std::string value = client.in.substr(sizeof request + request.key_bytes);
    client.in.clear();
    if (request.operation == store_protocol::kSet) return set(client, key, std::move(value));
    if (request.operation != store_protocol::kGet) return false;
    if (const auto at = values_.find(key); at != values_.end()) {
      answer(client, store_protocol::kDone, at->second);
    } else if (!(request.seconds > 0)) {
      answer(client, store_protocol::kNotSet, {});
    } else {
      client.waits_for = key;
      client.deadline =
          StoreClock::now() + std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::duration<double>(std::min(request.seconds, 1e8)));
      ++waiting_;
    }
    return true;
  }

  bool set(Client& client, const std::string& key, std::string value) {
    const auto at = values_.find(key);
    const size_t before = at == values_.end() ? 0 : key.size() + at->second.size();
    const size_t after = bytes_ - before + key.size() + value.size();
    if (after > kMostBytes) {
      answer(client, store_protocol::kFull, {});
      return true;
    }
    bytes_ = after;
    values_[key] = value;
    answer(client, store_protocol::kDone, {});
    if (waiting_ == 0) return true;
    for (auto& [descriptor, other] : clients_)
      if (other.waits_for == key) {
        end_wait(other, store_protocol::kDone, value);
      }
    return true;
  }

  void end_wait(Client& client, store_protocol::Status status, const std::string& value) {
    client.waits_for.clear();
    --waiting_;
    answer(client, status, value);
    flush(client);  // an error is found when the socket is next ready
  }

  static void answer(Client& client, store_protocol::Status status, const std::string& value) {
    const store_protocol::Reply reply{status, static_cast<uint32_t>(value.size())};
    client.out.assign(reinterpret_cast<const char*>(&reply), sizeof reply);
    client.out += value;
  }

  void look_at_deadlines() {
    const auto now = StoreClock::now();
    if (!pending() || now < next_look_) return;
    next_look_ = now + kLookAtDeadlines;
    if (listener_.pending()) admit_strangers();
    for (auto& [descriptor, client] : clients_)
      if (now >= client.deadline && !client.waits_for.empty())
        end_wait(client, store_protocol::kNotSet, {});
  }

  Listener listener_;
  std::string secret_;
  Socket poll_;
  int wake_ = -1;
  std::map<int, Client> clients_;  // by descriptor
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0, waiting_ = 0;
  StoreClock::time_point next_look_{};
};

TcpStoreServer::TcpStoreServer(const std::string& host, int port, std::string secret)
    : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (secret.empty()) throw ConfigError("the store needs a secret of the job that is not empty");
  if (!wake_) throw CommError(fmt::format("eventfd: {}", file_error(errno)));
  const SocketAddress address = resolve(host, port).front();
  Socket listener = listen_on(means_this_host_alone(host, address) ? std::optional(address)
                                                                   : std::optional<SocketAddress>(),
                              port);
  port_ = port_of(listener);
  service_ = std::make_unique<Service>(std::move(listener), wake_, std::move(secret));
  thread_ = std::jthread([service = service_.get()] { service->serve(); });
}

void TcpStoreServer::admit_nobody() { service_->admit_nobody(); }

TcpStoreServer::~TcpStoreServer() {
  eventfd_t one = 1;
  eventfd_write(wake_.descriptor(), one);
}

}  // namespace tutti::comm
