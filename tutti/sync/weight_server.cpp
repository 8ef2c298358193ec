#include "tutti/sync/weight_server.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::sync {
namespace {

/// Whether all messages are complete.
bool all_there(const std::vector<std::unique_ptr<comm::MessageOperation>>& messages) {
  return std::ranges::all_of(messages, [](const auto& message) { return message->test(); });
}

}  // namespace

WeightServer::WeightServer(comm::Communicator& communicator, Spec spec,
                           const exchange::BucketLayout& layout, ServedWeights& weights)
    : Operation(communicator, "server of weights"), spec_(std::move(spec)), weights_(weights),
      workers_(spec_.ranks.workers.size()) {
  // A worker has made its own gradients when it waits here, so the others' must come within the
  // time-out. A rank that only serves may wait for all workers, which find out themselves which one
  // is stuck.
  set_patient(std::ranges::find(spec_.ranks.workers, communicator.rank()) ==
              spec_.ranks.workers.end());
  for (size_t p = 0; p < spec_.parts.size(); ++p)
    if (spec_.parts[p].server == spec_.server) own_.push_back(p);
  for (const exchange::Bucket& bucket : layout.buckets) begins_.push_back(bucket.begin);
  for (size_t w = 0; w < workers_.size(); ++w) {
    workers_[w].rank = spec_.ranks.workers[w];
    workers_[w].buckets.resize(layout.buckets.size());
    if (!is_here(workers_[w])) plan(workers_[w], layout);
  }
  if (spec_.server == 0) dealer_ = BatchDealer::make(spec_.tickets);
  plan_wishes();
  if (spec_.tickets.quorum) plan_verdicts(layout);
}

WeightServer::~WeightServer() { withdraw(); }

void WeightServer::plan(Worker& worker, const exchange::BucketLayout& layout) {
  worker.gradient = device::Buffer(layout.bytes);
  worker.weights = device::Buffer(layout.bytes);
  for (const size_t p : own_) {
    const ServedPart& part = spec_.parts[p];
    const size_t begin = begins_[static_cast<size_t>(part.bucket)];
    const auto slice = [&](device::Buffer& buffer) {
      return std::span(buffer.data() + begin + part.range.begin, part.range.bytes());
    };
    worker.buckets[static_cast<size_t>(part.bucket)] =
        reinterpret_cast<const float*>(worker.gradient.data() + begin);
    std::vector<std::byte>& encoded = worker.encoded.emplace_back();
    if (spec_.codecs && spec_.codecs->encodes(part.bucket))
      encoded.resize(spec_.codecs->most_bytes(part.range.bytes() / sizeof(float)));
    worker.gradients.push_back(
        communicator().plan_receive({.name = "gradient for a server",
                                     .peer = worker.rank,
                                     .tag = served_tags::gradient(p),
                                     .data = encoded.empty() ? slice(worker.gradient) : encoded}));
    worker.answers.push_back(communicator().plan_send({.name = "weights of a server",
                                                       .peer = worker.rank,
                                                       .tag = served_tags::weights(p),
                                                       .data = slice(worker.weights)}));
    worker.gradients.back()->start();
  }
  worker.asks = communicator().plan_receive({.name = "question to a server",
                                             .peer = worker.rank,
                                             .tag = served_tags::kAsk,
                                             .data = bytes_of_value(worker.ask)});
  worker.asks->start();
  if (spec_.server == 0)
    worker.grants = communicator().plan_send({.name = "ticket of a gradient",
                                              .peer = worker.rank,
                                              .tag = served_tags::kGrant,
                                              .data = bytes_of_value(worker.grant)});
}

void WeightServer::plan_wishes() {
  const std::vector<int>& servers = spec_.ranks.servers;
  for (size_t s = 1; s < servers.size(); ++s) {
    if (std::ranges::find(spec_.ranks.workers, servers[s]) != spec_.ranks.workers.end()) continue;
    const auto message = [&](int peer) {
      return comm::MessageSpec{.name = "a server's wish to stop",
                               .peer = peer,
                               .tag = served_tags::kWish,
                               .data = bytes_of_value(wish_)};
    };
    if (spec_.server == 0) {
      wishes_.push_back(communicator().plan_receive(message(servers[s])));
      wishes_.back()->start();
    } else if (spec_.server == static_cast<int>(s)) {
      wishes_.push_back(communicator().plan_send(message(servers.front())));
    }
  }
}

void WeightServer::hear_wishes() {
  if (dealer_) {
    const auto come = [](const auto& wish) { return wish->test(); };
    if (stop_asked_ || std::ranges::any_of(wishes_, come)) dealer_->close();
  } else if (stop_asked_ && !std::exchange(wish_sent_, true)) {
    for (const auto& wish : wishes_) wish->start();
  }
}

void WeightServer::open(int64_t first, int64_t end) {
  CHECK(!in_flight(), "a round begins before the last one is over");
  version_ = spec_.tickets.quorum ? first / spec_.tickets.together : first;
  if (dealer_) dealer_->open(first, end);
  for (Worker& worker : workers_) {
    worker.settled = 0;
    worker.version = version_;
    worker.informed = worker.ended = false;
    if (!is_here(worker)) copy_to(worker.weights.data());
  }
}

void WeightServer::begin() { give_tickets(); }

bool WeightServer::advance() {
  bool over = true;
  if (spec_.tickets.quorum)
    over = follow();
  else
    apply_gradients();
  hear_wishes();
  give_tickets();
  for (Worker& worker : workers_) {
    answer(worker);
    send_grants(worker);
    over = over && worker.ended && worker.tickets.empty() && all_there(worker.answers) &&
           (!worker.grants || worker.grants->test());
  }
  return over;
}

bool WeightServer::gradient_there(Worker& worker) {
  if (is_here(worker)) {
    const std::lock_guard lock(mutex_);
    return here_.gradient;
  }
  while (worker.come < worker.gradients.size() && worker.gradients[worker.come]->test())
    ++worker.come;
  return worker.come == worker.gradients.size() && !worker.gradients.empty();
}

/// Decodes parts from other ranks; this rank's worker has decoded its own.
void WeightServer::decode(Worker& worker) {
  for (size_t i = 0; i < worker.gradients.size(); ++i) {
    if (worker.encoded[i].empty()) continue;
    const ServedPart& part = spec_.parts[own_[i]];
    const size_t at = begins_[static_cast<size_t>(part.bucket)] + part.range.begin;
    spec_.codecs->decode(std::span(worker.encoded[i]).first(worker.gradients[i]->arrived()),
                         worker.gradient.as<float>().subspan(at / sizeof(float),
                                                             part.range.bytes() / sizeof(float)));
  }
}

/// Applies gradients one by one.
void WeightServer::apply_gradients() {
  for (Worker& worker : workers_) {
    if (!gradient_there(worker)) continue;
    decode(worker);
    const int64_t stale = version_ - worker.version;
    update({.number = version_,
            .stale = stale,
            .buckets = worker.buckets,
            .then = is_here(worker) ? here_.parameters : worker.weights.data()});
    if (dealer_) (void)dealer_->arrived(static_cast<int>(&worker - workers_.data()));
    counts_.add_gradients(stale);
    release(worker);
  }
}

void WeightServer::update(const ServedUpdate& update) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  const int64_t oldest = std::ranges::min_element(workers_, {}, &Worker::version)->version;
  counts_.spread = std::max(counts_.spread, version_ - oldest);
  weights_.apply(update);
  if (std::this_thread::get_id() == owner_)
    busy_ += std::chrono::duration<double>(Clock::now() - began).count();
  ++version_;
  ++counts_.updates;
}

/// Frees the worker's gradient for the next one.
void WeightServer::release(Worker& worker) {
  ++worker.settled;
  worker.judged = false;
  if (is_here(worker)) {
    const std::lock_guard lock(mutex_);
    here_.gradient = false;
    return;
  }
  worker.come = 0;
  for (const auto& message : worker.gradients) {
    counts_.bytes += static_cast<double>(message->arrived());
    message->start();
  }
}

/// Gives one ticket to each worker in turn, while any worker may have one.
void WeightServer::give_tickets() {
  if (!dealer_) return;
  const std::lock_guard lock(mutex_);
  for (bool more = true; more;) {
    more = false;
    for (Worker& worker : workers_)
      if (const auto ticket = dealer_->next_for(static_cast<int>(&worker - workers_.data()))) {
        worker.tickets.push_back({.ticket = *ticket});
        more = true;
      }
  }
  if (!dealer_->empty()) return;
  for (Worker& worker : workers_)
    if (!std::exchange(worker.informed, true)) worker.tickets.push_back({.end = dealer_->end()});
}

void WeightServer::send_grants(Worker& worker) {
  if (is_here(worker) || worker.tickets.empty() || !worker.grants->test()) return;
  worker.grant = worker.tickets.front();
  worker.tickets.pop_front();
  worker.grants->start();
}

void WeightServer::copy_to(std::byte* parameters) const {
  for (const size_t p : own_) {
    const ServedPart& part = spec_.parts[p];
    const size_t at = begins_[static_cast<size_t>(part.bucket)] + part.range.begin;
    std::memcpy(parameters + at, weights_.parameters() + at, part.range.bytes());
  }
}

/// Returns the worker's question if it can be answered: all of its gradients are settled.
std::optional<ServerAsk> WeightServer::question(Worker& worker) const {
  const bool here = is_here(worker);
  ServerAsk ask;
  {
    const std::lock_guard lock(mutex_);
    if (here ? !here_.asked : !worker.asks->test()) return std::nullopt;
    ask = here ? here_.ask : worker.ask;
  }
  if (worker.ended || ask.gradients != worker.settled || !all_there(worker.answers))
    return std::nullopt;
  return ask;
}

/// Marks it answered; there may be another one.
void WeightServer::take_question(Worker& worker) {
  if (!is_here(worker)) return worker.asks->start();
  const std::lock_guard lock(mutex_);
  here_.asked = false;
}

void WeightServer::answer(Worker& worker) {
  const std::optional<ServerAsk> ask = question(worker);
  if (!ask) return;
  if (ask->signal != 0 && dealer_) dealer_->close();
  if (ask->ends != 0) {
    worker.ended = true;
    take_question(worker);
  } else if (!spec_.tickets.quorum) {
    serve(worker);
  } else if (dealer_ && !std::exchange(worker.serving, true)) {
    // Decide now, not when it is carried out: a gradient in between may end the step of these
    // weights.
    dealer_->served(static_cast<int>(&worker - workers_.data()));
    say(worker, Verdict::What::served);
  }
}

void WeightServer::serve(Worker& worker) {
  const bool here = is_here(worker);
  worker.version = version_;
  copy_to(here ? here_.parameters : worker.weights.data());
  for (const auto& message : worker.answers) message->start();
  if (!here)
    for (const size_t p : own_) counts_.bytes += static_cast<double>(spec_.parts[p].range.bytes());
  take_question(worker);
}

comm::Pending WeightServer::describe() const {
  comm::Pending what{.operation = name(), .sequence = sequence(), .arrived = {}, .missing = {}};
  for (const Worker& worker : workers_) {
    what.passed += static_cast<size_t>(worker.settled);
    if (worker.rank != communicator().rank())
      (worker.ended ? what.arrived : what.missing).push_back(worker.rank);
  }
  return what;
}

ServedCounts WeightServer::take_counts() {
  counts_.version = version_;
  return std::exchange(counts_, {});
}

void WeightServer::take_gradient(std::span<const float* const> buckets, std::byte* parameters) {
  const std::lock_guard lock(mutex_);
  const auto worker = std::ranges::find(workers_, communicator().rank(), &Worker::rank);
  worker->buckets.assign(buckets.begin(), buckets.end());
  here_.parameters = parameters;
  here_.gradient = true;
}

void WeightServer::take_ask(const ServerAsk& ask) {
  const std::lock_guard lock(mutex_);
  here_.ask = ask;
  here_.asked = true;
}

bool WeightServer::answered() const {
  const std::lock_guard lock(mutex_);
  return !here_.asked;
}

std::optional<TicketGrant> WeightServer::take_grant() {
  const std::lock_guard lock(mutex_);
  const auto worker = std::ranges::find(workers_, communicator().rank(), &Worker::rank);
  if (worker->tickets.empty()) return std::nullopt;
  const TicketGrant grant = worker->tickets.front();
  worker->tickets.pop_front();
  return grant;
}

}  // namespace tutti::sync
