#include "tutti/comm/operation.h"

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

Operation::Operation(Communicator& communicator, std::string name) : communicator_(communicator), name_(std::move(name)) {}

Operation::~Operation() { CHECK(!in_flight_, "'{}' is destroyed in flight by a class whose destructor does not begin with withdraw()", name_); }

void Operation::withdraw() noexcept {
  if (in_flight_) communicator_.progress_->withdraw(*this);
  in_flight_ = false;
}

void Operation::start() {
  CHECK(!in_flight_, "'{}' started twice without waiting for the first", name_);
  ++sequence_;
  in_flight_ = true;
  done_.store(false, std::memory_order_relaxed);
  begin();
  communicator_.progress_->add(*this);
}

bool Operation::test() {
  if (!in_flight_) return true;
  Progress& progress = *communicator_.progress_;
  if (progress.threads() == 0) progress.advance(*this);
  if (!done_.load(std::memory_order_acquire)) return false;
  if (error_) std::rethrow_exception(error_);
  in_flight_ = false;
  return true;
}

void Operation::wait() {
  if (test()) return;
  communicator_.wait_for([this] { return test(); }, [this] { return pending(); });
}

Pending Operation::pending() const { return communicator_.progress_->describe(*this); }

}  // namespace tutti::comm
