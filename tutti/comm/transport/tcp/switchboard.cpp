#include "tutti/comm/transport/tcp/switchboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::comm::tcp {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto kListenerLook = std::chrono::milliseconds(100);
// A peer that has ended may have sent a message that is still on its way on another connection.
constexpr auto kLastWords = std::chrono::milliseconds(150);
constexpr auto kAlarmFlush = std::chrono::milliseconds(500);
constexpr auto kGoodbyeFlush = std::chrono::milliseconds(2000);
constexpr size_t kMostOwnHosts = 16;

std::string greeting_text(const Nonce& challenge) {
  const Greeting greeting{.challenge = challenge};
  return {reinterpret_cast<const char*>(&greeting), sizeof greeting};
}

}  // namespace

Switchboard::Switchboard(Store& store, std::string prefix, int rank, int size,
                         const Options& options)
    : group_{.store = &store,
             .prefix = std::move(prefix),
             .secret = options.secret,
             .rank = rank,
             .size = size,
             .nonce = fresh_nonce()} {
  if (store.get(group_.key(rank), 0))
    throw ConfigError(
        fmt::format("rank {} of the group '{}' is in the store already: another process is this "
                    "rank, or there was a group of this name before; each needs a name of its own",
                    rank, group_.prefix));
  const std::optional<SocketAddress> address = own_address(options.address);
  listener_.emplace(listen_on(address, 0), Listener::Protocol{sizeof(Hello), greeting_text});
  ready_.add(listener_->ready(), Readiness::What::listener, 0);
  const Home home{.nonce = group_.nonce,
                  .port = listener_->port(),
                  .ranks = size,
                  .hosts = hosts_to_reach(address, kMostOwnHosts)};
  store.set(group_.key(rank), home.text());
}

Switchboard::~Switchboard() {
  try {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [peer, connection] : inbound_)
        if (connection->is_open()) connection->say_goodbye();
      for (auto& [peer, connection] : outbound_)
        if (connection->is_open() || alarm_) connection->say({.kind = Kind::goodbye});
    }
    if (alarm_) flush(kAlarmFlush, true);
    flush(kGoodbyeFlush, false);
  } catch (const std::exception&) {
    return;  // the others will find that this rank is gone
  }
}

// Moves messages until all frames have left, or time is up.
void Switchboard::flush(std::chrono::milliseconds time, bool opening) {
  const auto until = SteadyClock::now() + time;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      move_locked();
      const bool all_sent =
          std::ranges::all_of(inbound_, [](const auto& at) { return at.second->all_sent(); }) &&
          std::ranges::all_of(outbound_, [](const auto& at) { return at.second->all_sent(); });
      if (all_sent && !(opening && !opening_.empty())) return;
    }
    if (SteadyClock::now() >= until) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Outbound& Switchboard::outbound(int peer) {
  CHECK(peer >= 0 && peer < group_.size && peer != group_.rank, "a message to rank {} of {}", peer,
        group_.size);
  std::unique_ptr<Outbound>& connection = outbound_[peer];
  if (!connection) {
    connection = std::make_unique<Outbound>(peer, group_, ready_);
    opening_.push_back(connection.get());
  }
  return *connection;
}

void Switchboard::send(Outgoing& message) {
  const std::lock_guard lock(mutex_);
  outbound(message.key.peer).post(message);
}

void Switchboard::receive(Incoming& message) {
  const std::lock_guard lock(mutex_);
  receive_locked(message);
}

void Switchboard::receive_locked(Incoming& message) {
  message.done = false;
  message.arrived = 0;
  if (auto first = matching_.message_for(message.key)) {
    Inbound& from = *first->from;
    from.match(std::move(first), message);
    from.answer();
  } else {
    matching_.wait(message);
  }
}

void Switchboard::withdraw(Outgoing& message) {
  if (message.done) return;
  const std::lock_guard lock(mutex_);
  if (const auto at = outbound_.find(message.key.peer); at != outbound_.end())
    at->second->withdraw(message);
  message.done = true;
}

void Switchboard::withdraw(Incoming& message) {
  if (message.done) return;
  const std::lock_guard lock(mutex_);
  matching_.withdraw(message);
  if (message.key.peer == kAnybody)
    for (const auto& [peer, connection] : inbound_) connection->withdraw(message);
  else if (const auto at = inbound_.find(message.key.peer); at != inbound_.end())
    at->second->withdraw(message);
  message.done = true;
}

void Switchboard::open_inbox(uint64_t wire, int32_t tag) {
  const std::lock_guard lock(mutex_);
  matching_.open_inbox(wire, tag);
}

void Switchboard::close_inbox(uint64_t wire, int32_t tag) {
  const std::lock_guard lock(mutex_);
  while (const auto left = matching_.message_for({kAnybody, tag, wire})) {
    left->from->drop(*left);
    left->from->answer();
  }
  matching_.close_inbox(wire, tag);
}

void Switchboard::close(uint64_t wire) {
  const std::lock_guard lock(mutex_);
  for (const auto& message : matching_.close(wire)) {
    message->from->drop(*message);
    message->from->answer();
  }
}

void Switchboard::move() {
  const std::lock_guard lock(mutex_);
  move_locked();
}

void Switchboard::move_locked() {
  std::array<Readiness::Event, Readiness::kMost> events;
  const int n = ready_.look(events.data());
  bool strangers = false;
  for (int i = 0; i < n; ++i) {
    const Readiness::Event& event = events[static_cast<size_t>(i)];
    switch (event.what) {
      case Readiness::What::listener: strangers = true; break;
      case Readiness::What::inbound: {
        Inbound& connection = *inbound_.at(static_cast<int>(event.number));
        const std::optional<int> by = connection.take();
        for (Incoming* const receive : connection.take_orphans()) receive_locked(*receive);
        if (by && !alarm_) tell_others(*by);
        break;
      }
      case Readiness::What::outbound:
        outbound_.at(static_cast<int>(event.number))->on_ready(event.readable, event.writable);
        break;
    }
  }
  if (opening_.empty() && !strangers && !listener_->pending()) return;
  const auto now = SteadyClock::now();
  for (size_t i = 0; i < opening_.size(); ++i) opening_[i]->advance(now);
  std::erase_if(opening_, [](const Outbound* connection) { return !connection->is_opening(); });
  if (!strangers && now < next_listener_look_) return;
  next_listener_look_ = now + kListenerLook;
  for (Stranger& stranger : listener_->look()) admit(stranger);
}

// Returns whether the caller is a rank of this group, and the text of both sides' proofs.
bool Switchboard::knows(const Stranger& stranger, const Hello& hello,
                        std::string& transcript) const {
  if (hello.to != group_.rank || hello.from < 0 || hello.from >= group_.size ||
      hello.from == group_.rank)
    return false;
  transcript = conversation(group_.prefix, group_.nonce, stranger.challenge, hello);
  return equal(hello.proof, proof(group_.secret, "rank calls", transcript));
}

// Refuses by a welcome without proof: a connection that just ends would be tried again.
void Switchboard::admit(Stranger& stranger) {
  Hello hello;
  std::memcpy(&hello, stranger.answer.data(), sizeof hello);
  std::string transcript;
  const auto at = inbound_.find(hello.from);
  // A second connection of a rank: it has given up the first before it could send anything.
  const bool welcome_here =
      knows(stranger, hello, transcript) && !(at != inbound_.end() && at->second->has_taken());
  const Welcome welcome =
      welcome_here ? Welcome{proof(group_.secret, "rank answers", transcript)} : Welcome{};
  // The first bytes on a connection always fit.
  if (::send(stranger.socket.descriptor(), &welcome, sizeof welcome, MSG_NOSIGNAL) !=
          sizeof welcome ||
      !welcome_here)
    return;
  ready_.add(stranger.socket, Readiness::What::inbound, static_cast<uint32_t>(hello.from));
  inbound_[hello.from] =
      std::make_unique<Inbound>(hello.from, std::move(stranger.socket), ready_, matching_);
}

// Sends the alarm to the ranks 1, 2, 4, 8 ... after this one: after ceil(log2 P) hops all have it,
// also around a rank that is stopped or dead.
void Switchboard::tell_others(int by) {
  alarm_ = by;
  for (int step = 1; step < group_.size; step *= 2)
    outbound((group_.rank + step) % group_.size).say({.kind = Kind::alarm, .tag = by});
}

void Switchboard::raise_alarm() {
  {
    const std::lock_guard lock(mutex_);
    if (alarm_) return;
    tell_others(group_.rank);
  }
  flush(kAlarmFlush, true);  // later calls may never come
}

std::optional<int> Switchboard::alarm() {
  const std::lock_guard lock(mutex_);
  if (!alarm_) move_locked();
  return alarm_;
}

std::string Switchboard::lost(int rank) { return end_of(rank, true, false); }

std::string Switchboard::left(int rank, bool find_out) { return end_of(rank, find_out, true); }

std::string Switchboard::end_of(int rank, bool connect, bool lives) {
  if (rank == group_.rank) return {};
  const std::lock_guard lock(mutex_);
  const auto in = inbound_.find(rank);
  if (in != inbound_.end() && !in->second->end().empty()) return in->second->end();
  if (!connect && !outbound_.contains(rank)) return {};
  const Outbound& out = outbound(rank);
  if (out.end().empty() || SteadyClock::now() - out.ended_at() < kLastWords) return {};
  return lives && !out.has_found() ? std::string() : out.end();
}

}  // namespace tutti::comm::tcp
