#include "tutti/cli/data/sample_exchange.h"

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

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/bootstrap/secret.h"

namespace tutti::cli {
namespace {

using comm::Nonce;
using comm::Socket;
using comm::SocketDeadline;
using comm::value_bytes;
using comm::value_room;
using Moment = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);  // for an answer
constexpr auto kReach = std::chrono::seconds(3);      // for each address
constexpr auto kRetryFor = std::chrono::seconds(5);   // for a connection that was ended
constexpr auto kRetryPause = std::chrono::milliseconds(20);
constexpr auto kListenerLookMs = 100;                       // for a listener that has a deadline
constexpr auto kIdle = std::chrono::hours(24 * 365);        // to wait for a question
constexpr auto kLastWait = std::chrono::seconds(5);         // to wait for a reader that hangs
constexpr int64_t kNone = -1, kLargest = int64_t{1} << 40;  // bytes of an answer
constexpr size_t kMostAddresses = 4, kAddressBytes = 64, kMostConnections = 4096;
constexpr std::string_view kAsks = "asks for samples", kAnswers = "has samples";

struct Question {
  Nonce nonce{};
  Sha256Digest proof{};  // role kAsks
};

std::string greeting_text(const Nonce& nonce) { return std::string(comm::text_of(nonce)); }

// Returns false where the connection ends first, or does not answer in time.
bool put_question(const Socket& socket, int64_t index, std::vector<std::byte>& packed, bool& has_it,
                  SocketDeadline deadline) {
  int64_t bytes = kNone;
  if (!send_all(socket, value_bytes(index), deadline) ||
      !receive_all(socket, value_room(bytes), deadline) || bytes < kNone || bytes >= kLargest)
    return false;
  packed.resize(static_cast<size_t>(std::max<int64_t>(bytes, 0)));
  has_it = bytes != kNone;
  return receive_all(socket, packed, deadline);
}

// Returns false, and sets errno, where the connection ends first.
bool meet_server(const Socket& socket, const std::string& secret) {
  const auto deadline = Moment::now() + kPatience;
  Nonce theirs{};
  if (!receive_all(socket, value_room(theirs), deadline)) return false;
  Question question{.nonce = comm::fresh_nonce()};
  const std::string transcript = comm::both(theirs, question.nonce);
  question.proof = comm::proof(secret, kAsks, transcript);
  Sha256Digest claimed{};
  if (!send_all(socket, value_bytes(question), deadline) ||
      !receive_all(socket, value_room(claimed), deadline))
    return false;
  if (!equal(claimed, comm::proof(secret, kAnswers, transcript)))
    throw CommError("who answers, or this process, does not know the job's secret");
  return true;
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

/// The state that the threads of connections use; it lives as long as any of them.
struct SampleServer::Shared {
  std::string secret;
  std::atomic<const data::CachedSet*> set = nullptr;
  Socket wake;  // readable when the server ends

  bool serve(int64_t index, std::vector<std::byte>& packed) const {
    const data::CachedSet* from = set;
    try {
      return from != nullptr && from->serve(index, packed);
    } catch (const std::exception& error) {  // the asking node meets the error when it reads the
                                             // file itself
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

SampleServer::SampleServer(std::string secret, const std::string& address, int port)
    : SampleServer(comm::own_address(address), std::move(secret), port) {}

SampleServer::SampleServer(const std::optional<comm::SocketAddress>& address, std::string secret,
                           int port)
    : shared_(std::make_shared<Shared>()), hosts_(comm::hosts_to_reach(address, kMostAddresses)),
      listener_(comm::listen_on(address, port), {sizeof(Question), greeting_text}) {
  shared_->secret = std::move(secret);
  shared_->wake = Socket(::eventfd(0, EFD_CLOEXEC));
  if (!shared_->wake) throw CommError(fmt::format("eventfd: {}", file_error(errno)));
  thread_ = std::jthread([this] { serve_until_ended(); });
}

void SampleServer::answer_from(const data::CachedSet& set) { shared_->set = &set; }

void SampleServer::serve_until_ended() {
  for (;;) {
    std::array<pollfd, 2> ready = {pollfd{listener_.ready().descriptor(), POLLIN, 0},
                                   pollfd{shared_->wake.descriptor(), POLLIN, 0}};
    ::poll(ready.data(), ready.size(), listener_.pending() ? kListenerLookMs : -1);
    if (ready[1].revents != 0) return;
    std::erase_if(connections_, [](const std::shared_ptr<Connection>& one) {
      return one->ended_before(Moment::now());
    });
    try {
      for (comm::Stranger& stranger : listener_.look()) admit(stranger);
    } catch (const std::exception& error) {  // the asking node reads the file itself
      log::debug("a node that asks for samples is not answered: {}", error.what());
    }
  }
}

// A proof of zeros means a refusal, while a client tries again after a connection that just ends.
void SampleServer::admit(comm::Stranger& stranger) {
  Question question;
  std::memcpy(&question, stranger.answer.data(), sizeof question);
  const std::string transcript = comm::both(stranger.challenge, question.nonce);
  const bool known = connections_.size() < kMostConnections &&
                     equal(question.proof, comm::proof(shared_->secret, kAsks, transcript));
  const Sha256Digest answer =
      known ? comm::proof(shared_->secret, kAnswers, transcript) : Sha256Digest{};
  // The first bytes on a connection fit the socket's buffer.
  if (!send_all(stranger.socket, value_bytes(answer), Moment::now()) || !known) return;
  auto own = std::make_shared<Connection>();
  own->socket = std::move(stranger.socket);
  own->thread = std::thread([own, shared = shared_] {
    own->answer(*shared);
    ::shutdown(own->socket.descriptor(), SHUT_RDWR);
    own->over.release();
  });
  connections_.push_back(std::move(own));
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

SampleClients::SampleClients(comm::Communicator& communicator, std::string secret,
                             const SampleServer& own, std::chrono::milliseconds ask_again)
    : secret_(std::move(secret)), ask_again_(ask_again) {
  struct Place {
    std::array<std::array<char, kAddressBytes>, kMostAddresses> hosts{};
    int port = 0;
  };
  Place mine{.port = own.port()};
  for (size_t i = 0; i < std::min(own.hosts().size(), kMostAddresses); ++i)
    own.hosts()[i].copy(mine.hosts[i].data(), kAddressBytes - 1);
  const std::vector<Place> places = communicator.allgather_value(mine);
  const std::vector<int> numbers = numbered_nodes(communicator);
  node_ = numbers[static_cast<size_t>(communicator.rank())];
  std::vector<std::vector<int>> ranks(static_cast<size_t>(*std::ranges::max_element(numbers)) + 1);
  for (size_t r = 0; r < numbers.size(); ++r)
    ranks[static_cast<size_t>(numbers[r])].push_back(static_cast<int>(r));
  for (const std::vector<int>& of_node : ranks) {
    // The ranks of a node share its cache, so each of the asking node's ranks asks another one.
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

// A connection that ends before an answer may only have been one too many for the server.
Socket SampleClients::connect(const Peer& peer) const {
  for (const std::string& host : peer.hosts) {
    const comm::SocketAddress address = comm::resolve(host, peer.port).front();
    for (const auto until = Moment::now() + kRetryFor; Moment::now() < until;) {
      Socket socket = comm::begin_connect(address);
      if (socket && !finish_connect(socket, Moment::now() + kReach)) break;
      if (socket && meet_server(socket, secret_)) return socket;
      if (!comm::may_try_again(errno)) break;
      std::this_thread::sleep_for(kRetryPause);
    }
  }
  return {};
}

Socket SampleClients::take_idle(Peer& peer) {
  const std::lock_guard lock(peer.mutex);
  if (peer.idle.empty()) return {};
  Socket socket = std::move(peer.idle.back());
  peer.idle.pop_back();
  return socket;
}

// When a lost node may be asked again, one thread tries it; the others go on without it.
bool SampleClients::may_ask(Peer& peer) const {
  auto until = peer.lost_until.load();
  if (until == 0) return true;
  const auto now = Moment::now();
  return now.time_since_epoch().count() >= until &&
         peer.lost_until.compare_exchange_strong(until,
                                                 (now + ask_again_).time_since_epoch().count());
}

// Returns false where the peer does not answer.
bool SampleClients::ask(Peer& peer, int64_t index, std::vector<std::byte>& packed,
                        bool& has_it) const {
  auto deadline = Moment::now() + kPatience;
  Socket socket = take_idle(peer);
  // An idle connection may have been ended since, by a firewall or a restart of the peer.
  if (!socket || !put_question(socket, index, packed, has_it, deadline)) {
    if (Moment::now() >= deadline) return false;
    socket = connect(peer);
    deadline = Moment::now() + kPatience;
    if (!socket || !put_question(socket, index, packed, has_it, deadline)) return false;
  }
  const std::lock_guard lock(peer.mutex);
  peer.idle.push_back(std::move(socket));
  return true;
}

bool SampleClients::get(int64_t index, std::vector<std::byte>& packed) {
  Peer& peer = *peers_[static_cast<size_t>(index % nodes())];
  if (!may_ask(peer)) return false;
  bool has_it = false;
  try {
    if (ask(peer, index, packed, has_it)) {
      if (peer.lost_until.exchange(0) != 0)
        log::info("data.cache: {} answers again (port {})", peer.name, peer.port);
      return has_it;
    }
  } catch (const CommError& error) {
    log::debug("{}", error.what());
  }
  packed.clear();
  const auto until = (Moment::now() + ask_again_).time_since_epoch().count();
  if (peer.lost_until.exchange(until) == 0)
    log::warn(
        "data.cache: {} does not answer (port {}): its samples are read from files here, and "
        "it is asked again in {:.3g} s",
        peer.name, peer.port, std::chrono::duration<double>(ask_again_).count());
  const std::lock_guard lock(peer.mutex);
  peer.idle.clear();  // they belong to the peer before it was lost
  return false;
}

}  // namespace tutti::cli
