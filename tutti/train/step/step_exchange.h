#pragma once
// StepExchange: all communication of one training step with other ranks, as the exchanges of its
// plan: sums of gradients; with sharded updates, norms and new weights; and parts of samples.
//
//   for each local replica i: bind begin(i) as its gradients, run it; then end_of_backward(), and
//     the executor's update()

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tutti/comm/check/arrival.h"
#include "tutti/exchange/compression_trial.h"
#include "tutti/exchange/exchange.h"
#include "tutti/exchange/sharded_update.h"
#include "tutti/keep/kept_state.h"
#include "tutti/keep/rank_file.h"
#include "tutti/plan/run/executor.h"
#include "tutti/sync/delay_compensation.h"
#include "tutti/sync/server_link.h"
#include "tutti/trace/span.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/slice_ranks.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/step/noise_scale.h"
#include "tutti/train/step/part_exchange.h"
#include "tutti/train/step/stage_sum.h"

namespace tutti::train {

/// Not thread-safe; used by the thread that uses the communicator.
class StepExchange final : public plan::Exchanges {
 public:
  /// Collective. Communicator and network must outlive this object. settings.compression is the
  /// network's, or none if gradients are forwarded to servers. `steps_compared`: how many of the
  /// steps between two readings of arrivals() are kept.
  StepExchange(comm::Communicator& communicator, const exchange::ReplicaMap& map,
               const Network& network, const exchange::ExchangeSettings& settings,
               int steps_compared = 256);

  /// Returns the address of the parameters in memory that ranks share, or null if each rank has its
  /// own and may place it anywhere.
  std::byte* parameters() const { return weights_ ? weights_->data() : nullptr; }
  /// Returns whether this rank must fill the parameters at the start; the others see its values
  /// after the next barrier.
  bool fills_parameters() const { return !weights_ || weights_->mine(); }
  /// Makes `executor` exchange through this object, with gradients for the local replica last given
  /// to begin(). `slices` is for ranks that share layers, else null. All arguments must outlive the
  /// executor's use.
  void attach(plan::Executor& executor, PartExchange& parts, SliceRanks* slices = nullptr);
  void start(int exchange) override;
  bool done(int exchange) override;
  plan::ExchangeOutput finish(int exchange) override;
  std::optional<std::vector<plan::OwnCopy>> own_copies(int exchange) const override {
    return parts_->own_copies(exchange);
  }
  bool gradients_stay() const override {
    return communicator_.size() == 1 && !compresses() && !servers_ && !shards_ &&
           stage_sums_.empty();
  }
  std::vector<plan::GradientFold> folds() const override;
  const void* sum() const override { return slot(0); }
  bool looks() const override { return noise_ && noise_->measuring(); }
  void look(const std::byte* gradients) override;
  void look_at_sum(const std::byte* gradients) override;
  void poll() override {
    gradients_.poll();
    parts_->poll();  // may cover more ranks
  }
  void help() override { gradients_.help(); }
  /// Returns the first gradient that was not finite, in any step: each bucket is checked when a
  /// replica completes it, before it is sent. Empty: none.
  const std::string& bad_gradient() const { return bad_gradient_; }
  /// Records each bucket's exchange as a span, on a lane of its own, from its start to the moment
  /// when the sum's arrival was noticed. Null: none.
  void set_spans(trace::Spans* spans);
  /// Collective, before the first step: measures the gradient's noise scale from now on. Not for
  /// compressed gradients.
  void measure_noise(const NoiseSettings& settings);
  /// Returns null if it is not measured.
  NoiseMeter* noise() { return noise_ ? &*noise_ : nullptr; }
  const NoiseMeter* noise() const { return noise_ ? &*noise_ : nullptr; }
  /// Sends complete gradients to servers from now on, and receives weights.
  void serve(sync::WorkerGroup* servers) { servers_ = servers; }
  /// Call begin_step() for each step and begin() before each run; begin() returns the replica's
  /// gradient arena.
  void begin_step(int64_t step);
  float* begin(int local_replica);
  void end_of_backward();
  /// Collective over the ranks of a replica, before the first step: parameters that this and other
  /// stages have get the sum of all stages' gradients.
  void add_stages(comm::Communicator& communicator, const split::PartGrid& grid);
  /// Sets the compensation of the gradient before the next update uses it; lambda 0: none.
  void set_compensation(const sync::DelayCompensation& compensation) {
    compensation_ = compensation;
  }
  /// Call after end_step(): sends this stage's part of each sum over stages before it returns.
  /// Later this stage may wait for activations from a stage that cannot make any before it has the
  /// part.
  void begin_stage_sums();
  /// Call after the update. While compression is on trial this settles the executor, so that each
  /// step includes its own waits.
  void end_step(plan::Executor& executor);

  /// Returns the ranges of the parameters' arena whose optimizer state this rank keeps: its shards,
  /// or all.
  std::vector<ArenaRange> kept_state() const;
  /// Collective. Sends every rank's shards of the optimizer state to rank 0, except an average's;
  /// does nothing if updates are not sharded. `state` is the arena of the network's variables, the
  /// same in every call.
  void collect_state(std::byte* state);

  /// Collective. Gathers an arena laid out like the trained parameters, of which each rank has the
  /// ranges of kept_state(), into `whole`. Both addresses must be the same in every call.
  void share(const std::byte* kept, std::byte* whole);

  /// Returns whether any gradient is compressed, unless a trial decides against it.
  bool compresses() const { return !settings_.compression.buckets.empty(); }
  /// Collective. Adds the state of compression (KeptState::save): what was not sent yet,
  /// "compression.rank3.bucket 2.gradient@0", and the trial of automatic compression: its outcome,
  /// 1 if compression pays and 0 if not, or the steps of one that goes on.
  void save(keep::SavedRun& saved);
  /// Collective. Restores it.
  void restore(const keep::Checkpoint& checkpoint);
  /// Describes the compression since the last call, averaged over `steps`, for the log; empty if
  /// nothing is compressed.
  std::string compression_line(int64_t steps);

  const exchange::GradientExchange& gradients() const { return gradients_; }
  /// Returns when each rank started each bucket's sum, and waited for it.
  comm::ArrivalRecord& arrivals() { return arrivals_; }
  /// Returns the communicator over the ranks whose gradients are summed.
  comm::Communicator& communicator() { return communicator_; }
  /// Returns the seconds that this rank waited for others, since the construction.
  double exposed_seconds() const {
    double seconds = gradients_.counters().exposed_seconds;
    if (shards_) seconds += shards_->exposed_seconds();
    if (slices_) seconds += slices_->exposed_seconds();
    if (servers_) seconds += servers_->exposed_seconds();
    for (const auto& [bucket, sum] : stage_sums_) seconds += sum->exposed_seconds();
    return seconds;
  }

 private:
  struct Made {
    plan::ExchangeKind kind;
    int index;  // a bucket, or a set of norms
  };
  std::vector<keep::UnsentBucket> unsent();
  void set_verdict(double pays);
  const void* slot(int number) const;
  void find_kinds();
  std::span<float> norms_at(int exchange) const;
  void plan_state(std::byte* state);
  void start_sum(int bucket);
  plan::ExchangeOutput finish_sum(int bucket);
  const std::byte* compensated(int bucket);
  StageSum* stage_sum(int bucket) {
    const auto at = stage_sums_.find(bucket);
    return at == stage_sums_.end() ? nullptr : at->second.get();
  }
  double blocked_seconds() const {
    return exposed_seconds() + gradients_.counters().starting_seconds;
  }

  comm::Communicator& communicator_;
  const Network& network_;
  std::vector<Made> made_;           // by the plan's exchange
  std::vector<size_t> norm_counts_;  // number of block sums in each set of norms
  plan::Executor* executor_ = nullptr;
  PartExchange* parts_ = nullptr;
  SliceRanks* slices_ = nullptr;
  exchange::GradientExchange gradients_;
  const comm::SlotPlan slots_;  // those that gradients_ has
  comm::ArrivalRecord arrivals_;
  std::optional<exchange::SharedWeights> weights_;  // with sharded updates
  std::optional<exchange::ShardedUpdate> shards_;
  sync::WorkerGroup* servers_ = nullptr;  // with servers
  std::optional<NoiseMeter> noise_;
  std::map<int, std::unique_ptr<StageSum>> stage_sums_;  // by bucket
  std::vector<std::unique_ptr<comm::CollectiveOperation>> state_,
      shared_;  // planned for the first checkpoint or evaluation
  const exchange::ExchangeSettings settings_;
  struct Compressing {
    std::optional<exchange::CompressionTrial>
        trial;  // if compression is automatic, until the verdict
    std::optional<double> verdict;
    bool step = false;                            // this step is to be compressed
    double blocked_before = 0, codec_before = 0;  // seconds
    comm::CompressionReport reported;
  };
  Compressing compressing_;
  int local_ = 0;
  sync::DelayCompensation compensation_;
  device::Buffer compensated_;  // laid out like the gradient; allocated when needed
  std::string bad_gradient_;
  struct BucketSpan {
    trace::Spans::Name name = {};
    int lane = 0;
    int64_t begin_ns = 0;
  };
  trace::Spans* spans_ = nullptr;
  std::vector<BucketSpan> bucket_spans_;
};

}  // namespace tutti::train
