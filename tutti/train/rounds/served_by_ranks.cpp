#include "tutti/train/rounds/rounds_kinds.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/rounds/rank_servers.h"
#include "tutti/train/rounds/replay_clock.h"

namespace tutti::train {
namespace {

/// Servers of weights that are ranks (train/rounds/rank_servers.h). A rank makes the gradient of a
/// ticket, sends it, and takes the next ticket with new weights; all ranks meet at the end of a
/// round of several steps.
class ServedByRanks final : public Rounds {
 public:
  /// Throws ConfigError if batches depend on the previous step: a batch goes to any free worker.
  ServedByRanks(const RoundsSpec& spec, const ServerSettings& settings)
      : spec_(spec), settings_(settings) {
    if (spec.dependent_batches)
      throw ConfigError(
          fmt::format("sync.scheme = \"{}\" on several ranks goes without a data set whose batches "
                      "depend on the step before: a batch goes to the worker that is free first",
                      spec.config.sync.scheme));
  }

  void start(const keep::Checkpoint* resumed, int64_t step) override {
    if (resumed && resumed->info.metrics.contains(kVirtualSeconds))
      log::warn_once("the run until step {} was a replay, and goes on without a virtual time",
                     step);
    spec_.step.start();
    servers_.emplace(
        rank_servers_spec(spec_.config, settings_, spec_.replicas.replicas(), spec_.rate),
        spec_.step, spec_.backend, spec_.job ? *spec_.job : spec_.workers);
    if (resumed) {
      keep::SavedCompression saved(*resumed);
      servers_->restore_compression(spec_.workers, saved);
    }
    if (spec_.workers.rank() == 0) say_who_serves();
  }

  bool takes_several_steps() const override { return true; }

  void begin(int64_t first, int64_t end) override {
    times_ = {};
    making_ = false;
    servers_->open(first, end, [this](int64_t ticket) { note(ticket); });
  }

  std::optional<RoundGradient> next(int signal) override {
    if (making_) count_gradient();
    const std::optional<int64_t> ticket = servers_->next(signal);
    times_.comm_exposed += servers_->waited();
    making_ = ticket.has_value();
    if (!ticket) return std::nullopt;
    const int64_t step = step_of(*ticket);
    spec_.step.begin(step, static_cast<float>(spec_.rate(step)));
    busy_before_ = servers_->busy_seconds();
    const auto accumulate = static_cast<int>(spec_.config.batch.accumulate);
    RoundGradient gradient{.number = *ticket, .batches = {}};
    for (int i = 0; i < accumulate; ++i)
      gradient.batches.push_back({.place = i, .number = replica_of(*ticket) * accumulate + i});
    return gradient;
  }

  int64_t end(int signal) override {
    const auto ended = RunClock::Clock::now();
    const int64_t step = servers_->close(signal);
    times_.comm_exposed += RunClock::since(ended);
    return step;
  }

  int asked() const override { return servers_->asked(); }
  StepTimes times() const override { return times_; }
  double computed() const override { return computed_; }

  void report(int64_t step, trace::RunRecord* record) override {
    report_servers(spec_, servers_->take_counts(), step, record);
  }

  /// The servers have given their weights and states back to all ranks at the end of the round.
  void save(keep::SavedRun& saved) override {
    std::ranges::move(spec_.step.weights().state_tensors(), std::back_inserter(saved.shared));
    std::ranges::move(servers_->compression_state(), std::back_inserter(saved.own));
  }

  void dismiss(trace::RunStatus status) override { servers_->dismiss(status); }

 private:
  void say_who_serves() const {
    const int64_t gradients = gradients_of_step(spec_.config, spec_.devices);
    log::info(
        "{} server(s) {} {} worker(s) of {} rank(s), {}: sync.scheme = \"{}\"", settings_.servers,
        settings_.own_ranks ? "on ranks of their own, and" : "beside", servers_->workers(),
        spec_.step.group().size(),
        settings_.one_by_one() ? "whose gradients are applied one by one"
        : gradients < spec_.devices
            ? fmt::format("of whose gradients a step takes the first {}", servers_->gradients())
            : "whose gradients a step takes together",
        spec_.config.sync.scheme);
    constexpr int64_t kShort = 10;  // steps per round
    if (!settings_.one_by_one() && gradients < spec_.devices && spec_.config.run.log_every < kShort)
      log::warn(
          "run.log_every = {}: all workers meet for each line of the log, where they wait for the "
          "late ones, and backups gain little; have 50 or more",
          spec_.config.run.log_every);
    if (spec_.config.comm.compression != "none")
      log::info("{} of {} buckets of a gradient go to servers by comm.compression = \"{}\"",
                servers_->compressed_buckets(), spec_.step.network().buckets.buckets.size(),
                spec_.config.comm.compression);
  }

  void note(int64_t ticket) { spec_.comes(step_of(ticket), replica_of(ticket)); }

  /// Returns the replica whose samples this rank uses for a ticket.
  int replica_of(int64_t ticket) const {
    comm::Communicator& group = spec_.step.group();
    return static_cast<int>(ticket % servers_->gradients()) * group.size() + group.rank();
  }

  int64_t step_of(int64_t ticket) const { return ticket / servers_->gradients(); }

  /// This rank's server may have used part of a gradient's time while the rank waited.
  void count_gradient() {
    StepTimes times = spec_.step.times();
    computed_ = std::max(0.0, times.compute - (servers_->busy_seconds() - busy_before_));
    times.compute = computed_;
    times_ += times;
  }

  const RoundsSpec spec_;
  const ServerSettings settings_;
  std::optional<RankServers> servers_;
  bool making_ = false;  // a gradient is being made
  double busy_before_ = 0, computed_ = 0;
  StepTimes times_;
};

}  // namespace

std::unique_ptr<Rounds> make_served_by_ranks(const RoundsSpec& spec,
                                             const ServerSettings& settings) {
  return std::make_unique<ServedByRanks>(spec, settings);
}

}  // namespace tutti::train
