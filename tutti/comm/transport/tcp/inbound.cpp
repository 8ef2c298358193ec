#include "tutti/comm/transport/tcp/inbound.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::comm::tcp {
namespace {

constexpr size_t kMostTaken = size_t{4} << 20;  // bytes at once, so that other connections pass
constexpr const char* kNonsense = "it sent what no rank sends";

}  // namespace

Inbound::Inbound(int peer, Socket socket, const Readiness& ready, Matching& matching)
    : peer_(peer), socket_(std::move(socket)), ready_(ready), matching_(matching),
      stage_(std::make_unique<std::byte[]>(kStage)) {}

void Inbound::finish(const std::string& why) {
  if (!end_.empty()) return;
  end_ = goodbye_ ? "it has left the group" : why;
  socket_.close();
  orphan(into_);
  orphan(matched_into_);
  for (auto& [id, transfer] : transfers_) orphan(transfer.into);
  matching_.forget_unfinished(*this);
}

// Other senders may still write to its inbox.
void Inbound::orphan(Incoming*& receive) {
  if (receive == nullptr || receive->key.peer != kAnybody) return;
  orphans_.push_back(std::exchange(receive, nullptr));
  target_ = nullptr;
}

std::optional<int> Inbound::take() {
  size_t taken = 0;
  while (socket_ && taken < kMostTaken) {
    const size_t n = receive_some();
    if (n == 0) break;
    taken += n;
    digest();
  }
  answer();
  return std::exchange(alarm_, std::nullopt);
}

// Receives straight into the message's memory, and the following bytes into the stage.
size_t Inbound::receive_some() {
  std::array<iovec, 2> room;
  int rooms = 0;
  const bool straight = left_ > 0 && target_ != nullptr && stage_begin_ == stage_end_;
  if (straight) {
    stage_begin_ = stage_end_ = 0;
    room[static_cast<size_t>(rooms++)] = {target_, left_};
  }
  room[static_cast<size_t>(rooms++)] = {stage_.get() + stage_end_, kStage - stage_end_};
  const ssize_t n = ::readv(socket_.descriptor(), room.data(), rooms);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  if (n <= 0) {
    finish(n == 0 ? "its connection has ended" : std::strerror(errno));
    return 0;
  }
  const auto got = static_cast<size_t>(n);
  const size_t direct = straight ? std::min(got, left_) : 0;
  stage_end_ += got - direct;
  if (direct > 0) {
    target_ += direct;
    left_ -= direct;
    if (left_ == 0) end_payload();
  }
  return got;
}

void Inbound::digest() {
  while (socket_) {
    const size_t here = stage_end_ - stage_begin_;
    if (left_ > 0) {
      const size_t n = std::min(here, left_);
      if (n == 0) break;
      if (target_ != nullptr) {
        std::memcpy(target_, stage_.get() + stage_begin_, n);
        target_ += n;
      }
      stage_begin_ += n;
      left_ -= n;
      if (left_ == 0) end_payload();
      continue;
    }
    if (here < sizeof frame_) break;
    std::memcpy(&frame_, stage_.get() + stage_begin_, sizeof frame_);
    stage_begin_ += sizeof frame_;
    ++frames_;
    begin_frame();
  }
  if (stage_begin_ == stage_end_) {
    stage_begin_ = stage_end_ = 0;
  } else if (stage_begin_ > 0) {
    std::memmove(stage_.get(), stage_.get() + stage_begin_, stage_end_ - stage_begin_);
    stage_end_ -= stage_begin_;
    stage_begin_ = 0;
  }
}

void Inbound::begin_frame() {
  const Key key = matching_.address({peer_, frame_.tag, frame_.wire});
  switch (frame_.kind) {
    case Kind::eager: return begin_eager(key);
    case Kind::request: return begin_request(key);
    case Kind::data: return begin_data();
    case Kind::cancel:
      matching_.withdraw(key, *this, frame_.id);
      transfers_.erase(frame_.id);
      return;
    case Kind::alarm: alarm_ = frame_.tag; return;
    case Kind::goodbye: goodbye_ = true; return;
    default: finish(kNonsense);
  }
}

void Inbound::begin_eager(const Key& key) {
  if (frame_.bytes > kEager || kept_bytes_ + credit_of(frame_.bytes) > kCredit)
    return finish(kNonsense);
  kept_bytes_ += credit_of(frame_.bytes);
  left_ = static_cast<size_t>(frame_.bytes);
  target_ = nullptr;
  into_ = matching_.receive_for(key);
  if (into_ != nullptr) {
    into_->from = peer_;
    into_->arrived = left_;
    if (into_->fits()) target_ = into_->data;
  } else if (!matching_.is_closed(key.wire)) {
    auto message = std::make_unique<Arrived>();
    *message = {.from = this,
                .announced = false,
                .id = frame_.id,
                .bytes = left_,
                .have = 0,
                .data = std::make_unique_for_overwrite<std::byte[]>(left_)};
    target_ = message->data.get();
    kept_ = message.get();
    matching_.keep(key, std::move(message));
  }
  if (left_ == 0) end_payload();
}

void Inbound::begin_request(const Key& key) {
  if (Incoming* const receive = matching_.receive_for(key)) {
    grant(frame_.id, static_cast<size_t>(frame_.bytes), *receive);
  } else if (!matching_.is_closed(key.wire)) {
    auto message = std::make_unique<Arrived>();
    *message = {.from = this,
                .announced = true,
                .id = frame_.id,
                .bytes = static_cast<size_t>(frame_.bytes),
                .have = 0,
                .data = nullptr};
    matching_.keep(key, std::move(message));
  }
}

void Inbound::begin_data() {
  const auto at = transfers_.find(frame_.id);
  if (at == transfers_.end() || frame_.bytes == 0 ||
      frame_.bytes > at->second.bytes - at->second.offset)
    return finish(kNonsense);
  const Transfer& transfer = at->second;
  left_ = static_cast<size_t>(frame_.bytes);
  target_ = transfer.into == nullptr ? nullptr : transfer.into->data + transfer.offset;
}

void Inbound::end_payload() {
  target_ = nullptr;
  if (frame_.kind == Kind::data) {
    const auto at = transfers_.find(frame_.id);
    at->second.offset += static_cast<size_t>(frame_.bytes);
    if (at->second.offset < at->second.bytes) return;
    if (at->second.into != nullptr) at->second.into->done = true;
    transfers_.erase(at);
    return;
  }
  if (Arrived* const kept = std::exchange(kept_, nullptr)) {
    kept->have = kept->bytes;
    if (!matched_) return;  // its receive will come later
    std::unique_ptr<Arrived> message = std::move(matched_);
    if (Incoming* const receive = std::exchange(matched_into_, nullptr))
      match(std::move(message), *receive);
    else
      drop(*message);
    return;
  }
  consumed(frame_.id, static_cast<size_t>(frame_.bytes));
  if (Incoming* const receive = std::exchange(into_, nullptr)) receive->done = true;
}

void Inbound::match(std::unique_ptr<Arrived> message, Incoming& receive) {
  if (message->announced) return grant(message->id, message->bytes, receive);
  if (message->have < message->bytes) {  // the rest is on its way
    matched_ = std::move(message);
    matched_into_ = &receive;
    return;
  }
  receive.from = peer_;
  receive.arrived = message->bytes;
  if (receive.fits() && message->bytes > 0)
    std::memcpy(receive.data, message->data.get(), message->bytes);
  consumed(message->id, message->bytes);
  receive.done = true;
}

void Inbound::drop(const Arrived& message) {
  if (message.announced) return;
  if (kept_ == &message) {  // the rest is on its way, and will be dropped
    kept_ = nullptr;
    target_ = nullptr;
    frame_.id = 0;
    return;
  }
  consumed(0, message.bytes);
}

void Inbound::withdraw(const Incoming& receive) {
  for (auto& [id, transfer] : transfers_)
    if (transfer.into == &receive) {
      transfer.into = nullptr;
      if (left_ > 0 && frame_.kind == Kind::data && frame_.id == id) target_ = nullptr;
    }
  if (into_ == &receive) {
    into_ = nullptr;
    target_ = nullptr;
  }
  if (matched_into_ == &receive) matched_into_ = nullptr;
}

void Inbound::grant(uint64_t id, size_t bytes, Incoming& receive) {
  receive.from = peer_;
  receive.arrived = bytes;
  const bool fits = receive.fits();
  if (bytes > 0) transfers_[id] = {fits ? &receive : nullptr, 0, bytes};
  if (bytes == 0 || !fits) receive.done = true;
  say({.kind = Kind::grant, .id = id});
}

void Inbound::consumed(uint64_t id, size_t bytes) {
  owed_ += credit_of(bytes);
  if (id != 0) say({.kind = Kind::taken, .id = id});
  if (owed_ < kCredit / 4) return;
  kept_bytes_ -= owed_;
  say({.kind = Kind::credit, .bytes = std::exchange(owed_, 0)});
}

void Inbound::say(const FrameHeader& frame) {
  if (!socket_) return;
  out_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
}

void Inbound::answer() {
  while (socket_ && !out_.empty()) {
    const ssize_t n = ::send(socket_.descriptor(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
      out_.clear();  // frames sent before the end may still be read
      break;
    }
    if (n <= 0) break;
    out_.erase(0, static_cast<size_t>(n));
  }
  if (socket_ && wants_writable_ == out_.empty()) {
    wants_writable_ = !out_.empty();
    ready_.change(socket_, Readiness::What::inbound, static_cast<uint32_t>(peer_), wants_writable_);
  }
}

void Inbound::say_goodbye() {
  say({.kind = Kind::goodbye});
  answer();
}

bool Inbound::all_sent() const { return !socket_ || (out_.empty() && socket_.has_sent_all()); }

}  // namespace tutti::comm::tcp
