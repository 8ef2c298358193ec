#include "tutti/parallel/ticket_desk.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti {

void TicketDesk::open(int64_t first, int64_t end) {
  CHECK(first % together_ == 0 && end % together_ == 0 && first < end,
        "a round of the gradients {} to {}, of which {} are a step", first, end, together_);
  CHECK(given_ == applied_, "a round begins before the last one is over");
  next_ = first;
  end_ = end;
  std::ranges::fill(given_, 0);
  std::ranges::fill(applied_, 0);
}

int64_t TicketDesk::slowest() const { return *std::ranges::min_element(applied_); }

std::optional<int64_t> TicketDesk::next_for(int worker) {
  int64_t& given = given_[static_cast<size_t>(worker)];
  if (empty() || given - applied_[static_cast<size_t>(worker)] >= kAhead) return std::nullopt;
  if (bound_ && given - slowest() > *bound_) return std::nullopt;
  ++given;
  return next_++;
}

void TicketDesk::close() {
  const int64_t begun = (next_ + together_ - 1) / together_ * together_;
  end_ = std::min(end_, begun);
}

}  // namespace tutti
