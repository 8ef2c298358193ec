#include "tutti/comm/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

class SimulatedTime {
 public:
  SimulatedTime(std::span<const Schedule> schedules, const NetworkCost& network,
                std::span<const int> node_of, size_t element_bytes, size_t accumulator_bytes)
      : schedules_(schedules), network_(network), element_bytes_(element_bytes),
        accumulator_bytes_(accumulator_bytes), ranks_(schedules.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].node = node_of.empty() ? 0 : node_of[r];
      events_.push(post_at(0, r));
    }
  }

  double run() {
    // Always the earliest event: links are taken in the order of time.
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.bytes_busy < 0)
        post(event.rank, event.when);
      else
        arrive(event);
      finish(event.rank);
    }
    double last = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].round < schedules_[r].rounds.size())
        throw CommError(fmt::format(
            "{}: the schedules do not fit each other: rank {} waits forever in round {}",
            schedules_[r].algorithm, r, ranks_[r].round));
      last = std::max(last, ranks_[r].done);
    }
    return last;
  }

 private:
  // A rank posts its round (bytes_busy < 0), or a message reaches its link.
  struct Event {
    double when = 0;
    uint64_t number = 0;  // orders events of equal time as they were made
    size_t rank = 0;
    int from = 0;
    size_t kind = 0;  // kind of link: inside, between
    double bytes_busy = -1;
    bool operator>(const Event& other) const {
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };
  Event post_at(double when, size_t rank) {
    return {.when = when, .number = numbers_++, .rank = rank};
  }

  struct Rank {
    int node = 0;
    size_t round = 0;
    bool posted = false;
    double begun = 0, left = 0,
           done = 0;  // in this round: posted at, all sent at; in the last round: finished at
    double out_free[2] = {0, 0}, in_free[2] = {0, 0};
  };

  double bytes_of(const Block& block) const {
    return static_cast<double>(
        block.count() * (block.space == Space::accumulator ? accumulator_bytes_ : element_bytes_));
  }

  void post(size_t r, double now) {
    Rank& rank = ranks_[r];
    if (rank.round == schedules_[r].rounds.size()) return;
    rank.posted = true;
    rank.begun = rank.left = now;
    for (const Message& m : schedules_[r].rounds[rank.round].sends) {
      Rank& peer = ranks_[static_cast<size_t>(m.peer)];
      const size_t kind = rank.node == peer.node ? 0 : 1;
      const LinkCost& link = kind == 0 ? network_.inside : network_.between;
      const double busy = bytes_of(m.block) * link.seconds_per_byte;
      const double start = std::max(now, rank.out_free[kind]);
      rank.out_free[kind] = start + busy;
      rank.left = std::max(rank.left, start + busy);
      events_.push({.when = start + link.latency,
                    .number = numbers_++,
                    .rank = static_cast<size_t>(m.peer),
                    .from = static_cast<int>(r),
                    .kind = kind,
                    .bytes_busy = busy});
    }
  }

  void arrive(const Event& event) {
    double& free = ranks_[event.rank].in_free[event.kind];
    free = std::max(event.when, free) + event.bytes_busy;
    wires_[{event.from, static_cast<int>(event.rank)}].push_back(free);
  }

  void finish(size_t r) {
    Rank& rank = ranks_[r];
    if (!rank.posted) return;
    const Round& round = schedules_[r].rounds[rank.round];
    std::map<int, size_t> needed;
    for (const Message& m : round.receives) ++needed[m.peer];
    for (const auto& [peer, count] : needed)
      if (wires_[{peer, static_cast<int>(r)}].size() < count) return;
    double now = rank.begun;
    for (const auto& [peer, count] : needed) {
      auto& wire = wires_[{peer, static_cast<int>(r)}];
      now = std::max(now, wire[count - 1]);
      wire.erase(wire.begin(), wire.begin() + static_cast<std::ptrdiff_t>(count));
    }
    for (const LocalStep& step : round.steps)
      now += bytes_of(step.to) * (step.kind == LocalStep::Kind::reduce
                                      ? network_.seconds_per_reduced_byte
                                      : network_.seconds_per_copied_byte);
    rank.done = std::max(now, rank.left);
    rank.posted = false;
    ++rank.round;
    events_.push(post_at(rank.done, r));
  }

  std::span<const Schedule> schedules_;
  const NetworkCost& network_;
  size_t element_bytes_, accumulator_bytes_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, std::deque<double>> wires_;  // arrivals that have not been received
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t numbers_ = 0;
};

}  // namespace

double price(std::span<const Schedule> schedules, const NetworkCost& network,
             std::span<const int> node_of, size_t element_bytes, size_t accumulator_bytes) {
  CHECK(node_of.empty() || node_of.size() == schedules.size(), "{} nodes of {} ranks",
        node_of.size(), schedules.size());
  return SimulatedTime(schedules, network, node_of, element_bytes, accumulator_bytes).run();
}

}  // namespace tutti::comm
