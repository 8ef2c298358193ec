#include "tutti/cli/sample_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <semaphore>
#include <span>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/bootstrap/secret.h"

namespace tutti {
namespace {

using comm::Nonce;
using comm::Socket;
using comm::SocketDeadline;
using comm::value_bytes;
using comm::value_room;
using Moment = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);        // for an answer
constexpr auto kReach = std::chrono::seconds(3);            // for each address
constexpr auto kIdle = std::chrono::hours(24 * 365);        // for a question
constexpr auto kLastWait = std::chrono::seconds(5);         // for a reader that hangs
constexpr int64_t kNone = -1, kLargest = int64_t{1} << 40;  // bytes of an answer
constexpr size_t kMostAddresses = 4, kAddressBytes = 64, kMostConnections = 4096;
constexpr std::string_view kAsks = "asks for samples", kAnswers = "has samples";

std::string both(const Nonce& server, const Nonce& client) {
  return std::string(comm::text_of(server)) + std::string(comm::text_of(client));
}

/// Each side proves that it knows the secret.
bool meet_client(const Socket& socket, const std::string& secret) {
  const auto deadline = Moment::now() + kPatience;
  const Nonce own = comm::fresh_nonce();
  Nonce theirs{};
  Sha256Digest claimed{};
  if (!send_all(socket, value_bytes(own), deadline) ||
      !receive_all(socket, value_room(theirs), deadline) ||
      !receive_all(socket, value_room(claimed), deadline) ||
      !equal(claimed, comm::proof(secret, kAsks, both(own, theirs))))
    return false;
  return send_all(socket, value_bytes(comm::proof(secret, kAnswers, both(own, theirs))), deadline);
}

bool meet_server(const Socket& socket, const std::string& secret) {
  const auto deadline = Moment::now() + kPatience;
  const Nonce own = comm::fresh_nonce();
  Nonce theirs{};
  Sha256Digest claimed{};
  return receive_all(socket, value_room(theirs), deadline) &&
         send_all(socket, value_bytes(own), deadline) &&
         send_all(socket, value_bytes(comm::proof(secret, kAsks, both(theirs, own))), deadline) &&
         receive_all(socket, value_room(claimed), deadline) &&
         equal(claimed, comm::proof(secret, kAnswers, both(theirs, own)));
}

}  // namespace

std::vector<int> numbered_nodes(const comm::Communicator& communicator) {
  std::vector<int> seen, numbers;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto known = std::ranges::find(seen, communicator.node(rank));
    numbers.push_back(static_cast<int>(known - seen.begin()));
    if (known == seen.end()) seen.push_back(communicator.node(rank));
  }
  return numbers;
}

/// What threads of connections use: it stays as long as one of them.
struct SampleServer::Shared {
  std::string secret;
  std::atomic<const data::CachedSet*> set = nullptr;
  Socket wake;  // readable when the server ends

  bool serve(int64_t index, std::vector<std::byte>& packed) const {
    const data::CachedSet* from = set;
    try {
      return from != nullptr && from->serve(index, packed);
    } catch (const std::exception& error) {  // who asked meets it when it reads for itself
      log::debug("sample {} cannot be given to another node: {}", index, error.what());
      return false;
    }
  }
};

struct SampleServer::Connection {
  Socket socket;
  std::binary_semaphore over{0};  // released when the thread has nothing more to do
  std::thread thread;

  bool ended_before(SocketDeadline deadline) {
    if (!over.try_acquire_until(deadline)) return false;
    thread.join();
    return true;
  }

  void answer(const Shared& shared) const {
    if (!meet_client(socket, shared.secret)) return;
    std::vector<std::byte> packed;
    for (int64_t index = 0; receive_all(socket, value_room(index), Moment::now() + kIdle);) {
      const int64_t bytes = shared.serve(index, packed) ? std::ssize(packed) : kNone;
      const auto deadline = Moment::now() + kPatience;
      if (!send_all(socket, value_bytes(bytes), deadline) ||
          (bytes > 0 && !send_all(socket, packed, deadline)))
        return;
    }
  }
};

SampleServer::SampleServer(std::string secret)
    : shared_(std::make_shared<Shared>()), listener_(comm::listen_on({}, 0)) {
  shared_->secret = std::move(secret);
  shared_->wake = Socket(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::jthread([this] { accept_until_ended(); });
}

int SampleServer::port() const { return comm::port_of(listener_); }
void SampleServer::answer_from(const data::CachedSet& set) { shared_->set = &set; }

void SampleServer::accept_until_ended() {
  for (;;) {
    std::array<pollfd, 2> ready = {pollfd{listener_.descriptor(), POLLIN, 0},
                                   pollfd{shared_->wake.descriptor(), POLLIN, 0}};
    ::poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) return;
    std::erase_if(connections_, [](const std::shared_ptr<Connection>& one) {
      return one->ended_before(Moment::now());
    });
    Socket socket = comm::accept_on(listener_);
    if (!socket || connections_.size() >= kMostConnections) continue;
    auto own = std::make_shared<Connection>();
    own->socket = std::move(socket);
    try {
      own->thread = std::thread([own, shared = shared_] {
        own->answer(*shared);
        ::shutdown(own->socket.descriptor(), SHUT_RDWR);
        own->over.release();
      });
    } catch (const std::system_error& error) {  // who asked reads for itself
      log::debug("no thread for a node that asks for samples: {}", error.what());
      continue;
    }
    connections_.push_back(std::move(own));
  }
}

SampleServer::~SampleServer() {
  shared_->set = nullptr;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(shared_->wake.descriptor(), &one, sizeof one);
  thread_.join();
  for (const auto& connection : connections_)
    ::shutdown(connection->socket.descriptor(), SHUT_RDWR);
  const auto deadline = Moment::now() + kLastWait;
  for (const auto& connection : connections_)
    if (!connection->ended_before(deadline)) connection->thread.detach();
}

SampleClients::SampleClients(comm::Communicator& communicator, std::string secret, int port)
    : secret_(std::move(secret)) {
  struct Place {
    std::array<std::array<char, kAddressBytes>, kMostAddresses> hosts{};
    int port = 0;
  };
  Place mine{.port = port};
  const std::vector<comm::SocketAddress> addresses = comm::own_addresses();
  for (size_t i = 0; i < std::min(addresses.size(), kMostAddresses); ++i)
    addresses[i].host().copy(mine.hosts[i].data(), kAddressBytes - 1);
  const std::vector<Place> places = communicator.allgather_value(mine);
  const std::vector<int> numbers = numbered_nodes(communicator);
  node_ = numbers[static_cast<size_t>(communicator.rank())];
  std::vector<std::vector<int>> ranks(static_cast<size_t>(*std::ranges::max_element(numbers)) + 1);
  for (size_t r = 0; r < numbers.size(); ++r)
    ranks[static_cast<size_t>(numbers[r])].push_back(static_cast<int>(r));
  for (const std::vector<int>& of_node : ranks) {
    // The ranks of a node share its cache, so each of theirs asks another one.
    const int rank = of_node[static_cast<size_t>(communicator.local_rank()) % of_node.size()];
    const Place& place = places[static_cast<size_t>(rank)];
    auto peer = std::make_unique<Peer>();
    for (const auto& host : place.hosts)
      if (host[0] != '\0') peer->hosts.emplace_back(host.data());
    peer->port = place.port;
    peer->name = communicator.rank_name(rank);
    peers_.push_back(std::move(peer));
  }
}

Socket SampleClients::connect(const Peer& peer) const {
  for (const std::string& host : peer.hosts) {
    Socket socket = comm::begin_connect(comm::resolve(host, peer.port).front());
    if (!socket) continue;
    pollfd entry{socket.descriptor(), POLLOUT, 0};
    ::poll(&entry, 1, std::chrono::milliseconds(kReach).count());
    if (entry.revents != 0 && comm::take_error(socket) == 0 && meet_server(socket, secret_))
      return socket;
  }
  return {};
}

Socket SampleClients::take_connection(Peer& peer) const {
  {
    const std::lock_guard lock(peer.mutex);
    if (!peer.idle.empty()) {
      Socket socket = std::move(peer.idle.back());
      peer.idle.pop_back();
      return socket;
    }
  }
  return connect(peer);
}

bool SampleClients::get(int64_t index, std::vector<std::byte>& packed) {
  Peer& peer = *peers_[static_cast<size_t>(index % nodes())];
  if (peer.lost) return false;
  int64_t bytes = kNone;
  try {
    Socket socket = take_connection(peer);
    const auto deadline = Moment::now() + kPatience;
    const bool answered = socket && send_all(socket, value_bytes(index), deadline) &&
                          receive_all(socket, value_room(bytes), deadline) && bytes >= kNone &&
                          bytes < kLargest;
    packed.resize(static_cast<size_t>(answered ? std::max<int64_t>(bytes, 0) : 0));
    if (answered && receive_all(socket, packed, deadline)) {
      const std::lock_guard lock(peer.mutex);
      peer.idle.push_back(std::move(socket));
      return bytes != kNone;
    }
  } catch (const CommError& error) {
    log::debug("{}", error.what());
  }
  if (!peer.lost.exchange(true))
    log::warn("data.cache: {} does not answer (port {}): its samples are read from files here",
              peer.name, peer.port);
  return false;
}

}  // namespace tutti
