#include "tutti/mlsl/job.h"

#include <limits>

namespace tutti::mlsl {

void Job::start(comm::Operation& operation, size_t bytes) {
  operation.set_priority(next_priority(bytes));
  operation.start();
  world_.progress();
}

bool Job::test(comm::Operation& operation) {
  world_.progress();
  return operation.test();
}

int Job::next_priority(size_t bytes) {
  if (!settings_.newest_first) return 0;
  constexpr int kMost = std::numeric_limits<int>::max();
  if (bytes < settings_.priority_threshold) return kMost;
  // Numbers wrap around once in two thousand million starts: an older operation then goes first for
  // a moment.
  started_ = started_ == kMost - 1 ? 1 : started_ + 1;
  return started_;
}

}  // namespace tutti::mlsl
