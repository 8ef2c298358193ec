#include <algorithm>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/trainer_run.h"

namespace tutti {

void TrainerRun::build_rank_servers() {
  if (spec_.data.canvases)
    throw ConfigError(fmt::format(
        "sync.scheme = \"{}\" on several ranks goes without a data set whose batches depend on the "
        "step before: a batch goes to the worker that is free first",
        config_.sync.scheme));
  rank_servers_.emplace(rank_servers_spec(config_, *served_, replicas_.replicas(),
                                          [this](int64_t step) { return learning_rate(step); }),
                        *training_, *spec_.backend, spec_.job ? *spec_.job : comm_);
  if (resumed_) {
    SavedCompression saved(*resumed_);
    rank_servers_->restore_compression(comm_, saved);
  }
  if (!first()) return;
  log::info("{} server(s) {} {} worker(s) of {} rank(s), {}: sync.scheme = \"{}\"",
            served_->servers, served_->own_ranks ? "on ranks of their own, and" : "beside",
            rank_servers_->workers(), training_->group().size(),
            served_->one_by_one()   ? "whose gradients are applied one by one"
            : gradients_ < devices_ ? fmt::format("of whose gradients a step takes the first {}",
                                                  rank_servers_->gradients())
                                    : "whose gradients a step takes together",
            config_.sync.scheme);
  constexpr int64_t kShort = 10;  // steps of a round
  if (!served_->one_by_one() && gradients_ < devices_ && config_.run.log_every < kShort)
    log::warn(
        "run.log_every = {}: all workers meet for each line of the log, where they wait for the "
        "late ones, and backups gain little; have 50 or more",
        config_.run.log_every);
  if (config_.comm.compression != "none")
    log::info("{} of {} buckets of a gradient go to servers by comm.compression = \"{}\"",
              rank_servers_->compressed_buckets(), network().buckets.buckets.size(),
              config_.comm.compression);
}

int64_t TrainerRun::next_meeting() const {
  int64_t step = step_ + 1;
  while (step < total_steps_ && !log_due(step) && !evaluation_due(step) && !checkpoint_due(step))
    ++step;
  return step;
}

void TrainerRun::note_ticket(int64_t ticket) {
  const int64_t step = ticket / rank_servers_->gradients(), per_epoch = sampler_.steps_per_epoch();
  const int group = training_->group().size();
  const auto worker = static_cast<int>(ticket % rank_servers_->gradients());
  const int replica = worker * group + training_->group().rank();
  for (int turn = 0; turn < accumulate_; ++turn)
    batches_->add({.epoch = step / per_epoch,
                   .step = step % per_epoch,
                   .replica = replica * accumulate_ + turn});
}

void TrainerRun::make_gradient(int64_t ticket) {
  const ScopedSpan span(spans(), span_name("gradient"), span_lane());
  const int64_t step = ticket / rank_servers_->gradients();
  const auto worker = static_cast<int>(ticket % rank_servers_->gradients());
  training_->begin(step, static_cast<float>(learning_rate(step)));
  training_->stand_for(worker * training_->group().size() + training_->group().rank());
  const double delayed = slow_down(ticket), busy = rank_servers_->busy_seconds();
  double data_wait = 0;
  for (int turn = 0; turn < accumulate_; ++turn) data_wait += run_turn(turn);
  ++interval_.gradients;
  StepTimes times = training_->times();
  // Some of that may have been done while it waited, which is not in `compute`.
  computed_ = std::max(0.0, times.compute - (rank_servers_->busy_seconds() - busy));
  times.compute = computed_ + delayed;
  times.data_wait = data_wait;
  interval_.times += times;
  epoch_times_ += times;
}

bool TrainerRun::train_round() {
  const int64_t begun = step_;
  rank_servers_->open(step_, next_meeting(), [this](int64_t ticket) { note_ticket(ticket); });
  const auto signal = [this] { return spec_.stop_requested ? spec_.stop_requested() : 0; };
  StepTimes between;
  const auto next = [&] {
    const std::optional<int64_t> ticket = rank_servers_->next(signal());
    between.comm_exposed += rank_servers_->waited();
    return ticket;
  };
  while (const std::optional<int64_t> ticket = next()) make_gradient(*ticket);
  const auto ended = RunClock::Clock::now();
  step_ = rank_servers_->close(signal());
  asked_by_ = std::max(asked_by_, rank_servers_->asked());  // servers among them
  between.comm_exposed += RunClock::since(ended);
  const double now = clock_.train();
  between.total = now - std::exchange(step_ended_, now);
  interval_.times += between;
  epoch_times_ += between;
  interval_.steps += step_ - begun;
  epoch_steps_ += step_ - begun;
  return asked_by_ != 0;
}

ServersRecord TrainerRun::rank_servers_line() {
  const ServedCounts counts = rank_servers_->take_counts();
  double sum = 0;
  for (size_t n = 0; n < counts.staleness.size(); ++n)
    sum += static_cast<double>(n) * static_cast<double>(counts.staleness[n]);
  const auto gradients = static_cast<double>(
      std::accumulate(counts.staleness.begin(), counts.staleness.end(), int64_t{0}));
  return {.epoch = step_ / sampler_.steps_per_epoch(),
          .step = step_,
          .updates = counts.updates,
          .version = counts.version,
          .dropped = counts.dropped,
          .bytes = counts.bytes,
          .stale_mean = sum / gradients,
          .stale_most = std::ssize(counts.staleness) - 1,
          .staleness = counts.staleness,
          .spread = counts.spread};
}

}  // namespace tutti
