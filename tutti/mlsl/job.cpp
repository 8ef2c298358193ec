#include "tutti/mlsl/job.h"

#include <algorithm>
#include <limits>

#include "tutti/mlsl/exchange.h"

namespace tutti::mlsl {

void Job::progress() {
  // A test() takes a complete exchange off the list, and one of several stages starts its next:
  // what is then passed over has its turn in the next round.
  for (size_t i = 0; i < in_flight_.size();)
    if (!in_flight_[i]->test()) ++i;
}

void Job::settle() {
  while (!in_flight_.empty()) in_flight_.front()->wait();
}

int Job::next_priority(size_t bytes) {
  if (!settings_.newest_first) return 0;
  constexpr int kMost = std::numeric_limits<int>::max();
  if (bytes < settings_.priority_threshold) return kMost;
  // Numbers begin anew when they run out, once in two thousand million starts: then an older
  // exchange goes first for a moment.
  started_ = started_ == kMost - 1 ? 1 : started_ + 1;
  return started_;
}

void Job::enter(Exchange& exchange) {
  const auto behind = std::ranges::find_if(
      in_flight_, [&](const Exchange* other) { return other->priority() < exchange.priority(); });
  in_flight_.insert(behind, &exchange);
}

void Job::leave(Exchange& exchange) { std::erase(in_flight_, &exchange); }

}  // namespace tutti::mlsl
