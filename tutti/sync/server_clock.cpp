#include "tutti/sync/server_clock.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/sync/batch_dealer.h"
#include "tutti/sync/virtual_clock.h"

namespace tutti::sync {

ServerClock::ServerClock(ServerClockSpec spec)
    : spec_(std::move(spec)), part_bytes_(static_cast<size_t>(spec_.servers)),
      workers_(static_cast<size_t>(spec_.workers)),
      nodes_(static_cast<size_t>(spec_.machine.node(spec_.workers * spec_.group - 1) + 1)),
      servers_(static_cast<size_t>(spec_.servers)) {
  CHECK(spec_.quorum <= spec_.workers && !spec_.buckets.empty());
  CHECK(spec_.round == 0 || (spec_.round >= spec_.workers && spec_.quorum == 0),
        "a round of {} gradients for {} workers", spec_.round, spec_.workers);
  deal_buckets();
  begin(0, 0);
}

/// Assigns each small bucket to the server that has least so far.
void ServerClock::deal_buckets() {
  for (const exchange::Bucket& bucket : spec_.buckets)
    weight_bytes_ += static_cast<double>(bucket.bytes);
  const double share = weight_bytes_ / spec_.servers;
  for (const exchange::Bucket& bucket : spec_.buckets) {
    const auto bytes = static_cast<double>(bucket.bytes);
    std::vector<Part>& parts = parts_.emplace_back();
    if (bytes > share)
      for (int s = 0; s < spec_.servers; ++s) parts.push_back({s, bytes / spec_.servers});
    else
      parts.push_back(
          {static_cast<int>(std::ranges::min_element(part_bytes_) - part_bytes_.begin()), bytes});
    for (const Part& part : parts) part_bytes_[static_cast<size_t>(part.server)] += part.bytes;
  }
}

void ServerClock::begin(double seconds, int64_t version, int64_t left) {
  now_ = seconds;
  version_ = version;
  constexpr int64_t kEndless = int64_t{1} << 52;  // exact as a double
  tickets_ = left > 0 ? left : spec_.round > 0 ? spec_.round : kEndless;
  for (Worker& worker : workers_) {
    worker.version = version;
    worker.steps = worker.tickets = 0;
  }
  for (const int64_t most : {int64_t{1}, BatchDealer::kAhead})  // one each before a second
    for (Worker& worker : workers_) take_tickets(worker, most);
  for (Worker& worker : workers_) {
    start(worker, seconds);
    worker.waits = worker.tickets == 0;
  }
}

/// Takes tickets while there are any, until it has `most`.
void ServerClock::take_tickets(Worker& worker, int64_t most) {
  const int64_t last = spec_.bound ? slowest() : 0;
  while (tickets_ > 0 && worker.tickets < most &&
         (!spec_.bound || worker.steps + worker.tickets - last <= *spec_.bound)) {
    ++worker.tickets;
    --tickets_;
  }
}

int ServerClock::device(const Worker& worker) const {
  return static_cast<int>(&worker - workers_.data()) * spec_.group;
}

int ServerClock::server_device(int server) const {
  return (static_cast<int>(nodes_.size()) + server) * spec_.machine.devices_per_node;
}

void ServerClock::start(Worker& worker, double seconds) {
  worker.began = worker.arrived = seconds;
  worker.sent = 0;
  worker.waits = false;
  find_times(worker);
}

/// Computes when buckets are complete. The slowest in a group makes them evenly over the backward
/// pass; the group sums each bucket after the one before.
void ServerClock::find_times(Worker& worker) const {
  double slowest = 0, sum = 0;
  for (int d = 0; d < spec_.group; ++d) {
    const double seconds =
        spec_.machine.compute_seconds(spec_.flop, device(worker) + d, worker.begun, spec_.seed);
    slowest = std::max(slowest, seconds);
    sum += seconds;
  }
  worker.computed = sum / spec_.group;
  worker.made.clear();
  double made = 0, before = worker.began;
  for (const exchange::Bucket& bucket : spec_.buckets) {
    const auto bytes = static_cast<double>(bucket.bytes);
    made += bytes;
    const double complete =
        worker.began + slowest * (kForward + (1 - kForward) * made / weight_bytes_);
    before = std::max(before, complete) + spec_.machine.allreduce_seconds(bytes, spec_.group);
    worker.made.push_back(before);
  }
}

double ServerClock::transfer(double& out, double& in, double seconds, double bytes, int from,
                             int to) {
  const double latency = spec_.machine.message_seconds(0, from, to);
  const double end =
      std::max({seconds, out, in}) + (spec_.machine.message_seconds(bytes, from, to) - latency);
  out = in = end;
  counts_.bytes += bytes;
  return end + latency;
}

void ServerClock::send_bucket(Worker& worker) {
  const int from = device(worker);
  double& out = nodes_[static_cast<size_t>(spec_.machine.node(from))].out;
  for (const Part& part : parts_[worker.sent])
    worker.arrived =
        std::max(worker.arrived,
                 transfer(out, servers_[static_cast<size_t>(part.server)].in,
                          worker.made[worker.sent], part.bytes, from, server_device(part.server)));
  ++worker.sent;
}

/// Sends a worker the current weights.
void ServerClock::serve(int number) {
  Worker& worker = workers_[static_cast<size_t>(number)];
  const int to = device(worker);
  double there = now_;
  for (int s = 0; s < spec_.servers; ++s)
    there = std::max(there, transfer(servers_[static_cast<size_t>(s)].out,
                                     nodes_[static_cast<size_t>(spec_.machine.node(to))].in, now_,
                                     part_bytes_[static_cast<size_t>(s)], server_device(s), to));
  // Within a group, scatter and allgather send as many bytes as a sum.
  there += spec_.machine.allreduce_seconds(weight_bytes_, spec_.group);
  waited_ += (there - worker.began - worker.computed) / spec_.workers;
  worker.version = version_;
  ++worker.begun;
  start(worker, there);
}

/// Serves each worker that has a ticket and waits for weights.
void ServerClock::serve_waiting(std::vector<int>& served) {
  for (int w = 0; w < spec_.workers; ++w) {
    Worker& worker = workers_[static_cast<size_t>(w)];
    take_tickets(worker, BatchDealer::kAhead);
    if (!worker.waits || worker.tickets == 0) continue;
    serve(w);
    served.push_back(w);
  }
}

/// All devices take the servers' weights and states, at the cost of an allreduce.
void ServerClock::meet() {
  now_ += spec_.machine.allreduce_seconds(weight_bytes_ + spec_.state_bytes,
                                          spec_.workers * spec_.group);
  for (Worker& worker : workers_) {
    waited_ += (now_ - worker.began - worker.computed) / spec_.workers;
    ++worker.begun;
  }
  begin(now_, version_);
}

int64_t ServerClock::slowest() const {
  return std::ranges::min_element(workers_, {}, &Worker::steps)->steps;
}

ArrivedGradient ServerClock::next() {
  while (true) {
    // Takes the earliest event; among simultaneous ones, the first worker's.
    Worker* first = nullptr;
    double at = 0;
    for (Worker& worker : workers_) {
      if (worker.waits) continue;
      const double t = worker.sent < worker.made.size() ? worker.made[worker.sent] : worker.arrived;
      if (!first || t < at) first = &worker, at = t;
    }
    CHECK(first, "all workers wait for the servers");
    if (first->sent < first->made.size()) {
      send_bucket(*first);
      continue;
    }
    now_ = std::max(now_, at);
    ArrivedGradient arrived{.worker = static_cast<int>(first - workers_.data()),
                            .read = first->version,
                            .version = version_,
                            .dropped = spec_.quorum > 0 && first->version < version_,
                            .updates = true};
    first->waits = true;
    if (arrived.dropped) {
      arrived.updates = false;
      arrived.served.push_back(arrived.worker);
      serve(arrived.worker);
    } else {
      ++first->steps;
      --first->tickets;
      if (spec_.quorum > 0) arrived.updates = ++taken_ == spec_.quorum;
    }
    if (arrived.updates) {
      ++version_;
      taken_ = 0;
      serve_waiting(arrived.served);
    }
    count(arrived);
    if (std::ranges::all_of(workers_, &Worker::idle)) {
      meet();
      arrived.served.resize(workers_.size());
      std::iota(arrived.served.begin(), arrived.served.end(), 0);
    }
    return arrived;
  }
}

void ServerClock::count(const ArrivedGradient& arrived) {
  counts_.updates += arrived.updates;
  counts_.dropped += arrived.dropped;
  for (const Worker& worker : workers_)
    if (!worker.waits) counts_.spread = std::max(counts_.spread, version_ - worker.version);
  if (!arrived.dropped) counts_.add_gradients(arrived.version - arrived.read);
}

ServedCounts ServerClock::take_counts() {
  counts_.version = version_;
  return std::exchange(counts_, {});
}

double ServerClock::take_waited() { return std::exchange(waited_, 0); }

std::vector<double> ServerClock::state() const {
  std::vector<double> numbers{static_cast<double>(workers_.size()),
                              static_cast<double>(nodes_.size()),
                              static_cast<double>(servers_.size()),
                              static_cast<double>(spec_.buckets.size()),
                              now_,
                              static_cast<double>(version_),
                              static_cast<double>(tickets_),
                              static_cast<double>(taken_)};
  for (const std::vector<Link>* links : {&nodes_, &servers_})
    for (const Link& link : *links) numbers.insert(numbers.end(), {link.out, link.in});
  for (const Worker& w : workers_)
    numbers.insert(numbers.end(),
                   {w.began, static_cast<double>(w.steps), static_cast<double>(w.tickets),
                    static_cast<double>(w.begun), static_cast<double>(w.sent), w.arrived,
                    static_cast<double>(w.version), w.waits ? 1.0 : 0.0});
  return numbers;
}

bool ServerClock::restore(std::span<const double> state) {
  const std::vector<double> own = this->state();
  constexpr size_t kSizes = 4;
  if (state.size() != own.size() || !std::equal(own.begin(), own.begin() + kSizes, state.begin()))
    return false;
  const double* at = state.data() + kSizes;
  const auto real = [&] { return *at++; };
  const auto whole = [&] { return static_cast<int64_t>(*at++); };
  now_ = real();
  version_ = whole();
  tickets_ = whole();
  taken_ = static_cast<int>(whole());
  for (std::vector<Link>* links : {&nodes_, &servers_})
    for (Link& link : *links) {
      link.out = real();
      link.in = real();
    }
  for (Worker& w : workers_) {
    w.began = real();
    w.steps = whole();
    w.tickets = whole();
    w.begun = whole();
    w.sent = static_cast<size_t>(whole());
    w.arrived = real();
    w.version = whole();
    w.waits = whole() != 0;
    find_times(w);
  }
  return true;
}

}  // namespace tutti::sync
