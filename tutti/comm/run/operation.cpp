#include "tutti/comm/run/operation.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

Operation::Operation(Communicator& communicator, std::string name)
    : communicator_(communicator), name_(std::move(name)) {}

Operation::~Operation() {
  CHECK(!in_flight_,
        "'{}' is destroyed in flight by a class whose destructor does not begin with withdraw()",
        name_);
}

void Operation::withdraw() noexcept {
  if (in_flight_) communicator_.progress_->withdraw(*this);
  in_flight_ = false;
}

// Adds the operation to an error message from below, where it is not known.
template <class Work>
void Operation::guarded(Work work) {
  try {
    work();
  } catch (const CommError& error) {
    const std::string who = communicator_.who();
    if (std::string_view(error.what()).starts_with(who)) throw;
    const Pending what = describe();
    throw CommError(fmt::format("{}: {}: {} number {}: {}", who, communicator_.describe_group(),
                                what.operation, what.sequence, error.what()));
  }
}

bool Operation::advance_guarded() {
  bool complete = false;
  guarded([&] { complete = advance(); });
  return complete;
}

Pacer& Operation::pacer() const { return communicator_.progress_->pacer(); }

void Operation::help(Operation& other) const { communicator_.progress_->advance(other); }

void Operation::start() {
  CHECK(!in_flight_, "'{}' started twice without waiting for the first", name_);
  ++sequence_;
  in_flight_ = true;
  done_.store(false, std::memory_order_relaxed);
  try {
    guarded([this] { begin(); });
  } catch (...) {
    failed_ = true;
    error_ = std::current_exception();  // no thread will move it forward and meet the error again
    done_.store(true, std::memory_order_relaxed);
    throw;
  }
  communicator_.progress_->add(*this);
}

bool Operation::test() {
  if (!in_flight_) return true;
  Progress& progress = *communicator_.progress_;
  if (progress.threads() == 0) progress.serve_others();
  return look();
}

// One poll of a wait, which serves other ranks between its polls.
bool Operation::look() {
  if (!in_flight_) return true;
  Progress& progress = *communicator_.progress_;
  if (progress.threads() == 0) progress.advance(*this);
  if (!done_.load(std::memory_order_acquire)) return false;
  if (error_) {
    failed_ = true;
    std::rethrow_exception(error_);
  }
  in_flight_ = false;
  return true;
}

void Operation::wait_until(const std::function<bool()>& done) {
  try {
    communicator_.wait_for(
        done, [this] { return pending(); }, patient_ ? std::numeric_limits<double>::infinity() : 0);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void Operation::wait() {
  if (test()) return;
  wait_until([this] { return look(); });
}

bool Operation::wait_for(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (test()) return true;
  const auto begin = Clock::now();
  bool complete = false;
  wait_until([&] {
    complete = look();
    return complete || std::chrono::duration<double>(Clock::now() - begin).count() >= seconds;
  });
  return complete;
}

Pending Operation::pending() const { return communicator_.progress_->describe(*this); }

}  // namespace tutti::comm
