#include "tutti/train/rounds/rank_servers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/exchange/arena_message.h"
#include "tutti/train/rounds/server_orders.h"

namespace tutti::train {
namespace {

/// Rank 0's message to a server-only rank before a round, followed by the rate of each step.
struct Order {
  int64_t first = 0, end = 0;  // equal: there are no more rounds
  trace::RunStatus status = trace::RunStatus::done;
};

/// While it lives, waits end after twice the usual time. It is for meetings of ranks, where one may
/// wait for another with the usual time-out and then gives the better report, or may have two
/// gradients to make.
class TwiceAsPatient {
 public:
  explicit TwiceAsPatient(comm::Communicator& ranks) : ranks_(ranks) {
    ranks_.set_timeout(2 * usual_);
  }
  ~TwiceAsPatient() { ranks_.set_timeout(usual_); }
  TwiceAsPatient(const TwiceAsPatient&) = delete;
  TwiceAsPatient& operator=(const TwiceAsPatient&) = delete;

 private:
  comm::Communicator& ranks_;
  const double usual_ = ranks_.timeout();
};

}  // namespace

RankServersSpec rank_servers_spec(const config::RunConfig& config, const ServerSettings& settings,
                                  int replicas, std::function<double(int64_t)> rate) {
  const config::OptimizerKind kind = config.optimizer.name;
  return {.settings = settings,
          .workers = replicas,
          .group = settings.ranks_of_worker(replicas),
          .gradients = settings.together ? gradients_of_step(config, replicas)
                                         : replicas / settings.group_of(replicas),
          .accumulate = static_cast<int>(config.batch.accumulate),
          .norms = kind == config::OptimizerKind::lars || kind == config::OptimizerKind::lamb,
          .rate = std::move(rate)};
}

RankServers::RankServers(const RankServersSpec& spec, TrainingStep& step,
                         const backend::Backend& backend, comm::Communicator& job)
    : spec_(spec), step_(step), job_(job), updates_(spec.settings.together ? 1 : spec.gradients),
      codecs_(step.network().compression) {
  const int rank = job.rank(), first = spec.settings.own_ranks ? spec.workers : 0;
  for (int s = 0; s < spec.settings.servers; ++s) ranks_.servers.push_back(first + s);
  for (int r = 0; r < spec.workers; r += spec.group) ranks_.workers.push_back(r);
  const exchange::BucketLayout& layout = step.network().buckets;
  parts_ = sync::deal_to_servers(layout, spec.settings.servers, spec.norms);
  Weights& weights = step.weights();
  const plan::Variables& variables = weights.variables();
  if (spec.settings.own_ranks) {
    exchange::broadcast_arena(job, "weights for servers", 0,
                              {weights.parameters(), variables.parameter_bytes});
    exchange::broadcast_arena(
        job, "states for servers", 0,
        {weights.state(), variables.state_kinds.size() * variables.trained_bytes});
  }
  if (std::ranges::find(ranks_.servers, rank) != ranks_.servers.end()) build_server(backend);
  if (rank < spec.workers) {
    if (rank % spec.group == 0)
      link_ = std::make_unique<sync::ServerLink>(
          job,
          sync::ServerLink::Spec{.ranks = ranks_,
                                 .parts = parts_,
                                 .parameters = weights.parameters(),
                                 .here = loop_.get(),
                                 .codecs = &codecs_},
          layout);
    group_ = std::make_unique<sync::WorkerGroup>(step.group(), link_.get(), layout,
                                                 weights.parameters());
    step.exchange().serve(group_.get());
  }
  plan_collection();
}

void RankServers::build_server(const backend::Backend& backend) {
  const auto number =
      static_cast<int>(std::ranges::find(ranks_.servers, job_.rank()) - ranks_.servers.begin());
  update_.emplace(step_.network(), backend,
                  ServerUpdate::Spec{
                      .settings = spec_.settings,
                      .server = number,
                      .parts = parts_,
                      .micro_batches = spec_.group * spec_.accumulate *
                                       static_cast<int>(spec_.gradients / updates_),
                      .rate =
                          [this](int64_t update) {
                            const int64_t step = update / updates_;
                            return spec_.rate ? spec_.rate(step)
                                              : rates_.at(static_cast<size_t>(step - rates_from_));
                          }},
                  step_.weights());
  loop_ = std::make_unique<sync::WeightServer>(
      job_,
      sync::WeightServer::Spec{.ranks = ranks_,
                               .server = number,
                               .parts = parts_,
                               .tickets = {.workers = workers(),
                                           .together = spec_.gradients,
                                           .bound = spec_.settings.bound,
                                           .quorum = spec_.settings.together},
                               .codecs = &codecs_},
      step_.network().buckets, *update_);
}

/// Returns the residuals of whole buckets, held by the first rank of a group; the others hold none.
std::vector<keep::UnsentBucket> RankServers::unsent() {
  std::vector<keep::UnsentBucket> buckets;
  const exchange::BucketLayout& layout = step_.network().buckets;
  for (int b = 0; b < static_cast<int>(layout.buckets.size()); ++b) {
    if (!codecs_.encodes(b)) continue;
    keep::UnsentBucket& kept =
        buckets.emplace_back(keep::UnsentBucket{&layout.buckets[static_cast<size_t>(b)], {}, {}});
    if (!link_) continue;
    kept.layout.add(comm::StatePiece::Kind::gradient, {0, kept.bucket->floats()}, workers());
    kept.state = link_->unsent(b);
  }
  return buckets;
}

std::vector<keep::TensorRef> RankServers::compression_state() {
  return keep::unsent_tensors(job_.rank(), unsent());
}

void RankServers::restore_compression(comm::Communicator& workers, comm::SavedState& saved) {
  keep::restore_unsent(workers, saved, unsent());
}

/// Plans the broadcast of each part's weights and states from its server to all.
void RankServers::plan_collection() {
  Weights& weights = step_.weights();
  const plan::Variables& variables = weights.variables();
  for (const sync::ServedPart& part : parts_) {
    const exchange::Bucket& bucket =
        step_.network().buckets.buckets[static_cast<size_t>(part.bucket)];
    const auto plan = [&](std::byte* arena) {
      collection_.push_back(job_.plan({.name = "served " + bucket.name,
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

void RankServers::tell_servers(int64_t first, int64_t end, trace::RunStatus status) {
  if (!spec_.settings.own_ranks || job_.rank() != 0) return;
  const Order order{first, end, status};
  std::vector<double> rates;
  for (int64_t step = first; step < end; ++step) rates.push_back(spec_.rate(step));
  const auto head = std::as_bytes(std::span(&order, 1)), body = std::as_bytes(std::span(rates));
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  for (const int server : ranks_.servers) tell_server(job_, server, bytes);
}

void RankServers::dismiss(trace::RunStatus status) { tell_servers(0, 0, status); }

std::optional<trace::RunStatus> RankServers::serve(const std::function<int()>& stop_requested) {
  const std::vector<std::byte> bytes = hear_first_worker(job_);
  Order order;
  CHECK(bytes.size() >= sizeof order, "an order of {} bytes", bytes.size());
  std::memcpy(&order, bytes.data(), sizeof order);
  if (order.first == order.end) return order.status;
  rates_.resize((bytes.size() - sizeof order) / sizeof(double));
  std::memcpy(rates_.data(), bytes.data() + sizeof order, rates_.size() * sizeof(double));
  rates_from_ = order.first;
  open(order.first, order.end, {});
  constexpr double kLook = 1;  // seconds
  int signal = 0;
  do {
    signal = stop_requested();
    if (signal != 0) loop_->ask_to_stop();
  } while (!loop_->wait_for(kLook));
  close(signal);
  return std::nullopt;
}

void RankServers::open(int64_t first, int64_t end, std::function<void(int64_t)> comes) {
  comes_ = std::move(comes);
  making_ = false;
  tell_servers(first, end, trace::RunStatus::done);
  if (loop_) {
    loop_->open(first * spec_.gradients, end * spec_.gradients);
    loop_->start();
  }
  if (link_) link_->begin_round();
}

/// `signal` becomes the signal of any rank in the group: its first rank informs the servers.
std::optional<int64_t> RankServers::take_ticket(int& signal) {
  struct Choice {
    int64_t ticket = -1, coming = -1, end = 0;
    int signal = 0;
  } choice;
  if (link_) {
    if (const auto ticket = link_->take_ticket())
      choice = {.ticket = *ticket, .coming = link_->coming_ticket().value_or(-1)};
    else
      choice.end = link_->end_of_round();
  }
  choice.signal = signal;
  if (!group_->alone()) {
    const TwiceAsPatient patient(step_.group());
    choice = step_.group().combine_value(choice, [](Choice& mine, const Choice& theirs) {
      mine.ticket = std::max(mine.ticket, theirs.ticket);  // the others have none
      mine.coming = std::max(mine.coming, theirs.coming);
      mine.end = std::max(mine.end, theirs.end);
      mine.signal = std::max(mine.signal, theirs.signal);
    });
  }
  signal = choice.signal;
  if (choice.ticket < 0) {
    end_ = choice.end / spec_.gradients;
    return std::nullopt;
  }
  if (choice.ticket != noted_) comes_(choice.ticket);
  noted_ = choice.coming;
  if (noted_ >= 0) comes_(noted_);
  return choice.ticket;
}

std::optional<int64_t> RankServers::next(int signal) {
  const auto began = RunClock::Clock::now();
  if (making_) step_.end_of_backward();
  const std::optional<int64_t> ticket = take_ticket(signal);
  if (ticket && making_) {
    if (link_) link_->ask(signal);
  } else if (!ticket && link_) {
    link_->end(signal);
  }
  waited_ = RunClock::since(began);
  if (ticket && making_) step_.update({.received = true});
  making_ = ticket.has_value();
  return ticket;
}

int64_t RankServers::close(int signal) {
  if (loop_) {
    loop_->wait();
    Weights& weights = step_.weights();
    for (const sync::ServedPart& part : parts_) {
      if (ranks_.servers[static_cast<size_t>(part.server)] != job_.rank()) continue;
      const size_t at = step_.network().buckets.buckets[static_cast<size_t>(part.bucket)].begin +
                        part.range.begin;
      std::memcpy(weights.parameters() + at, update_->parameters() + at, part.range.bytes());
    }
  }
  // After this barrier, no wait below is for ranks that still compute.
  {
    const TwiceAsPatient patient(job_);
    job_.barrier();
  }
  for (const auto& each : collection_) each->start();
  for (const auto& each : collection_) each->wait();
  collect_counts(signal);
  step_.weights_changed();
  return end_;
}

void RankServers::collect_counts(int signal) {
  asked_ = job_.most(signal);
  sync::ServedCounts now = loop_ ? loop_->take_counts() : sync::ServedCounts{};
  double bytes[] = {now.bytes};
  job_.sum(bytes);
  const int first = ranks_.servers.front();
  struct Counts {
    int64_t updates, version, dropped, spread;
    size_t ages;
  } counts{now.updates, now.version, now.dropped, now.spread, now.staleness.size()};
  job_.broadcast_value(counts, first);
  CHECK(!loop_ || (now.updates == counts.updates && now.version == counts.version),
        "this server has made {} updates up to version {}, the first one {} up to {}", now.updates,
        now.version, counts.updates, counts.version);
  CHECK(!link_ || counts.version == end_ * updates_, "{} steps end with version {}", end_,
        counts.version);
  now.staleness.resize(counts.ages);
  job_.broadcast(std::as_writable_bytes(std::span(now.staleness)), first);
  counts_.bytes += bytes[0];
  counts_.updates += counts.updates;
  counts_.version = counts.version;
  counts_.dropped += counts.dropped;
  counts_.spread = std::max(counts_.spread, counts.spread);
  counts_.staleness.resize(std::max(counts_.staleness.size(), counts.ages));
  for (size_t age = 0; age < counts.ages; ++age) counts_.staleness[age] += now.staleness[age];
}

}  // namespace tutti::train
