#include "tutti/sync/server_link.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "tutti/base/error.h"

namespace tutti::sync {

ServerLink::ServerLink(comm::Communicator& communicator, Spec spec,
                       const exchange::BucketLayout& layout)
    : communicator_(communicator), spec_(std::move(spec)), buckets_(layout.buckets.size()),
      sums_(layout.buckets.size()), unsent_(layout.buckets.size()),
      asks_(spec_.ranks.servers.size()) {
  for (const exchange::Bucket& bucket : layout.buckets) begins_.push_back(bucket.begin);
  for (size_t b = 0; b < unsent_.size(); ++b)
    if (encodes(static_cast<int>(b))) unsent_[b].resize(layout.buckets[b].floats());
  if (spec_.here && spec_.codecs && spec_.codecs->encoded_buckets() > 0)
    decoded_ = device::Buffer(layout.bytes);
  for (size_t p = 0; p < spec_.parts.size(); ++p) {
    const ServedPart& part = spec_.parts[p];
    const size_t begin = layout.buckets[static_cast<size_t>(part.bucket)].begin;
    Part& made = buckets_[static_cast<size_t>(part.bucket)].emplace_back();
    made.server = part.server;
    made.bucket = part.bucket;
    made.offset = part.range.begin;
    made.bytes = part.range.bytes();
    if (encodes(part.bucket))
      made.encoded.resize(spec_.codecs->most_bytes(made.bytes / sizeof(float)));
    if (is_here(part.server)) continue;
    const int rank = spec_.ranks.servers[static_cast<size_t>(part.server)];
    made.gradient = communicator.plan_send({.name = "gradient for a server",
                                            .peer = rank,
                                            .tag = served_tags::gradient(p),
                                            .data = {}});
    made.weights =
        communicator.plan_receive({.name = "weights of a server",
                                   .peer = rank,
                                   .tag = served_tags::weights(p),
                                   .data = {spec_.parameters + begin + made.offset, made.bytes}});
  }
  for (size_t s = 0; s < asks_.size(); ++s)
    if (!is_here(static_cast<int>(s)))
      asks_[s] = communicator.plan_send({.name = "question to a server",
                                         .peer = spec_.ranks.servers[s],
                                         .tag = served_tags::kAsk,
                                         .data = bytes_of_value(ask_)});
  if (is_here(0)) return;
  grants_ = communicator.plan_receive({.name = "ticket of a gradient",
                                       .peer = spec_.ranks.servers[0],
                                       .tag = served_tags::kGrant,
                                       .data = bytes_of_value(grant_),
                                       .patient = true});
  grants_->start();
}

void ServerLink::begin_round() {
  CHECK(tickets_.empty() && knows_end_, "a round begins before the last one is over");
  knows_end_ = false;
  pushed_ = 0;
}

void ServerLink::look_for_grants() {
  if (spec_.here) (void)spec_.here->test();  // throws errors from the server
  const auto take = [&](const TicketGrant& grant) {
    if (grant.ticket >= 0) return tickets_.push_back(grant.ticket);
    knows_end_ = true;
    end_ = grant.end;
  };
  if (!grants_)
    while (const auto grant = spec_.here->take_grant()) take(*grant);
  else
    while (!knows_end_ && grants_->test()) {
      take(grant_);
      grants_->start();
    }
}

std::optional<int64_t> ServerLink::coming_ticket() {
  look_for_grants();
  return tickets_.empty() ? std::nullopt : std::optional(tickets_.front());
}

/// Lists all other ranks: any of them may be the slowest, for which a bound makes this one wait.
std::vector<int> ServerLink::others() const {
  std::set<int> ranks(spec_.ranks.servers.begin(), spec_.ranks.servers.end());
  ranks.insert(spec_.ranks.workers.begin(), spec_.ranks.workers.end());
  ranks.erase(communicator_.rank());
  return {ranks.begin(), ranks.end()};
}

std::optional<int64_t> ServerLink::take_ticket() {
  const auto there = [this] { return coming_ticket() || knows_end_; };
  if (!there())
    communicator_.wait_for(there, [this] {
      return comm::Pending{.operation = "a ticket of the first server",
                           .sequence = static_cast<uint64_t>(pushed_),
                           .arrived = {communicator_.rank()},
                           .missing = others()};
    });
  if (tickets_.empty()) return std::nullopt;
  ticket_ = tickets_.front();
  tickets_.pop_front();
  return ticket_;
}

std::span<std::byte> ServerLink::encode(Part& part, const float* sum) {
  const size_t first = part.offset / sizeof(float), count = part.bytes / sizeof(float);
  const std::span<std::byte> message =
      spec_.codecs->encode({.step = ticket_ / std::ssize(spec_.ranks.workers),
                            .gradient = {sum + first, count},
                            .unsent = unsent(part.bucket).subspan(first, count)},
                           part.encoded, &communicator_.work());
  if (!part.gradient) spec_.codecs->decode(message, {decoded(part.bucket) + first, count});
  return message;
}

void ServerLink::push(int bucket, const float* sum) {
  const bool encoded = encodes(bucket);
  sums_[static_cast<size_t>(bucket)] = encoded && spec_.here ? decoded(bucket) : sum;
  auto* const bytes = reinterpret_cast<std::byte*>(const_cast<float*>(sum));  // only read
  for (Part& part : buckets_[static_cast<size_t>(bucket)]) {
    std::span<std::byte> message{bytes + part.offset, part.bytes};
    if (encoded) message = encode(part, sum);
    if (!part.gradient) continue;
    part.gradient->rebind(message);
    part.gradient->start();
  }
  if (++complete_ < buckets_.size()) return;
  complete_ = 0;
  ++pushed_;
  if (spec_.here) spec_.here->take_gradient(sums_, spec_.parameters);
}

void ServerLink::tell_servers(bool ends, int signal) {
  for (const auto& ask : asks_)
    if (ask) ask->wait();  // the servers took it before the last answer
  ask_ = {.gradients = pushed_, .ends = ends ? 1 : 0, .signal = signal};
  for (const auto& ask : asks_)
    if (ask) ask->start();
  if (spec_.here) spec_.here->take_ask(ask_);
}

void ServerLink::ask(int signal) {
  for (const std::vector<Part>& parts : buckets_)
    for (const Part& part : parts)
      if (part.weights) part.weights->start();
  tell_servers(false, signal);
}

bool ServerLink::arrived(int bucket) {
  return std::ranges::all_of(buckets_[static_cast<size_t>(bucket)], [this](const Part& part) {
    return part.weights ? part.weights->test() && part.gradient->test() : answered_here();
  });
}

bool ServerLink::answered_here() {
  (void)spec_.here->test();  // throws errors from the server
  return spec_.here->answered();
}

void ServerLink::wait_here() {
  if (answered_here()) return;
  communicator_.wait_for([this] { return answered_here(); },
                         [] {
                           return comm::Pending{.operation = "weights of this rank's server",
                                                .sequence = 0,
                                                .arrived = {},
                                                .missing = {}};
                         });
}

void ServerLink::wait(int bucket) {
  for (const Part& part : buckets_[static_cast<size_t>(bucket)]) {
    if (!part.weights) {
      wait_here();
      continue;
    }
    part.weights->wait();
    part.gradient->wait();
  }
}

void ServerLink::end(int signal) {
  tell_servers(true, signal);
  for (const std::vector<Part>& parts : buckets_)
    for (const Part& part : parts)
      if (part.gradient) part.gradient->wait();
  for (const auto& ask : asks_)
    if (ask) ask->wait();
  if (spec_.here) wait_here();
}

WorkerGroup::WorkerGroup(comm::Communicator& group, ServerLink* link,
                         const exchange::BucketLayout& layout, std::byte* parameters)
    : group_(group), link_(link), begun_(layout.buckets.size()) {
  CHECK((link != nullptr) == (group.rank() == 0), "rank 0 of a group sends for it");
  if (alone()) return;
  for (const exchange::Bucket& bucket : layout.buckets)
    spread_.push_back(group.plan({.name = "weights of " + bucket.name,
                                  .kind = comm::Collective::broadcast,
                                  .count = bucket.floats(),
                                  .output = parameters + bucket.begin}));
}

void WorkerGroup::push(int bucket, const float* sum) {
  begun_[static_cast<size_t>(bucket)] = 0;
  if (link_) link_->push(bucket, sum);
}

/// Starts distributing the bucket if it has arrived. Returns whether that has begun.
bool WorkerGroup::begin(int bucket) {
  char& begun = begun_[static_cast<size_t>(bucket)];
  if (begun == 0 && (!link_ || link_->arrived(bucket))) {
    spread_[static_cast<size_t>(bucket)]->start();
    begun = 1;
  }
  return begun != 0;
}

bool WorkerGroup::arrived(int bucket) {
  if (alone()) return link_->arrived(bucket);
  return begin(bucket) && spread_[static_cast<size_t>(bucket)]->test();
}

void WorkerGroup::wait(int bucket) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  if (link_) link_->wait(bucket);
  if (!alone()) {
    begin(bucket);
    spread_[static_cast<size_t>(bucket)]->wait();
  }
  exposed_ += std::chrono::duration<double>(Clock::now() - began).count();
}

}  // namespace tutti::sync
