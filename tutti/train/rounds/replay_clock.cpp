#include "tutti/train/rounds/replay_clock.h"

#include <algorithm>
#include <numeric>

#include "tutti/base/log.h"
#include "tutti/exchange/bucket.h"
#include "tutti/sync/virtual_clock.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/sync_scheme.h"

namespace tutti::train {
namespace {

constexpr const char *kServers = "servers/clock", *kReplicas = "replay/clock";

/// Stores numbers as a tensor of a type that files support: two i32 hold all bits of a double.
keep::TensorRef export_numbers(const char* name, const std::vector<double>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return keep::owned({name,
                      {DType::i32, Shape{static_cast<int64_t>(numbers.size()), 2}, {}},
                      {bytes.begin(), bytes.end()}});
}

/// Returns nothing if the file has none.
std::vector<double> import_numbers(const keep::SafetensorsFile& file, const char* name) {
  const keep::SafetensorsFile::Entry* entry = file.find(name);
  if (!entry) return {};
  std::vector<double> numbers((entry->end - entry->begin) / sizeof(double));
  file.read_part(*entry, 0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::vector<exchange::Bucket> clock_buckets(const RoundsSpec& spec) {
  const plan::Variables& variables = spec.step.network().training.variables;
  std::vector<exchange::GradientEntry> gradients;
  for (const plan::Variable& variable : variables.parameters)
    if (variables.is_trained(variable)) gradients.push_back({variable.name, variable.desc.bytes()});
  return exchange::partition_buckets(gradients, clock_bucket_bytes(spec.config)).buckets;
}

double clock_state_bytes(const RoundsSpec& spec) {
  const plan::Variables& variables = spec.step.network().training.variables;
  return static_cast<double>(variables.trained_bytes * variables.state_kinds.size());
}

/// Returns the number of operations in a replica's step.
double clock_flop(const RoundsSpec& spec) {
  return spec.step.network().training.graph.flop() * spec.grid.parts() *
         static_cast<double>(spec.config.batch.accumulate);
}

class CollectiveClock final : public ReplayClock {
 public:
  explicit CollectiveClock(const RoundsSpec& spec)
      : spec_(spec), clock_({.machine = *spec.machine,
                             .replicas = spec.replicas.replicas(),
                             .seed = static_cast<uint64_t>(spec.config.run.seed),
                             .flop = clock_flop(spec),
                             .buckets = clock_buckets(spec),
                             .state_bytes = clock_state_bytes(spec),
                             .sync = meeting_settings(spec.config, spec.steps_per_epoch)}) {}

  void start(const keep::Checkpoint* resumed, int64_t step) override {
    if (resumed && clock_.restore(import_numbers(resumed->state, kReplicas))) return;
    if (resumed && resumed->info.metrics.contains(kVirtualSeconds))
      clock_.resume(resumed->info.metrics.at(kVirtualSeconds));
    else if (resumed)
      log::warn_once("the run until step {} was no replay: virtual time begins here", step);
  }
  void follow(int64_t step) override { waited_ += clock_.step(step, measured()); }
  double seconds() const override { return clock_.seconds(); }
  keep::TensorRef state() const override { return export_numbers(kReplicas, clock_.state()); }

 private:
  /// Returns each replica's measured seconds, if the machine's steps take as long as the real ones.
  std::vector<double> measured() const {
    if (!clock_.measures()) return {};
    std::vector<double> all(static_cast<size_t>(spec_.replicas.replicas()));
    std::ranges::copy(spec_.step.replica_seconds(),
                      all.begin() + static_cast<std::ptrdiff_t>(spec_.replicas.owned().lo));
    spec_.workers.sum(all);
    return all;
  }

  const RoundsSpec spec_;
  sync::VirtualClock clock_;
};

/// Servers that take the gradients of all workers together: the arithmetic equals EveryStep's.
class TogetherClock final : public ReplayClock {
 public:
  TogetherClock(const RoundsSpec& spec, const ServerSettings& settings)
      : spec_(spec), clock_(server_clock_spec(spec)) {
    if (spec.workers.rank() == 0)
      log::info("{} server(s) hold the weights of {} worker(s): sync.scheme = \"{}\"",
                settings.servers, clock_.workers(), spec.config.sync.scheme);
  }

  void start(const keep::Checkpoint* resumed, int64_t step) override {
    if (!resumed || import_clock(resumed->state, clock_)) return;
    clock_.begin(virtual_seconds_of(resumed), step);
    warn_of_new_workers(step);
  }
  void follow(int64_t) override {
    while (!clock_.next().updates) {}
    waited_ += clock_.take_waited();
  }
  double seconds() const override { return clock_.seconds(); }
  keep::TensorRef state() const override { return export_clock(clock_); }
  void report(int64_t step, trace::RunRecord* record) override {
    report_servers(spec_, clock_.take_counts(), step, record);
  }

 private:
  const RoundsSpec spec_;
  sync::ServerClock clock_;
};

}  // namespace

size_t clock_bucket_bytes(const config::RunConfig& config) {
  return config.comm.bucket_bytes > 0 ? static_cast<size_t>(config.comm.bucket_bytes) : 1 << 20;
}

sync::ServerClockSpec server_clock_spec(const RoundsSpec& spec) {
  const ServerSettings settings = *server_settings(spec.config);
  const int replicas = spec.replicas.replicas();
  sync::ServerClockSpec clock{.machine = *spec.machine,
                              .workers = settings.workers(replicas),
                              .group = settings.group_of(replicas),
                              .seed = static_cast<uint64_t>(spec.config.run.seed),
                              .flop = clock_flop(spec),
                              .buckets = clock_buckets(spec),
                              .servers = settings.servers,
                              .bound = settings.bound};
  // Real workers also meet for lines of the log and checkpoints, which must not change any bit.
  clock.round = spec.steps_per_epoch * clock.workers;
  clock.state_bytes = clock_state_bytes(spec);
  if (settings.together) {
    clock.round = 0;
    clock.workers = spec.devices;
    clock.quorum = replicas;
    clock.group = 1;
  }
  return clock;
}

double virtual_seconds_of(const keep::Checkpoint* resumed) {
  if (!resumed) return 0;
  const auto at = resumed->info.metrics.find(kVirtualSeconds);
  return at == resumed->info.metrics.end() ? 0 : at->second;
}

void warn_of_slow_devices(const RoundsSpec& spec) {
  for (const comm::Machine::Slow& slow : spec.machine->slow)
    if (slow.device >= spec.devices)
      log::warn_once("device {} of {} is slow, but no replica is on it: there are {}", slow.device,
                     spec.machine->name, spec.devices);
}

void warn_of_new_workers(int64_t step) {
  log::warn_once(
      "all workers begin at step {} with the servers' weights: the run before had other workers, "
      "or no servers",
      step);
}

keep::TensorRef export_clock(const sync::ServerClock& clock) {
  return export_numbers(kServers, clock.state());
}

bool import_clock(const keep::SafetensorsFile& file, sync::ServerClock& clock) {
  const std::vector<double> numbers = import_numbers(file, kServers);
  return !numbers.empty() && clock.restore(numbers);
}

std::unique_ptr<ReplayClock> make_replay_clock(const RoundsSpec& spec) {
  if (!spec.machine) return nullptr;
  warn_of_slow_devices(spec);
  const auto settings = served_settings(spec.config, spec.devices);
  if (settings) return std::make_unique<TogetherClock>(spec, *settings);
  return std::make_unique<CollectiveClock>(spec);
}

void report_servers(const RoundsSpec& spec, const sync::ServedCounts& counts, int64_t step,
                    trace::RunRecord* record) {
  if (!record) return;
  const trace::ServersRecord line{.epoch = step / spec.steps_per_epoch,
                                  .step = step,
                                  .updates = counts.updates,
                                  .version = counts.version,
                                  .dropped = counts.dropped,
                                  .bytes = counts.bytes,
                                  .stale_mean = counts.stale_mean(),
                                  .stale_most = std::ssize(counts.staleness) - 1,
                                  .staleness = counts.staleness,
                                  .spread = counts.spread};
  if (applied_one_by_one(spec.config, spec.replicas.replicas()))
    log::info(
        "{} gradients applied, {:.2f} updates after their weights in the mean and {} at most; "
        "{:.1f} MiB sent; workers have weights of the last {} versions",
        line.updates, line.stale_mean, line.stale_most, line.bytes / (1 << 20), line.spread + 1);
  else if (line.dropped > 0)
    log::info(
        "{} of {} gradients came too late for their step, and were dropped", line.dropped,
        line.dropped + std::accumulate(line.staleness.begin(), line.staleness.end(), int64_t{0}));
  record->append(line);
}

}  // namespace tutti::train
