#include "tutti/comm/reduction.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/comm/communicator.h"

namespace tutti::comm {

Reduction::Reduction(Communicator& communicator, ReductionSpec spec) : communicator_(communicator), spec_(std::move(spec)) {}

Reduction::~Reduction() { std::erase(communicator_.in_flight_, this); }

void Reduction::start() {
  CHECK(!in_flight_, "reduction '{}' started twice without waiting for the first", spec_.name);
  ++sequence_;
  in_flight_ = true;
  communicator_.in_flight_.push_back(this);
  begin();
}

bool Reduction::test() {
  if (!in_flight_) return true;
  if (!advance()) return false;
  in_flight_ = false;
  std::erase(communicator_.in_flight_, this);
  return true;
}

void Reduction::wait() {
  if (test()) return;
  communicator_.wait_for([this] { return test(); }, [this] { return pending(); });
}

Range Reduction::slice(int rank) const {
  constexpr size_t kLineFloats = 16;
  const size_t lines = (spec_.count + kLineFloats - 1) / kLineFloats;
  const auto bound = [&](int p) {
    return static_cast<int>(std::min(spec_.count, lines * static_cast<size_t>(p) / static_cast<size_t>(communicator_.size()) * kLineFloats));
  };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace tutti::comm
