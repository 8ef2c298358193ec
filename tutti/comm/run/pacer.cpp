#include "tutti/comm/run/pacer.h"

#include <algorithm>

namespace tutti::comm {
namespace {

// Bytes whose receiver has not come for so long do not hold up other operations.
constexpr auto kLong = std::chrono::milliseconds(50);

}  // namespace

void Pacer::enter(Flow& flow, int priority) {
  const std::lock_guard lock(mutex_);
  flow = Flow(priority);
  flow.began_ = Clock::now();
  flows_.push_back(&flow);
}

void Pacer::leave(Flow& flow) {
  const std::lock_guard lock(mutex_);
  std::erase(flows_, &flow);
}

void Pacer::note(Flow& flow, size_t leaving, size_t were_leaving, bool more) {
  const std::lock_guard lock(mutex_);
  if (leaving > flow.leaving_) flow.began_ = Clock::now();
  flow.leaving_ = leaving;
  flow.were_leaving_ = were_leaving;
  flow.more_ = more;
}

bool Pacer::may_begin(const Flow& flow, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  size_t leaving = flow.leaving_;
  for (const Flow* other : flows_) {
    if (other == &flow || now - other->began_ > kLong) continue;
    if (other->priority_ > flow.priority_ && other->more_) return false;
    leaving += other->leaving_;
  }
  if (leaving >= window_) return false;
  if (++begun_ >= kCalm) {
    window_ = std::max(window_ / 8 * 7, kLeastWindow);
    begun_ = 0;
  }
  return true;
}

void Pacer::look_over() {
  const std::lock_guard lock(mutex_);
  bool more = false, busy = false;
  for (const Flow* flow : flows_) {
    more |= flow->more_;
    busy |= flow->were_leaving_ > 0;
  }
  if (!more || busy) return;
  window_ = std::min(2 * window_, kMostWindow);
  begun_ = 0;
}

size_t Pacer::window() const {
  const std::lock_guard lock(mutex_);
  return window_;
}

}  // namespace tutti::comm
