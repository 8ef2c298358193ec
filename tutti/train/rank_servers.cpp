#include "tutti/train/rank_servers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"

namespace tutti {

RankServers::RankServers(const Spec& spec, TrainingStep& step, const Backend& backend,
                         comm::Communicator& communicator)
    : step_(step), communicator_(communicator), together_(communicator.size() / spec.group) {
  const int rank = communicator.rank();
  for (int s = 0; s < spec.settings.servers; ++s) ranks_.servers.push_back(s);
  for (int r = 0; r < communicator.size(); r += spec.group) ranks_.workers.push_back(r);
  const BucketLayout& layout = step.network().buckets;
  parts_ = deal_to_servers(layout, spec.settings.servers, spec.norms);
  Weights& weights = step.weights();
  if (rank < spec.settings.servers) {
    update_.emplace(step.network(), backend,
                    ServerUpdate::Spec{.settings = spec.settings,
                                       .server = rank,
                                       .parts = parts_,
                                       .turns = spec.group * spec.accumulate,
                                       .rate = [rate = spec.rate, together = together_](
                                                   int64_t update) { return rate(update / together); }},
                    weights);
    loop_ = std::make_unique<ServerLoop>(communicator,
                                         ServerLoop::Spec{.ranks = ranks_,
                                                          .server = rank,
                                                          .parts = parts_,
                                                          .together = together_,
                                                          .bound = spec.settings.bound},
                                         layout, *update_);
  }
  if (rank % spec.group == 0)
    link_ = std::make_unique<ServerLink>(communicator,
                                         ServerLink::Spec{.ranks = ranks_,
                                                          .parts = parts_,
                                                          .parameters = weights.parameters(),
                                                          .here = loop_.get()},
                                         layout);
  group_ = std::make_unique<WorkerGroup>(step.group(), link_.get(), layout, weights.parameters());
  step.exchange().serve(group_.get());
  plan_collection();
}

/// Of each part its weights and states, from its server to all.
void RankServers::plan_collection() {
  Weights& weights = step_.weights();
  const Variables& variables = weights.variables();
  for (const ServedPart& part : parts_) {
    const Bucket& bucket = step_.network().buckets.buckets[static_cast<size_t>(part.bucket)];
    const auto plan = [&](std::byte* arena) {
      collection_.push_back(
          communicator_.plan({.name = "served " + bucket.name,
                              .kind = comm::Collective::broadcast,
                              .count = part.range.bytes() / sizeof(float),
                              .root = ranks_.servers[static_cast<size_t>(part.server)],
                              .output = arena + bucket.begin + part.range.begin}));
    };
    plan(weights.parameters());
    for (size_t k = 0; k < variables.state_kinds.size(); ++k)
      plan(weights.state() + k * variables.trained_bytes);
  }
}

void RankServers::open(int64_t first, int64_t end, std::function<void(int64_t)> comes) {
  comes_ = std::move(comes);
  making_ = false;
  if (loop_) {
    loop_->open(first * together_, end * together_);
    loop_->start();
  }
  if (link_) link_->begin_round();
}

void RankServers::note(int64_t ticket) {
  if (ticket <= noted_) return;
  noted_ = ticket;
  comes_(ticket);
}

std::optional<int64_t> RankServers::take_ticket() {
  struct Told {
    int64_t ticket = -1, coming = -1, end = 0;
  } told;
  if (link_) {
    if (const auto ticket = link_->take_ticket())
      told = {.ticket = *ticket, .coming = link_->coming_ticket().value_or(-1)};
    else
      told.end = link_->end_of_round();
  }
  if (!group_->alone()) step_.group().broadcast_value(told, 0);
  if (told.ticket < 0) {
    end_ = told.end / together_;
    return std::nullopt;
  }
  note(told.ticket);
  if (told.coming >= 0) note(told.coming);
  return told.ticket;
}

std::optional<int64_t> RankServers::next(int signal) {
  if (making_) step_.end_of_backward();
  const auto began = RunClock::Clock::now();
  const std::optional<int64_t> ticket = take_ticket();
  if (ticket && making_) {
    if (link_) link_->ask(signal);
  } else if (!ticket && link_) {
    link_->end(signal);
  }
  waited_ = RunClock::since(began);
  if (ticket && making_) step_.update();
  making_ = ticket.has_value();
  return ticket;
}

int64_t RankServers::close() {
  if (loop_) {
    loop_->wait();
    Weights& weights = step_.weights();
    for (const ServedPart& part : parts_) {
      if (ranks_.servers[static_cast<size_t>(part.server)] != communicator_.rank()) continue;
      const size_t at = step_.network().buckets.buckets[static_cast<size_t>(part.bucket)].begin +
                        part.range.begin;
      std::memcpy(weights.parameters() + at, update_->parameters() + at, part.range.bytes());
    }
  }
  communicator_.barrier();  // nobody's wait below is for those who still compute
  for (const auto& each : collection_) each->start();
  for (const auto& each : collection_) each->wait();
  step_.weights_changed();
  return end_;
}

ServedCounts RankServers::take_counts() {
  ServedCounts counts = loop_ ? loop_->take_counts() : ServedCounts{};
  double bytes[] = {counts.bytes};
  communicator_.sum(bytes);
  counts.bytes = bytes[0];
  return counts;
}

}  // namespace tutti
