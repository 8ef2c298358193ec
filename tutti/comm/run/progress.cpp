#include "tutti/comm/run/progress.h"

#include <algorithm>
#include <chrono>

#include "tutti/comm/spin.h"
#include "tutti/device/cpu/topology.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;

// A thread without work polls for this long before it sleeps. Waking it costs the thread that
// starts an operation a system call (2 to 5 microseconds), and the operation 5 to 50 until the
// thread runs. The buckets of a backward pass follow each other too closely for sleep, and the
// forward pass between them is long enough to give the core away.
constexpr auto kLookOn = std::chrono::microseconds(100);
// Pause between two polls of a thread without its own core. The kernel adds about 50 microseconds.
constexpr auto kProgressNap = std::chrono::microseconds(50);

}  // namespace

Progress::Progress(std::span<const int> processors) {
  for (const int processor : processors) {
    threads_.emplace_back([this, has_core = processor != kNoCore](const std::stop_token& stop) {
      serve(stop, has_core);
    });
    if (processor != kNoCore) device::bind_thread(threads_.back().native_handle(), processor);
  }
}

void Progress::add(Operation& operation) {
  {
    const Lock lock(mutex_);
    in_flight_.insert(std::ranges::find_if(in_flight_,
                                           [&](const Operation* other) {
                                             return other->priority() < operation.priority();
                                           }),
                      &operation);
  }
  wake_.notify_one();  // no system call when no thread sleeps
}

// The caller holds the lock, which is released during the call. When the operation is complete, its
// owner may destroy it as soon as done_ is stored.
void Progress::step(Operation& operation, Lock& lock) {
  operation.advancing_ = true;
  lock.unlock();
  bool done = true;
  try {
    done = operation.advance_guarded();
  } catch (...) {
    operation.error_ = std::current_exception();  // for the owner's test()
  }
  lock.lock();
  operation.advancing_ = false;
  if (!done) return;
  std::erase(in_flight_, &operation);
  operation.completed_ = Clock::now();
  operation.done_.store(true, std::memory_order_release);
}

void Progress::advance(Operation& operation) {
  Lock lock(mutex_);
  if (!operation.advancing_ && !operation.done_.load(std::memory_order_relaxed))
    step(operation, lock);
}

void Progress::serve_others() {
  Lock lock(mutex_);
  for (size_t i = 0; i < in_flight_.size(); ++i)
    if (Operation* const operation = in_flight_[i]; operation->serves() && !operation->advancing_)
      step(*operation, lock);
}

size_t Progress::pass() {
  Lock lock(mutex_);
  // The list may change during a step: then one operation is polled twice, or in the next pass.
  for (size_t i = 0; i < in_flight_.size();) {
    Operation* const operation = in_flight_[i];
    if (!operation->advancing_) step(*operation, lock);
    if (i < in_flight_.size() && in_flight_[i] == operation) ++i;
  }
  pacer_.look_over();
  return static_cast<size_t>(std::ranges::count_if(in_flight_, [](const Operation* operation) {
    return operation->advancing_ || !operation->idle();
  }));
}

Progress::Lock Progress::hold(const Operation& operation) {
  Lock lock(mutex_);
  while (operation.advancing_) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  return lock;
}

void Progress::withdraw(Operation& operation) {
  const Lock lock = hold(operation);
  std::erase(in_flight_, &operation);
}

Pending Progress::describe(const Operation& operation) {
  const Lock lock = hold(operation);
  return operation.describe();
}

bool Progress::empty() const {
  const Lock lock(mutex_);
  return in_flight_.empty();
}

void Progress::serve(const std::stop_token& stop, bool has_core) {
  auto last = Clock::now();  // when something was last in flight
  while (!stop.stop_requested()) {
    work_.help();
    if (pass() > 0) {
      last = Clock::now();
      if (has_core)
        spin_pause();
      else
        std::this_thread::sleep_for(kProgressNap);
    } else if (has_core && Clock::now() - last < kLookOn) {
      spin_pause();
    } else {
      Lock lock(mutex_);
      if (in_flight_.empty()) {
        wake_.wait(lock, stop, [this] { return !in_flight_.empty(); });
        last = Clock::now();
      } else {  // all of them only listen
        const size_t listening = in_flight_.size();
        if (wake_.wait_for(lock, stop, kProgressNap,
                           [&] { return in_flight_.size() != listening; }))
          last = Clock::now();
      }
    }
  }
}

}  // namespace tutti::comm
