#include "tutti/train/step/training_step.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "tutti/comm/schedule/tree.h"
#include "tutti/train/network/nonfinite.h"
#include "tutti/train/network/plain_copy.h"

namespace tutti::train {
namespace {

/// Maps the summed micro-batches, without accumulation, to ranks, with this rank's own.
exchange::ReplicaMap summed_of(const TrainingStepSpec& spec, const exchange::ReplicaMap& workers,
                               int rank) {
  const SummedGradients& summed = spec.summed;
  if (summed.ranks > 0) return {summed.replicas, summed.ranks, rank % summed.ranks};
  return spec.grid.tensor() > 1 || spec.grid.stages() > 1 ? spec.map : workers;
}

/// Returns the ranks that sum gradients: neighbours, those with the same slices of layers, or with
/// the same stage. Null: all of them.
std::unique_ptr<comm::Communicator> ranks_summed(const TrainingStepSpec& spec,
                                                 comm::Communicator& communicator) {
  const split::PartGrid& grid = spec.grid;
  if (const int ranks = spec.summed.ranks; ranks > 0 && ranks == communicator.size())
    return nullptr;
  else if (ranks > 0)
    return communicator.split(communicator.rank() / ranks, 0, ranks == 1 ? "alone" : "group");
  if (grid.stages() > 1)
    return communicator.split(grid.stage(), grid.group(), fmt::format("stage {}", grid.stage()));
  if (grid.tensor() == 1) return nullptr;
  return communicator.split(grid.tensor_place(), grid.group(),
                            fmt::format("slices {}", grid.tensor_place()));
}

}  // namespace

exchange::ReplicaMap workers_of(const exchange::ReplicaMap& replicas, const split::PartGrid& grid,
                                int ranks, int rank) {
  if (grid.peers() == 1) return replicas;
  grid.require_own_ranks(replicas.replicas());
  return {ranks, ranks, rank};
}

NetworkSpec network_of_step(const TrainingStepSpec& spec, int ranks, int rank) {
  const exchange::ReplicaMap workers = workers_of(spec.map, spec.grid, ranks, rank);
  const exchange::ReplicaMap summed = summed_of(spec, workers, rank).times(spec.accumulate);
  const bool holds_all = spec.apart && spec.spill.empty();
  NetworkSpec network = spec.network;
  network.training.split.grid = spec.grid;
  network.training.micro_batches = summed.replicas();
  network.training.sharded_update = spec.exchange.sharded;
  network.held = {.order = spec.order,
                  .batches = spec.accumulate,
                  .gradients = comm::plan_slots(summed.replicas(), summed.owned()).slots,
                  .sums = summed.ranks() > 1 ? 1 : 0,
                  .shown = spec.apart || network.training.optimizer.ema > 0 ? 1 : 0,
                  .replicas = holds_all ? spec.map.local_count() : 1,
                  .statistics = spec.apart ? 0 : spec.map.local_count() - 1,
                  .met = spec.spill.empty() ? spec.met : 0};
  return network;
}

/// Gradients for servers are compressed when they are sent there.
exchange::ExchangeSettings exchange_of(const TrainingStepSpec& spec, const Network& network) {
  exchange::ExchangeSettings settings = spec.exchange;
  if (!spec.to_servers) settings.compression = network.compression;
  return settings;
}

void refuse_tables_apart(const Network& network) {
  if (network.has_tables)
    throw ConfigError(
        "the model looks rows up in tables, which all ranks share: they need sync.scheme = "
        "\"step\"");
}

TrainingStep::TrainingStep(const TrainingStepSpec& spec, const backend::Backend& backend,
                           comm::Communicator& communicator)
    : communicator_(communicator), accumulate_(spec.accumulate), map_(spec.map),
      workers_(workers_of(spec.map, spec.grid, communicator.size(), communicator.rank())),
      summed_(summed_of(spec, workers_, communicator.rank()).times(accumulate_)),
      mean_of_((spec.summed.mean_of > 0 ? spec.summed.mean_of : map_.replicas()) * accumulate_),
      group_(ranks_summed(spec, communicator)),
      network_(compile_network(network_of_step(spec, communicator.size(), communicator.rank()),
                               backend, communicator)),
      exchange_(group(), summed_, *network_, exchange_of(spec, *network_), spec.steps_compared),
      weights_(spec.apart ? Weights(network_->training.variables, spec.map.local_count(),
                                    Weights::Replicas::apart, spec.spill)
                          : Weights(network_->training.variables, spec.map.local_count(),
                                    exchange_.parameters(), exchange_.fills_parameters())),
      executor_(plan::make_executor(network_->training, backend,
                                    split::batches_under_way(spec.order, spec.grid.stages(),
                                                             spec.grid.stage(), accumulate_))),
      share_(1.0f / static_cast<float>(spec.grid.tensor())), info_{.seed = spec.seed},
      ahead_(executor_->runs_ahead()) {
  CHECK(!spec.apart || (spec.grid.peers() == 1 && !spec.exchange.sharded), "check_sync()");
  CHECK(!spec.to_servers || (spec.map.replicas() == communicator.size() && !spec.exchange.sharded),
        "check_served_job()");
  const bool some = spec.summed.ranks > 0;  // only some replicas' gradients are summed
  if (some) refuse_tables_apart(*network_);
  if (spec.noise.every > 0) {
    CHECK(!some && spec.grid.peers() == 1, "measured_noise()");
    exchange_.measure_noise(spec.noise);
  }
  weights_.initialise(spec.seed);
  parts_.emplace(communicator, spec.grid, network_->training, *executor_);
  if (spec.grid.tensor() > 1) weights_.share(slices_.emplace(communicator, spec.grid));
  table_micro_batches_.emplace(*network_, summed_, *executor_);
  exchange_.add_stages(communicator, spec.grid);
  passes_.emplace(*network_, *executor_, exchange_, spec.grid.stages(), accumulate_);
}

void TrainingStep::start() {
  executor_->bind(weights_.replica(0));
  // Parts' gradients sum to their replica's.
  executor_->set_scalar(network_->gradient_scale, 1.0f / static_cast<float>(mean_of_));
  exchange_.attach(*executor_, *parts_, slices_ ? &*slices_ : nullptr);
  executor_->set_runs(summed_.local_count());
  if (ahead_)
    executor_->watch(network_->losses, network_->gradient_norm.valid()
                                           ? std::vector{network_->gradient_norm}
                                           : std::vector<graph::Value>{});
  communicator_.barrier();  // other ranks' values are visible afterwards
  weights_.begin_average(exchange_.kept_state());
  executor_->pack();
  passes_->note_packed(weights_.parameters());
}

void TrainingStep::save_state(keep::SavedRun& saved) {
  exchange_.collect_state(weights_.state());
  std::ranges::move(weights_.state_tensors(), std::back_inserter(saved.shared));
  exchange_.save(saved);
}

/// Returns the seconds that it took, without those in which it waited for others.
template <class Work>
double TrainingStep::compute(Work work) {
  const double exposed = exposed_seconds();
  const auto start = RunClock::Clock::now();
  work();
  const double seconds = RunClock::since(start);
  computing_ += seconds;
  return seconds - (exposed_seconds() - exposed);
}

void TrainingStep::begin(int64_t step, float learning_rate) {
  info_.step = step;
  rate_ = learning_rate;
  computing_ = 0;
  replica_seconds_.assign(static_cast<size_t>(map_.local_count()), 0.0);
  exposed_before_ = exposed_seconds();
  begin_gradient();
}

void TrainingStep::begin_gradient() {
  backward_ended_ = false;
  exchange_.begin_step(info_.step);
  passes_->begin();
}

MicroBatch TrainingStep::micro_batch(int local) const {
  const int replica = local / accumulate_, batch = local % accumulate_;
  return {.place = local,
          .number = map_.replica(replica) * accumulate_ + batch,
          .local_replica = replica};
}

void TrainingStep::begin_pass(const MicroBatch& which, std::span<void* const> batch) {
  CHECK(batch.size() == network_->inputs.size(), "{} tensors of a batch for {} inputs",
        batch.size(), network_->inputs.size());
  last_ = which;
  info_.replica = which.number;
  plan::ReplicaState replica = weights_.replica(which.local_replica);
  // Passes only read them.
  if (which.parameters) replica.parameters = const_cast<std::byte*>(which.parameters);
  double& seconds = replica_seconds_[static_cast<size_t>(which.local_replica)];
  seconds += compute([&] {
    passes_->run(which.place, info_, replica, batch);
    table_micro_batches_->take(which.place);
  });
}

float TrainingStep::run(const MicroBatch& which, std::span<void* const> batch) {
  if (ahead_) return run_to_end(which, batch);
  begin_pass(which, batch);
  note_norm();
  const float sum = loss();
  replica_seconds_[static_cast<size_t>(which.local_replica)] += compute([&] { passes_->go_on(); });
  return sum * share_;
}

float TrainingStep::run_to_end(const MicroBatch& which, std::span<void* const> batch) {
  float loss = 0;
  while (next_end(plan::Until::all)) {}
  begin_run(which, batch);
  while (const std::optional<MicroBatchEnd> end = next_end(plan::Until::all)) loss = end->loss;
  return loss;
}

void TrainingStep::begin_run(const MicroBatch& which, std::span<void* const> batch) {
  CHECK(ahead_, "only an executor that runs ahead leaves results for later");
  begun_.push_back({.which = which, .step = info_.step});
  begin_pass(which, batch);
}

std::optional<MicroBatchEnd> TrainingStep::next_end(plan::Until until) {
  take_readings(until);
  if (ended_.empty()) return {};
  MicroBatchEnd end = std::move(ended_.front());
  ended_.pop_front();
  return end;
}

void TrainingStep::take_readings(plan::Until until) {
  const plan::Plan& plan = network_->training;
  while (std::optional<plan::Readings> readings = executor_->next_readings(until)) {
    if (readings->of_update) {
      if (std::isfinite(norms_.sum)) norms_.last = updates_.front() + 1;
      updates_.pop_front();
      norms_ += {1, readings->numbers.front()};
      continue;
    }
    MicroBatchEnd end = std::move(begun_.front());
    begun_.pop_front();
    for (size_t i = 0; i < readings->numbers.size(); ++i)
      end.loss = i == 0 ? readings->numbers[i] : end.loss + readings->numbers[i];
    end.loss *= share_;
    for (const models::GraphInput& input : network_->inputs) {
      const auto at = std::ranges::find(plan.inputs, input.value) - plan.inputs.begin();
      end.tensors.push_back(const_cast<void*>(readings->inputs[static_cast<size_t>(at)]));
    }
    end.bad_gradient = readings->bad_gradient < 0
                           ? exchange_.bad_gradient()
                           : nonfinite_gradient_at(plan.variables, readings->bad_gradient);
    if (bad_gradient_.empty()) bad_gradient_ = end.bad_gradient;
    ended_.push_back(std::move(end));
  }
}

/// Returns 0 on a stage without a loss.
float TrainingStep::loss() {
  float sum = 0;
  for (size_t i = 0; i < network_->losses.size(); ++i) {
    const float one = *static_cast<const float*>(executor_->result(network_->losses[i]));
    sum = i == 0 ? one : sum + one;
  }
  return sum;
}

const float* TrainingStep::prediction() {
  const graph::Value value = network_->predictions.front();
  CHECK(value.valid(), "parts have no prediction of whole samples");
  const TensorDesc& desc = network_->training.desc(value);
  const auto* y = static_cast<const float*>(executor_->result(value));
  if (desc.layout.is_plain()) return y;
  to_plain(desc, y, plain_);
  return plain_.data();
}

void TrainingStep::end_of_backward() {
  exchange_.end_of_backward();
  backward_ended_ = true;
}

void TrainingStep::update(const WeightUpdate& how) {
  compute([&] { passes_->end(); });
  if (!backward_ended_) end_of_backward();
  backend::StepInfo info = info_;
  float rate = rate_;
  if (how.late) {
    info.step = how.late->update;
    rate = how.late->rate;
    executor_->bind({.parameters = weights_.parameters()});
    exchange_.set_compensation(
        {.lambda = how.late->compensation / static_cast<float>(summed_.replicas()),  // it is a sum
         .now = weights_.parameters(),
         .then = how.late->of});
  }
  double seconds = compute([&] {
    executor_->finish_update();  // pending updates use their own step's rate
    note_norm();
    executor_->set_scalar(network_->lr, rate);
    executor_->update(info);
    if (ahead_ && network_->gradient_norm.valid()) updates_.push_back(info.step);
    exchange_.end_step(*executor_);
    exchange_.begin_stage_sums();
  });
  norm_due_ =
      network_->gradient_norm.valid() && !how.received && !ahead_;  // servers have their own norms
  if (how.settled) seconds += compute([&] { finish_update(); });
  // The update has packed everything that it has changed.
  if (how.late) passes_->note_packed(weights_.parameters());
  for (size_t r = 0; r < replica_seconds_.size(); ++r)
    if (!weights_.apart() || static_cast<int>(r) == last_.local_replica)
      replica_seconds_[r] += seconds;
}

void TrainingStep::finish_update() {
  executor_->finish_update();
  note_norm();
  if (ahead_ && network_->gradient_norm.valid()) take_readings(plan::Until::all);
}

void TrainingStep::settle(plan::Kept what) {
  executor_->settle(what);
  note_norm();
  if (ahead_) take_readings(plan::Until::all);
}

/// A run waits for every update on which one of its bands depends, and so for the norm of all
/// gradients.
void TrainingStep::note_norm() {
  if (!std::exchange(norm_due_, false)) return;
  norms_ += {1, *static_cast<const float*>(executor_->result(network_->gradient_norm))};
}

StepTimes TrainingStep::times() const {
  StepTimes times;
  times.comm_exposed = exposed_seconds() - exposed_before_;
  times.compute = computing_ - times.comm_exposed;
  return times;
}

}  // namespace tutti::train
