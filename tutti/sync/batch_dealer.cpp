#include "tutti/sync/batch_dealer.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::sync {
namespace {

/// Removes and returns the first ticket that the worker holds.
int64_t pop_ticket(std::deque<int64_t>& held) {
  const int64_t ticket = held.front();
  held.pop_front();
  return ticket;
}

}  // namespace

std::unique_ptr<BatchDealer> BatchDealer::make(const TicketRules& rules) {
  if (rules.quorum) return std::make_unique<QuorumDealer>(rules);
  return std::make_unique<OneByOneDealer>(rules);
}

void BatchDealer::open(int64_t first, int64_t end) {
  const int64_t together = rules_.together;
  CHECK(first % together == 0 && end % together == 0 && first < end,
        "a round of the gradients {} to {}, of which {} are a step", first, end, together);
  CHECK(empty(), "a round begins before the last one is over");
  next_ = first;
  end_ = end;
  begin_round();
}

void BatchDealer::close() {
  const int64_t together = rules_.together;
  const int64_t begun = (next_ + together - 1) / together * together;
  end_ = std::min(end_, begun);
}

OneByOneDealer::OneByOneDealer(const TicketRules& rules)
    : BatchDealer(rules), workers_(static_cast<size_t>(rules.workers)) {}

void OneByOneDealer::begin_round() {
  for (Worker& worker : workers_) {
    CHECK(worker.held.empty(), "a round begins before the last one is over");
    worker = {};
  }
}

int64_t OneByOneDealer::slowest() const {
  return std::ranges::min_element(workers_, {}, &Worker::arrived)->arrived;
}

std::optional<int64_t> OneByOneDealer::next_for(int number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  if (empty() || std::ssize(worker.held) >= kAhead) return std::nullopt;
  if (rules_.bound && worker.given - slowest() > *rules_.bound) return std::nullopt;
  ++worker.given;
  worker.held.push_back(next_);
  return next_++;
}

BatchDealer::Arrival OneByOneDealer::arrived(int number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  ++worker.arrived;
  return {.ticket = pop_ticket(worker.held)};
}

QuorumDealer::QuorumDealer(const TicketRules& rules)
    : BatchDealer(rules), workers_(static_cast<size_t>(rules.workers)) {
  CHECK(!rules.bound && rules.together <= rules.workers,
        "a step of {} gradients, one of each of {} workers", rules.together, rules.workers);
}

void QuorumDealer::begin_round() {
  for (Worker& worker : workers_) worker = {.held = {}, .makes = true, .was_late = worker.was_late};
}

/// Gives tickets that no worker computes any more first, then new ones. When there are neither, a
/// free worker duplicates another's ticket, and the first gradient to arrive is taken: so a late
/// worker does not delay the last step of a round. Tickets to read ahead are new ones and never the
/// last ones, which would have to wait for their worker's next weights. A worker that was late gets
/// none: it computes every ticket that it holds, and at the end of a round all would wait for it
/// again.
std::optional<int64_t> QuorumDealer::next_for(int number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  if (worker.late) return std::nullopt;
  const bool free = worker.held.empty() && !worker.waits;
  if (!free) {
    const bool ahead = std::ssize(worker.held) + int64_t{worker.waits} < kAhead;
    if (!ahead || worker.was_late || end_ - next_ <= rules_.together) return std::nullopt;
  }
  const auto fewest =
      std::ranges::min_element(open_, {}, [](const auto& entry) { return entry.second; });
  int64_t ticket = next_;
  if (fewest != open_.end() && (fewest->second == 0 || next_ == end_)) {
    if (!free) return std::nullopt;
    ticket = fewest->first;
  } else if (next_ == end_) {
    return std::nullopt;
  } else {
    ++next_;
  }
  ++open_[ticket];
  worker.held.push_back(ticket);
  return ticket;
}

BatchDealer::Arrival QuorumDealer::arrived(int number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  CHECK(worker.makes, "worker {} has sent a gradient without weights", number);
  worker.makes = false;
  worker.was_late = std::exchange(worker.late, false);
  if (worker.was_late) return {.ticket = 0, .taken = false};
  const int64_t ticket = pop_ticket(worker.held);
  if (open_.erase(ticket) == 0) return {.ticket = ticket, .taken = false};
  worker.waits = true;
  if (++taken_ == rules_.together) end_step();
  return {.ticket = ticket};
}

/// Workers still computing with these weights come too late: their tickets go to others.
void QuorumDealer::end_step() {
  taken_ = 0;
  for (Worker& worker : workers_) {
    worker.waits = false;
    if (!worker.makes || worker.held.empty() || std::exchange(worker.late, true)) continue;
    if (const auto held = open_.find(pop_ticket(worker.held)); held != open_.end()) --held->second;
  }
}

}  // namespace tutti::sync
