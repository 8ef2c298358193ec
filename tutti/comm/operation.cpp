#include "tutti/comm/operation.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

Operation::Operation(Communicator& communicator, std::string name) : communicator_(communicator), name_(std::move(name)) {}

Operation::~Operation() { std::erase(communicator_.in_flight_, this); }

void Operation::start() {
  CHECK(!in_flight_, "'{}' started twice without waiting for the first", name_);
  ++sequence_;
  in_flight_ = true;
  // Sorted by priority; the newest comes last among equals.
  auto& list = communicator_.in_flight_;
  list.insert(std::ranges::find_if(list, [this](const Operation* other) { return other->priority_ < priority_; }), this);
  begin();
}

bool Operation::test() {
  if (!in_flight_) return true;
  if (!advance()) return false;
  in_flight_ = false;
  std::erase(communicator_.in_flight_, this);
  return true;
}

void Operation::wait() {
  if (test()) return;
  communicator_.wait_for([this] { return test(); }, [this] { return describe(); });
}

}  // namespace tutti::comm
