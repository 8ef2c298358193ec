#include "tutti/comm/bootstrap/tcp_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/comm/bootstrap/store_protocol.h"

namespace tutti::comm {

using namespace store_protocol;

namespace {

constexpr auto kRetryConnect = std::chrono::milliseconds(100);
constexpr auto kOneTry = std::chrono::seconds(10);  // then another try does better

SocketDeadline after(double seconds) {
  // A limit far beyond any wait, without overflow.
  constexpr double kMostSeconds = 1e8;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, kMostSeconds)));
}

std::string reason_of_errno() {
  return errno == 0 ? "the connection has ended" : std::strerror(errno);
}

}  // namespace

struct TcpStore::ReferenceResult {
  uint32_t status = store_protocol::kDone;
  std::string value;
};

TcpStore::TcpStore(const std::string& host, int port, std::string secret, double timeout)
    : host_(host), port_(port), secret_(std::move(secret)), timeout_(timeout) {
  if (secret_.empty()) throw ConfigError("the store needs a secret of the job that is not empty");
  idle_.push_back(connect(after(timeout), Server::starting));
}

// Tries until the server is there, where it may start later. A server that ends a connection before
// it has answered may only have had too many.
Socket TcpStore::connect(SocketDeadline deadline, Server server) const {
  std::string reason;
  do {
    bool again = server == Server::starting;
    for (const SocketAddress& address : resolve(host_, port_)) {
      const auto soon = std::min(deadline, std::chrono::steady_clock::now() + kOneTry);
      Socket socket = begin_connect(address);
      if (socket && meet(socket, address, soon)) return socket;
      again = again || may_try_again(errno);
      reason = fmt::format("{}: {}", address.text(), reason_of_errno());
    }
    if (!again)
      throw CommError(fmt::format("the job's store at {}:{} is gone: {}", host_, port_, reason));
    std::this_thread::sleep_for(kRetryConnect);
  } while (std::chrono::steady_clock::now() < deadline);
  throw CommError(fmt::format(
      "the job's store at {}:{} does not answer within {:g} s ({}): has the rank that serves it "
      "been started, and on the host with this address?",
      host_, port_, timeout_, reason));
}

// Returns false and sets errno where the connection ends or time is up; 0: it ended in order.
bool TcpStore::meet(const Socket& socket, const SocketAddress& address,
                    SocketDeadline deadline) const {
  store_protocol::Challenge challenge{};
  if (!receive_all(socket, value_room(challenge).first(sizeof challenge.magic), deadline))
    return false;
  if (challenge.magic != store_protocol::kMagic)
    throw CommError(
        fmt::format("{} is no store of this kind, or on another kind of machine", address.text()));
  if (!receive_all(socket, value_room(challenge.nonce), deadline)) return false;
  store_protocol::Introduction mine{store_protocol::kMagic, fresh_nonce(), {}};
  const std::string transcript = both(challenge.nonce, mine.nonce);
  mine.proof = proof(secret_, "store client", transcript);
  store_protocol::Welcome welcome{};
  if (!send_all(socket, value_bytes(mine), deadline) ||
      !receive_all(socket, value_room(welcome), deadline))
    return false;
  if (welcome.accepted != 1)
    throw CommError(
        fmt::format("the job's store at {}:{} refuses this process: its secret is "
                    "another one than the store's",
                    host_, port_));
  if (!equal(welcome.proof, proof(secret_, "store server", transcript)))
    throw CommError(
        fmt::format("who answers at {}:{} does not know the job's secret", host_, port_));
  return true;
}

// Threads do not share a connection, because the server answers one request after another.
Socket TcpStore::take_connection(SocketDeadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Socket socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  return connect(deadline, Server::running);
}

TcpStore::ReferenceResult TcpStore::ask(uint32_t operation, const std::string& key,
                                        const std::string& value, double seconds) {
  if (key.empty() || key.size() > kLongestKey || value.size() > kLongestValue)
    throw CommError(fmt::format("a key of {} and a value of {} bytes: a store takes 1 to {} and {}",
                                key.size(), value.size(), kLongestKey, kLongestValue));
  if (std::isnan(seconds)) seconds = 0;
  const SocketDeadline deadline = after(seconds + timeout_);
  Socket socket = take_connection(deadline);
  const store_protocol::Request request{operation, static_cast<uint32_t>(key.size()),
                                        static_cast<uint32_t>(value.size()), 0, seconds};
  std::string message(reinterpret_cast<const char*>(&request), sizeof request);
  message += key + value;
  store_protocol::Reply reply{};
  ReferenceResult answer;
  bool all = send_all(socket, std::as_bytes(std::span(message)), deadline) &&
             receive_all(socket, value_room(reply), deadline);
  if (all && reply.bytes <= kLongestValue) {
    answer.status = reply.status;
    answer.value.resize(reply.bytes);
    all = receive_all(socket, std::as_writable_bytes(std::span(answer.value)), deadline);
  }
  if (all && reply.bytes <= kLongestValue) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(socket));
    return answer;
  }
  // The connection ends here: a late answer would be taken for the next request's.
  const std::string reason = reason_of_errno();
  throw CommError(
      fmt::format("the job's store at {}:{} has not answered: {}", host_, port_, reason));
}

void TcpStore::set(const std::string& key, const std::string& value) {
  if (ask(store_protocol::kSet, key, value, 0).status != store_protocol::kDone)
    throw CommError(fmt::format("the job's store at {}:{} is full", host_, port_));
}

std::optional<std::string> TcpStore::get(const std::string& key, double seconds) {
  ReferenceResult answer = ask(store_protocol::kGet, key, {}, seconds);
  if (answer.status != store_protocol::kDone) return std::nullopt;
  return std::move(answer.value);
}

}  // namespace tutti::comm
