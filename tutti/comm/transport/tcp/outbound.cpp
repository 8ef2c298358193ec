#include "tutti/comm/transport/tcp/outbound.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"

namespace tutti::comm::tcp {
namespace {

constexpr auto kLongestPause = std::chrono::milliseconds(100);  // between two tries
constexpr auto kConnectWithin = std::chrono::seconds(5);
// A rank sends greetings only when it looks at its messages. After this time the next of several
// addresses is tried.
constexpr auto kGreetWithin = std::chrono::seconds(20);
constexpr int kRefusals = 3;  // rounds in which all addresses refuse: no rank is there any more
// A listener ends some connections while there are too many. After more ends than this, warn.
constexpr int kQuietEnds = 5;
constexpr size_t kMostWritten = size_t{4} << 20;  // bytes at once, so that others pass
constexpr size_t kFramesAtOnce = 8;

}  // namespace

Outbound::Outbound(int peer, const GroupInStore& group, const Readiness& ready)
    : peer_(peer), group_(group), ready_(ready) {}

void Outbound::finish(const std::string& why) {
  if (phase_ == Phase::ended) return;
  phase_ = Phase::ended;
  end_ = goodbye_ ? "it has left the group" : why;
  ended_at_ = std::chrono::steady_clock::now();
  socket_.close();
  queue_.clear();
  granted_.clear();
  announced_.clear();
}

void Outbound::advance(Time now) {
  if (phase_ == Phase::look_up && now >= next_try_) look_up(now);
  if (phase_ == Phase::connect && now >= next_try_) connect(now);
  if (socket_ && is_opening() && now >= deadline_) try_next("no answer", Failure::silent);
}

void Outbound::look_up(Time now) {
  std::optional<std::string> found;
  try {
    if (group_.store_failure.empty()) found = group_.store->get(group_.key(peer_), 0);
  } catch (const CommError& error) {
    group_.store_failure = error.what();
  }
  if (!group_.store_failure.empty())
    return finish(fmt::format("it cannot be reached: {}", group_.store_failure));
  if (!found) {
    next_try_ = now + pause_;
    pause_ = std::min(2 * pause_, kLongestPause);
    return;
  }
  try {
    home_ = Home::parse(*found);
    if (home_.ranks != group_.size)
      return finish(fmt::format("it was started as one of {} ranks, this one as one of {}",
                                home_.ranks, group_.size));
    for (const std::string& host : home_.hosts)
      for (const SocketAddress& address : resolve(host, home_.port)) addresses_.push_back(address);
  } catch (const CommError& error) {
    return finish(fmt::format("it cannot be reached: {}", error.what()));
  }
  pause_ = std::chrono::milliseconds(20);
  phase_ = Phase::connect;
}

void Outbound::connect(Time now) {
  if (socket_) return;
  deadline_ = now + kConnectWithin;
  socket_ = begin_connect(addresses_[next_address_]);
  if (!socket_) return try_next(file_error(errno), Failure::silent);
  ready_.add(socket_, Readiness::What::outbound, static_cast<uint32_t>(peer_), true);
  wants_writable_ = true;
}

void Outbound::try_next(const std::string& reason, Failure failure) {
  socket_.close();
  in_.clear();
  phase_ = Phase::connect;
  round_refused_ &= failure == Failure::refused;
  const std::string where = addresses_[next_address_].text();
  if (++next_address_ < addresses_.size()) return;
  next_address_ = 0;
  refused_rounds_ = std::exchange(round_refused_, true) ? refused_rounds_ + 1 : 0;
  if (refused_rounds_ >= kRefusals)
    return finish(fmt::format("nobody of this group answers at {} any more: {}", where, reason));
  if (failure == Failure::ended) ++ended_rounds_;
  const bool quiet_end = failure == Failure::ended && ended_rounds_ < kQuietEnds;
  if (refused_rounds_ == 0 && !quiet_end && !std::exchange(warned_, true))
    log::warn("rank {} cannot reach rank {} at {}: {}; it goes on trying", group_.rank, peer_,
              where, reason);
  pause_ = std::min(2 * pause_, 5 * kLongestPause);
  next_try_ = std::chrono::steady_clock::now() + pause_;
}

void Outbound::on_ready(bool readable, bool writable) {
  if (!socket_) return;
  if (phase_ == Phase::connect && writable) {
    if (const int error = take_error(socket_); error != 0)
      return try_next(std::strerror(error),
                      error == ECONNREFUSED ? Failure::refused : Failure::silent);
    phase_ = Phase::greet;
    if (addresses_.size() > 1)
      deadline_ = std::chrono::steady_clock::now() + kGreetWithin;
    else
      deadline_ = Time::max();
    want_writable(false);
  }
  if (phase_ == Phase::greet) greet();
  if (phase_ == Phase::welcome) take_welcome();
  if (phase_ != Phase::open) return;
  if (readable) hear();
  if (writable) write();
}

// Reads the expected bytes and no more, into in_. A connection that ends now may be one too many
// for the listener; a listener of another group answers with a welcome without proof.
bool Outbound::receive_exactly(size_t bytes) {
  std::array<char, 256> piece;
  while (in_.size() < bytes) {
    const ssize_t n =
        ::recv(socket_.descriptor(), piece.data(), std::min(piece.size(), bytes - in_.size()), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (n <= 0) {
      try_next(n == 0 ? "the connection was ended" : std::strerror(errno), Failure::ended);
      return false;
    }
    in_.append(piece.data(), static_cast<size_t>(n));
  }
  return true;
}

void Outbound::greet() {
  Greeting greeting;
  if (!receive_exactly(sizeof greeting)) return;
  std::memcpy(&greeting, in_.data(), sizeof greeting);
  in_.clear();
  if (greeting.magic != Greeting::kMagic)
    return try_next("no rank listens there", Failure::refused);
  hello_ = {.from = group_.rank, .to = peer_, .nonce = fresh_nonce()};
  expected_ = conversation(group_.prefix, home_.nonce, greeting.challenge, hello_);
  hello_.proof = proof(group_.secret, "rank calls", expected_);
  // The first bytes on a connection always fit.
  if (::send(socket_.descriptor(), &hello_, sizeof hello_, MSG_NOSIGNAL) != sizeof hello_)
    return try_next(std::strerror(errno), Failure::ended);
  phase_ = Phase::welcome;
}

void Outbound::take_welcome() {
  tcp::Welcome welcome;
  if (!receive_exactly(sizeof welcome)) return;
  std::memcpy(&welcome, in_.data(), sizeof welcome);
  in_.clear();
  if (!equal(welcome.proof, proof(group_.secret, "rank answers", expected_)))
    return try_next("who answers there is another one", Failure::refused);
  phase_ = Phase::open;
  write();
}

// However the reading ends, granted messages leave now: no later event may come that sends them.
void Outbound::hear() {
  while (hear_some()) {}
  if (!granted_.empty()) write();
}

// Returns false where nothing more can be received for now.
bool Outbound::hear_some() {
  std::array<char, 4096> piece;
  const ssize_t n = ::recv(socket_.descriptor(), piece.data(), piece.size(), 0);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (n <= 0) {
    finish(n == 0 ? "its connection has ended" : std::strerror(errno));
    return false;
  }
  in_.append(piece.data(), static_cast<size_t>(n));
  size_t at = 0;
  for (; phase_ == Phase::open && in_.size() - at >= sizeof(FrameHeader);
       at += sizeof(FrameHeader)) {
    FrameHeader frame;
    std::memcpy(&frame, in_.data() + at, sizeof frame);
    obey(frame);
  }
  in_.erase(0, at);
  return phase_ == Phase::open && static_cast<size_t>(n) == piece.size();
}

void Outbound::obey(const FrameHeader& frame) {
  const auto announced = [&]() -> Outgoing* {
    const auto at = announced_.find(frame.id);
    if (at == announced_.end()) return nullptr;  // withdrawn meanwhile
    Outgoing* const message = at->second;
    announced_.erase(at);
    return message;
  };
  switch (frame.kind) {
    case Kind::grant:
      if (Outgoing* const message = announced()) {
        if (message->bytes == 0)
          message->done = true;
        else
          granted_.push_back(message);
      }
      return;
    case Kind::taken:
      if (Outgoing* const message = announced()) message->done = true;
      return;
    case Kind::credit:
      if (frame.bytes > kCredit - credit_) return finish("it sent what no rank sends");
      credit_ += static_cast<size_t>(frame.bytes);
      return;
    case Kind::goodbye: goodbye_ = true; return;
    default: finish("it sent what no rank sends");
  }
}

void Outbound::post(Outgoing& message) {
  message.done = false;
  message.id = 0;
  message.begun = 0;
  if (phase_ == Phase::ended) return;
  const bool eager = message.bytes <= kEager && credit_of(message.bytes) <= credit_;
  if (!eager || message.taken) announced_[message.id = ++last_id_] = &message;
  Frame frame{.header = {.kind = eager ? Kind::eager : Kind::request,
                         .tag = message.key.tag,
                         .wire = message.key.wire,
                         .id = message.id,
                         .bytes = message.bytes}};
  if (eager) {
    credit_ -= credit_of(message.bytes);
    if (message.bytes > 0) frame.payload = message.data;
    frame.source = &message;
  }
  queue_.push_back(std::move(frame));
  write();
}

void Outbound::withdraw(Outgoing& message) {
  if (message.done || phase_ == Phase::ended) return;
  bool silent = message.id == 0;
  for (auto frame = queue_.begin(); frame != queue_.end();) {
    const bool announces =
        frame->header.kind == Kind::request && message.id != 0 && frame->header.id == message.id;
    if (frame->source != &message && !announces) {
      ++frame;
    } else if (frame->sent == 0 && frame->header.kind != Kind::data) {
      if (frame->header.kind == Kind::eager) credit_ += credit_of(frame->header.bytes);
      silent = true;  // the receiver does not know of it
      frame = queue_.erase(frame);
    } else {
      if (frame->payload != nullptr) {
        frame->own = std::make_unique_for_overwrite<std::byte[]>(frame->header.bytes);
        std::memcpy(frame->own.get(), frame->payload, frame->header.bytes);
        frame->payload = frame->own.get();
      }
      frame->source = nullptr;
      ++frame;
    }
  }
  std::erase(granted_, &message);
  announced_.erase(message.id);
  if (!silent)
    say({.kind = Kind::cancel, .tag = message.key.tag, .wire = message.key.wire, .id = message.id});
}

void Outbound::say(const FrameHeader& frame) {
  if (phase_ == Phase::ended) return;
  queue_.push_back({.header = frame});
  write();
}

bool Outbound::has_data_frame() const {
  return std::ranges::any_of(queue_,
                             [](const Frame& frame) { return frame.header.kind == Kind::data; });
}

// Queues the next piece of the next message. Only one is in the queue, so that others pass.
void Outbound::push_piece() {
  Outgoing& message = *granted_.front();
  granted_.pop_front();
  const size_t n = std::min(kPiece, message.bytes - message.begun);
  queue_.push_back({.header = {.kind = Kind::data, .id = message.id, .bytes = n},
                    .payload = message.data + message.begun,
                    .source = &message});
  message.begun += n;
  if (message.begun < message.bytes) granted_.push_back(&message);
}

void Outbound::write() {
  if (phase_ != Phase::open) return;
  size_t total = 0;
  while (total < kMostWritten) {
    if (!granted_.empty() && !has_data_frame()) push_piece();
    if (queue_.empty()) break;
    std::array<iovec, 2 * kFramesAtOnce> parts;
    size_t n = 0;
    for (size_t i = 0; i < std::min(queue_.size(), kFramesAtOnce); ++i) {
      Frame& frame = queue_[i];
      size_t skip = frame.sent;
      if (skip < sizeof frame.header) {
        parts[n++] = {reinterpret_cast<char*>(&frame.header) + skip, sizeof frame.header - skip};
        skip = 0;
      } else {
        skip -= sizeof frame.header;
      }
      if (frame.payload != nullptr)
        parts[n++] = {const_cast<std::byte*>(frame.payload) + skip, frame.header.bytes - skip};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = n;
    const ssize_t sent = ::sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return want_writable(true);
    if (sent < 0) return finish(std::strerror(errno));
    total += static_cast<size_t>(sent);
    written(static_cast<size_t>(sent));
  }
  want_writable(!queue_.empty() || !granted_.empty());
}

void Outbound::written(size_t bytes) {
  while (bytes > 0) {
    Frame& frame = queue_.front();
    const size_t n = std::min(bytes, frame.bytes() - frame.sent);
    frame.sent += n;
    bytes -= n;
    if (frame.sent < frame.bytes()) return;
    if (Outgoing* const source = frame.source) {
      if (frame.header.kind == Kind::data ? source->begun == source->bytes : source->id == 0)
        source->done = true;
    }
    queue_.pop_front();
  }
}

void Outbound::want_writable(bool wanted) {
  if (!socket_ || std::exchange(wants_writable_, wanted) == wanted) return;
  ready_.change(socket_, Readiness::What::outbound, static_cast<uint32_t>(peer_), wanted);
}

bool Outbound::all_sent() const {
  return phase_ != Phase::open || (queue_.empty() && socket_.has_sent_all());
}

}  // namespace tutti::comm::tcp
