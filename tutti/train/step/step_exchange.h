#pragma once
// StepExchange: everything that one training step exchanges with other ranks, as the exchanges of
// its plan: sums of gradients, where updates are sharded norms and new weights, and parts of
// samples.
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
#include "tutti/keep/named_tensor.h"
#include "tutti/keep/rank_file.h"
#include "tutti/plan/executor.h"
#include "tutti/sync/delay_compensation.h"
#include "tutti/sync/server_link.h"
#include "tutti/trace/span.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/slice_ranks.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/step/noise_scale.h"
#include "tutti/train/step/part_exchange.h"
#include "tutti/train/step/stage_sum.h"

namespace tutti {

/// Not thread-safe; used by the thread that uses the communicator.
class StepExchange final : public Exchanges {
 public:
  /// Collective. Communicator and network must outlive it. settings.compression: the network's, or
  /// none where gradients travel on from here to servers. `steps_compared`: of the steps between
  /// two looks at arrivals(), how many are kept.
  StepExchange(comm::Communicator& communicator, const ReplicaMap& map, const Network& network,
               const ExchangeSettings& settings, int steps_compared = 256);

  /// Where the parameters lie: memory that ranks share, or null where each has its own and may put
  /// it anywhere.
  std::byte* parameters() const { return weights_ ? weights_->data() : nullptr; }
  /// Whether this rank is to fill the parameters at the start; the others see its values after the
  /// next barrier.
  bool fills_parameters() const { return !weights_ || weights_->mine(); }
  /// Makes `executor` exchange through this, gradients for the local replica last given to begin().
  /// `slices`: of ranks that share layers; else null. All must outlive the executor's use.
  void attach(Executor& executor, PartExchange& parts, SliceRanks* slices = nullptr);
  void start(int exchange) override;
  bool done(int exchange) override;
  ExchangeOutput finish(int exchange) override;
  void poll() override {
    gradients_.poll();
    parts_->poll();  // which may go over more ranks
  }
  void help() override { gradients_.help(); }
  /// The first gradient that was not finite, of any step: each bucket is looked at as a replica
  /// completes it, before it leaves. Empty: none.
  const std::string& bad_gradient() const { return bad_gradient_; }
  /// Each bucket's exchange becomes a span from its start to the moment when the sum was found to
  /// be there, on a lane of its own. Null: none.
  void set_spans(Spans* spans);
  /// Collective, before the first step: the gradient's noise scale is measured from now on. Not
  /// where gradients are compressed.
  void measure_noise(const NoiseSettings& settings);
  /// Null where it is not measured.
  NoiseMeter* noise() { return noise_ ? &*noise_ : nullptr; }
  const NoiseMeter* noise() const { return noise_ ? &*noise_ : nullptr; }
  /// Complete gradients go to servers from now on, and what comes back are weights.
  void serve(WorkerGroup* servers) { servers_ = servers; }
  /// Around each step and its runs; begin() returns the gradient arena of the replica.
  void begin_step(int64_t step);
  float* begin(int local_replica);
  void end_of_backward();
  /// Collective of the ranks of a replica, before the first step: parameters that this and other
  /// stages have get the sum of all of them.
  void add_stages(comm::Communicator& communicator, const PartGrid& grid);
  /// What is done with the gradient before the next update gets it; lambda 0: nothing.
  void set_compensation(const DelayCompensation& compensation) { compensation_ = compensation; }
  /// After end_step(): has sent this stage's part of each sum over stages when it returns. Later it
  /// may wait for activations of a stage that makes none before it has the part.
  void begin_stage_sums();
  /// After the update. While compression is on trial the executor is settled, so that each step
  /// bears its own waits.
  void end_step(Executor& executor);

  /// The part of the parameters' arena whose optimizer state this rank keeps: its shards, or all.
  std::vector<ArenaRange> kept_state() const;
  /// Collective. Every rank's shards of the optimizer state to rank 0, but for an average's;
  /// nothing to do where updates are not sharded. `state`: the arena of the network's variables,
  /// always the same one.
  void collect_state(std::byte* state);

  /// Collective. The whole of an arena laid out as the trained parameters, of which each rank has
  /// what kept_state() says, into `whole`; both always the same ones.
  void share(const std::byte* kept, std::byte* whole);

  /// Whether any gradient is compressed, but for a trial's outcome.
  bool compresses() const { return !settings_.compression.buckets.empty(); }
  /// The outcome of the trial: 1 it pays, 0 it does not; nothing while it runs, and where
  /// compression is not automatic. As a number, for the checkpoint; set_verdict() takes it up, so
  /// that a resumed run does as the one before.
  std::optional<double> verdict() const { return verdict_; }
  void set_verdict(double pays);
  /// What compression keeps on this rank, "compression.rank3.bucket 2.gradient@0", where it lies:
  /// valid until the next step.
  std::vector<TensorRef> compression_state();
  /// Collective. The reverse, from a checkpoint.
  void restore_compression(comm::SavedState& saved);
  /// What compression did since the last call, in averages of `steps`: for the log; empty where
  /// nothing is compressed.
  std::string compression_line(int64_t steps);

  const GradientExchange& gradients() const { return gradients_; }
  /// When each rank started each bucket's sum, and waited for it.
  comm::ArrivalRecord& arrivals() { return arrivals_; }
  /// Of those whose gradients are summed.
  comm::Communicator& communicator() { return communicator_; }
  /// Seconds in which this rank waited for others, since the construction.
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
    ExchangeKind kind;
    int index;  // bucket, or set of norms
  };
  std::vector<UnsentBucket> unsent();
  void find_kinds();
  std::span<float> norms_at(int exchange) const;
  void plan_state(std::byte* state);
  void start_sum(int bucket);
  ExchangeOutput finish_sum(int bucket);
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
  std::vector<Made> made_;           // by exchange of the plan
  std::vector<size_t> norm_counts_;  // block sums of each set of norms
  Executor* executor_ = nullptr;
  PartExchange* parts_ = nullptr;
  SliceRanks* slices_ = nullptr;
  GradientExchange gradients_;
  comm::ArrivalRecord arrivals_;
  std::optional<SharedWeights> weights_;  // where updates are sharded
  std::optional<ShardedUpdate> shards_;
  WorkerGroup* servers_ = nullptr;  // where servers update
  std::optional<NoiseMeter> noise_;
  std::map<int, std::unique_ptr<StageSum>> stage_sums_;  // by bucket
  std::vector<std::unique_ptr<comm::CollectiveOperation>> state_,
      shared_;  // planned for the first checkpoint or evaluation
  const ExchangeSettings settings_;
  std::optional<CompressionTrial> trial_;  // where compression is automatic, until its verdict
  std::optional<double> verdict_;
  bool compressed_step_ = false;
  double blocked_before_ = 0, codec_before_ = 0;
  comm::CompressionReport reported_;
  int local_ = 0;
  DelayCompensation compensation_;
  Buffer compensated_;  // laid out as the gradient; empty until it is needed
  std::string bad_gradient_;
  struct BucketSpan {
    Spans::Name name = {};
    int lane = 0;
    int64_t begin_ns = 0;
  };
  Spans* spans_ = nullptr;
  std::vector<BucketSpan> bucket_spans_;
};

}  // namespace tutti
