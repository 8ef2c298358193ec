#include "tutti/sync/virtual_clock.h"

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::sync {
namespace {

/// Counts messages that share a sender's link: messages to other nodes share the node's link, those
/// to devices of the same node the device's.
class LinkFlows {
 public:
  LinkFlows(const comm::Machine& machine, size_t devices)
      : machine_(machine), of_node_(devices), of_device_(devices) {}
  void add(int from, int to) {
    if (from != to) ++count(from, to);
  }
  /// Returns the seconds that one of these messages takes.
  double seconds(double bytes, int from, int to) {
    return machine_.message_seconds(bytes, from, to, count(from, to));
  }

 private:
  int& count(int from, int to) {
    return machine_.node(from) == machine_.node(to)
               ? of_device_[static_cast<size_t>(from)]
               : of_node_[static_cast<size_t>(machine_.node(from))];
  }
  const comm::Machine& machine_;
  std::vector<int> of_node_, of_device_;
};

}  // namespace

VirtualClock::VirtualClock(VirtualClockSpec spec)
    : spec_(std::move(spec)), ready_(static_cast<size_t>(spec_.replicas)) {
  for (const exchange::Bucket& bucket : spec_.buckets)
    weight_bytes_ += static_cast<double>(bucket.bytes);
  if (spec_.sync && spec_.sync->kind == MeetingKind::tree)
    tree_.emplace(spec_.replicas, spec_.sync->children);
}

double VirtualClock::seconds() const { return std::ranges::max(ready_); }

void VirtualClock::resume(double seconds) { std::ranges::fill(ready_, seconds); }

double VirtualClock::step(int64_t step, std::span<const double> measured) {
  CHECK(!measures() || measured.size() == ready_.size(), "{} measured times", measured.size());
  const std::vector<double> began = ready_;
  std::vector<double> computed(ready_.size());
  for (size_t r = 0; r < ready_.size(); ++r) {
    computed[r] = spec_.machine.compute_seconds(spec_.flop, static_cast<int>(r), step, spec_.seed,
                                                measures() ? measured[r] : 0);
    ready_[r] += computed[r];
  }
  const std::vector<double> worked = ready_;
  if (!spec_.sync) {
    std::ranges::fill(ready_, gradient_end(computed, std::ranges::max(began)));
  } else if (const MeetingSettings& sync = *spec_.sync; sync.kind == MeetingKind::tree) {
    meet_in_tree(step);
  } else if (sync.kind == MeetingKind::gossip) {
    gossip(step);
  } else if (sync.kind != MeetingKind::never) {
    const bool first = sync.kind == MeetingKind::average && step < sync.first_steps;
    const double fragments = sync.kind == MeetingKind::average ? sync.fragments : 1;
    double bytes = 0;  // size of all parts that are summed
    for (int f = 0; f < static_cast<int>(fragments); ++f)
      if (first || (step + 1 + f * sync.every / static_cast<int64_t>(fragments)) % sync.every == 0)
        bytes +=
            weight_bytes_ / fragments *
            (first || sync.state == MetState::average ? 1 + spec_.state_bytes / weight_bytes_ : 1);
    if (bytes > 0 && sync.kind == MeetingKind::neighbours)
      meet_neighbours((step + 1) / sync.every - 1, began);
    else if (bytes > 0 && sync.delay > 0)
      meet_late(spec_.machine.allreduce_seconds(bytes, spec_.replicas));
    else if (bytes > 0)
      meet_all(spec_.machine.allreduce_seconds(bytes, spec_.replicas));
  }
  double waited = 0;
  for (size_t r = 0; r < ready_.size(); ++r) waited += ready_[r] - worked[r];
  return waited / static_cast<double>(ready_.size());
}

/// Returns when the last sum of a bucket arrives: each bucket is sent when the slowest replica has
/// made it and the one before has arrived, while backward goes on.
double VirtualClock::gradient_end(const std::vector<double>& computed, double begin) const {
  const double slowest = std::ranges::max(computed);
  double arrived = begin, made = 0;
  for (const exchange::Bucket& bucket : spec_.buckets) {
    made += static_cast<double>(bucket.bytes);
    const double complete = begin + slowest * (kForward + (1 - kForward) * made / weight_bytes_);
    arrived = std::max(arrived, complete) +
              spec_.machine.allreduce_seconds(static_cast<double>(bucket.bytes), spec_.replicas);
  }
  return std::max(arrived, begin + slowest);
}

// [replicas, ready of each, arrival of the last average, then (to, arrives) of each message]
std::vector<double> VirtualClock::state() const {
  std::vector<double> numbers = {static_cast<double>(spec_.replicas)};
  numbers.insert(numbers.end(), ready_.begin(), ready_.end());
  numbers.push_back(average_there_);
  for (const Sent& sent : sent_) {
    numbers.push_back(sent.to);
    numbers.push_back(sent.arrives);
  }
  return numbers;
}

bool VirtualClock::restore(std::span<const double> state) {
  const size_t replicas = ready_.size(), fixed = replicas + 2;
  if (state.size() < fixed || (state.size() - fixed) % 2 != 0 ||
      state[0] != static_cast<double>(spec_.replicas))
    return false;
  std::vector<Sent> sent;
  for (size_t at = fixed; at < state.size(); at += 2) {
    if (!(state[at] >= 0 && state[at] < static_cast<double>(replicas))) return false;
    sent.push_back({static_cast<int>(state[at]), state[at + 1]});
  }
  std::copy_n(state.begin() + 1, replicas, ready_.begin());
  average_there_ = state[replicas + 1];
  sent_ = std::move(sent);
  return true;
}

void VirtualClock::meet_all(double seconds) {
  std::ranges::fill(ready_, std::ranges::max(ready_) + seconds);
}

/// Waits for the previous meeting's average; this meeting's average begins when all have sent.
void VirtualClock::meet_late(double seconds) {
  for (double& ready : ready_) ready = std::max(ready, average_there_);
  average_there_ = std::max(average_there_, std::ranges::max(ready_)) + seconds;
}

/// Sends weights at the beginning of the step and averages them at its end.
void VirtualClock::meet_neighbours(int64_t meeting, const std::vector<double>& began) {
  std::vector<std::vector<MixingWeight>> rows;
  LinkFlows flows(spec_.machine, ready_.size());
  for (int r = 0; r < spec_.replicas; ++r) {
    rows.push_back(mixing_row(spec_.sync->graph, spec_.replicas, r, meeting));
    for (const MixingWeight& source : rows.back()) flows.add(source.replica, r);
  }
  std::vector<double> arrived = ready_;
  for (int r = 0; r < spec_.replicas; ++r)
    for (const MixingWeight& source : rows[static_cast<size_t>(r)]) {
      const double sent = began[static_cast<size_t>(source.replica)];
      double& mine = arrived[static_cast<size_t>(r)];
      mine = std::max(mine, sent + flows.seconds(weight_bytes_, source.replica, r));
    }
  ready_ = arrived;
}

/// Each node is kept with the first replica below it, which waits for its children's weights, and
/// they wait for the result. All of them share the node's link, there and back.
void VirtualClock::meet_in_tree(int64_t step) {
  for (int level = 1; level <= tree_->met(*spec_.sync, step); ++level) {
    LinkFlows flows(spec_.machine, ready_.size());
    const auto replica_of = [&](int child) { return tree_->first(level - 1, child); };
    for (int node = 0; node < tree_->nodes(level); ++node)
      for (int child = tree_->first_child(node); child < tree_->end_child(level, node); ++child)
        flows.add(tree_->first(level, node), replica_of(child));
    for (int node = 0; node < tree_->nodes(level); ++node) {
      const int place = tree_->first(level, node), end = tree_->end_child(level, node);
      const auto each_child = [&](auto visit) {
        for (int child = tree_->first_child(node); child < end; ++child)
          visit(ready_[static_cast<size_t>(replica_of(child))],
                flows.seconds(weight_bytes_, place, replica_of(child)));
      };
      double all_there = 0;
      each_child(
          [&](double& ready, double message) { all_there = std::max(all_there, ready + message); });
      each_child([&](double& ready, double message) { ready = all_there + message; });
    }
  }
}

/// Waits for messages sent after the previous step; new ones leave at once.
void VirtualClock::gossip(int64_t step) {
  for (const Sent& sent : sent_) {
    double& ready = ready_[static_cast<size_t>(sent.to)];
    ready = std::max(ready, sent.arrives);
  }
  sent_.clear();
  LinkFlows flows(spec_.machine, ready_.size());
  std::vector<std::pair<int, int>> messages;
  for (int from = 0; from < spec_.replicas; ++from)
    if (const auto to = gossip_to(*spec_.sync, spec_.replicas, from, step)) {
      messages.emplace_back(from, *to);
      flows.add(from, *to);
    }
  for (const auto& [from, to] : messages)
    sent_.push_back(
        {to, ready_[static_cast<size_t>(from)] + flows.seconds(weight_bytes_, from, to)});
}

}  // namespace tutti::sync
