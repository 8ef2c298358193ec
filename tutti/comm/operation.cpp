#include "tutti/comm/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

Operation::Operation(Communicator& communicator, std::string name) : communicator_(communicator), name_(std::move(name)) {}

Operation::~Operation() { std::erase(communicator_.in_flight_, this); }

// What goes wrong below does not know whose messages those were.
template <class Work>
void Operation::guarded(Work work) {
  try {
    work();
  } catch (const CommError& error) {
    const std::string who = communicator_.who();
    if (std::string_view(error.what()).starts_with(who)) throw;
    throw CommError(fmt::format("{}: {}: {} number {}: {}", who, communicator_.describe_group(), describe().operation, sequence_, error.what()));
  }
}

void Operation::start() {
  CHECK(!in_flight_, "'{}' started twice without waiting for the first", name_);
  ++sequence_;
  in_flight_ = true;
  // Sorted by priority; the newest comes last among equals.
  auto& list = communicator_.in_flight_;
  list.insert(std::ranges::find_if(list, [this](const Operation* other) { return other->priority_ < priority_; }), this);
  guarded([this] { begin(); });
}

bool Operation::test() {
  if (!in_flight_) return true;
  bool complete = false;
  guarded([&] { complete = advance(); });
  if (!complete) return false;
  in_flight_ = false;
  std::erase(communicator_.in_flight_, this);
  return true;
}

void Operation::wait() {
  if (test()) return;
  communicator_.wait_for([this] { return test(); }, [this] { return describe(); });
}

}  // namespace tutti::comm
