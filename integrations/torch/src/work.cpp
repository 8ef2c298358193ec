#include "work.h"

#include <algorithm>
#include <thread>

#include "progress_thread.h"
#include "status.h"

namespace tutti_torch {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 500ms;       // a work that lasts longer is polled with a wait ...
constexpr auto kBetweenLooks = 2s;  // ... at this interval
constexpr auto kMoved = 5us;        // a poll that took longer has made progress
constexpr auto kMost = 1ms;         // most of that time that a peer is given for the same
constexpr double kLook = 0.25;      // seconds; libtutticomm checks peers after 0.2

}  // namespace

TuttiWork::TuttiWork(std::shared_ptr<Group> group, const Options& options)
    : Work(group->rank(), options.type, options.title,
           options.inputs.empty() ? std::nullopt : std::optional(options.inputs)),
      group_(std::move(group)), timeout_(options.timeout), sequence_(options.sequence),
      next_look_(begun_ + kLong) {}

void TuttiWork::start(std::shared_ptr<Slot> slot, const void* input, void* output) {
  check(tutti_comm_plan_rebind(slot->plan.get(), input, output));
  start(std::move(slot));
}

void TuttiWork::start(std::shared_ptr<Slot> slot) {
  check(tutti_comm_start(slot->plan.get()));
  slot->user =
      c10::weak_intrusive_ptr<c10d::Work>(c10::intrusive_ptr<c10d::Work>::reclaim_copy(this));
  moving_plans_.push_back({.slot = std::move(slot)});
}

void TuttiWork::check_message(const Moving& moving) const {
  if (!moving.receives) return;
  size_t bytes = 0;
  check(tutti_comm_received(moving.slot->plan.get(), &bytes));
  TORCH_CHECK(bytes == moving.bytes, "tutti: rank ", group_->rank(), ": recv: a message of ", bytes,
              " bytes came for a tensor of ", moving.bytes);
}

bool TuttiWork::test() {
  bool all = true;
  for (Moving& moving : moving_plans_) {
    if (moving.done) continue;
    int done = 0;
    check(tutti_comm_test(moving.slot->plan.get(), &done));
    moving.done = done != 0;
    all &= moving.done;
  }
  return all;
}

// Only a wait finds peers that have died.
bool TuttiWork::look() {
  const auto first = std::ranges::find(moving_plans_, false, &Moving::done);
  if (first == moving_plans_.end()) return true;
  int done = 0;
  check(tutti_comm_wait_for(first->slot->plan.get(), kLook, &done));
  const auto timeout = timeout_ > 0ms ? timeout_ : group_->timeout();
  if (done == 0 && Clock::now() - begun_ > timeout) expire();
  next_look_ = Clock::now() + kBetweenLooks;
  return test();
}

// Lets libtutticomm find out who is missing, and report it to the others.
void TuttiWork::expire() {
  check(tutti_comm_set_timeout(group_->comm(), kLook));
  for (Moving& moving : moving_plans_) check(tutti_comm_wait(moving.slot->plan.get()));
  group_->set_timeout(group_->timeout());
}

bool TuttiWork::advance() {
  if (complete_) return true;
  if (waiting_ > 0) return false;
  const std::unique_lock lock(moving_, std::try_to_lock);
  if (!lock) return false;
  if (complete_) return true;
  try {
    if (!test() && (Clock::now() < next_look_ || !look())) return false;
    for (const Moving& moving : moving_plans_) check_message(moving);
    complete();
  } catch (...) {
    complete(std::current_exception());
  }
  return true;
}

bool TuttiWork::advance_with_peers(std::chrono::microseconds patience) {
  auto before = Clock::now(), end = before + patience;
  while (!advance()) {
    const auto now = Clock::now();
    const auto took = now - before;
    // A thread that resumes only after the end, on a busy machine, does not wait again: a poll may
    // take long there without progress.
    if (before > end) return false;
    // The call has copied or added, and a peer has as much to do before it answers.
    if (took > kMoved) end = now + patience + std::min<Clock::duration>(took, kMost);
    if (now > end) return false;
    std::this_thread::yield();  // a peer may need this core
    before = Clock::now();
  }
  return true;
}

void TuttiWork::wait_until_complete(std::chrono::milliseconds limit) {
  if (complete_) return;
  if (limit <= 0ms) limit = timeout_;
  const bool limited = limit > 0ms && limit < group_->timeout();
  const auto end = Clock::now() + limit;
  const struct Waiting {
    explicit Waiting(std::atomic<int>& number) : threads(number) { ++threads; }
    ~Waiting() { --threads; }
    std::atomic<int>& threads;
  } waiting(waiting_);
  std::unique_lock lock(moving_, std::defer_lock);
  if (!limited)
    lock.lock();
  else if (!lock.try_lock_until(end))
    TORCH_CHECK_WITH(DistBackendError, false, "tutti: rank ", group_->rank(),
                     ": another thread waits for the same work");
  if (complete_) return;
  try {
    for (Moving& moving : moving_plans_) {
      if (moving.done) continue;
      int done = 1;
      if (!limited) {
        check(tutti_comm_wait(moving.slot->plan.get()));
      } else {
        const double left = std::chrono::duration<double>(end - Clock::now()).count();
        check(tutti_comm_wait_for(moving.slot->plan.get(), std::max(left, 0.0), &done));
      }
      moving.done = done != 0;
      if (!moving.done) break;
    }
  } catch (...) {
    complete(std::current_exception());
    return;
  }
  if (!std::ranges::all_of(moving_plans_, &Moving::done)) {
    // It is still in flight, so its buffers must live.
    ProgressThread::get().add(c10::intrusive_ptr<TuttiWork>::reclaim_copy(this));
    TORCH_CHECK_WITH(DistBackendError, false, "tutti: rank ", group_->rank(), ": ",
                     c10d::opTypeToString(retrieveOpType()), " number ", sequence_,
                     ": time-out: not complete within ", seconds(limit), " s");
  }
  try {
    for (const Moving& moving : moving_plans_) check_message(moving);
    complete();
  } catch (...) {
    complete(std::current_exception());
  }
}

void TuttiWork::complete(std::exception_ptr failure) {
  if (failure) {
    // The plans may be in flight. Once they are destroyed, no buffer is read or written any more.
    for (Moving& moving : moving_plans_) {
      if (moving.done) continue;
      moving.slot->plan.reset();
      group_->give_up();
    }
  } else {
    try {
      for (const auto& action : afterwards_) action();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  moving_plans_.clear();
  afterwards_.clear();
  kept_.clear();
  complete_ = true;
  finish(failure);
  const std::lock_guard lock(future_mutex_);
  if (!future_) return;
  if (failure)
    future_->setErrorIfNeeded(failure);
  else
    future_->markCompleted(c10::IValue(result_));
}

bool TuttiWork::isCompleted() {
  if (!complete_ && !ProgressThread::get().runs()) advance();
  return complete_;
}

bool TuttiWork::isSuccess() const { return complete_ && !exception(); }

bool TuttiWork::wait(std::chrono::milliseconds timeout) {
  wait_until_complete(timeout);
  if (const std::exception_ptr failure = exception()) std::rethrow_exception(failure);
  return true;
}

std::vector<at::Tensor> TuttiWork::result() {
  TORCH_CHECK(complete_, "tutti: the work is not complete: wait for it before its result is read");
  return result_;
}

c10::intrusive_ptr<c10::ivalue::Future> TuttiWork::getFuture() {
  // Without a thread no other thread completes it.
  if (!ProgressThread::get().runs()) wait_until_complete();
  const std::lock_guard lock(future_mutex_);
  if (!future_) {
    future_ =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    if (complete_) {
      if (const std::exception_ptr failure = exception())
        future_->setError(failure);
      else
        future_->markCompleted(c10::IValue(result_));
    }
  }
  return future_;
}

std::chrono::milliseconds TuttiWork::getTimeout() const {
  return timeout_ > 0ms ? timeout_ : group_->timeout();
}

}  // namespace tutti_torch
