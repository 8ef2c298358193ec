#include "tutti/train/step/training_step.h"

#include "tutti/comm/schedule/tree.h"
#include "tutti/train/network/plain_copy.h"

namespace tutti {
namespace {

/// The turns whose gradients are summed, and which of them are this rank's.
ReplicaMap turns_of(const TrainingStepSpec& spec, const ReplicaMap& workers, int rank) {
  if (spec.apart) return ReplicaMap(1, 1, 0);
  if (spec.group > 0) return ReplicaMap(spec.group, spec.group, rank % spec.group);
  if (spec.served > 0) return ReplicaMap(spec.served, 1, 0);
  return spec.grid.tensor() > 1 || spec.grid.stages() > 1 ? spec.map : workers;
}

/// The ranks among which that is done: this one, a group that sends to servers, those that have the
/// same slices of layers, or the same stage. Null: all of them.
std::unique_ptr<comm::Communicator> ranks_summed(const TrainingStepSpec& spec,
                                                 comm::Communicator& communicator) {
  const PartGrid& grid = spec.grid;
  if (spec.apart) return communicator.split(communicator.rank(), 0, "alone");
  if (spec.group > 0) return communicator.split(communicator.rank() / spec.group, 0, "group");
  if (grid.stages() > 1)
    return communicator.split(grid.stage(), grid.group(), fmt::format("stage {}", grid.stage()));
  if (grid.tensor() == 1) return nullptr;
  return communicator.split(grid.tensor_place(), grid.group(),
                            fmt::format("slices {}", grid.tensor_place()));
}

}  // namespace

ReplicaMap workers_of(const ReplicaMap& replicas, const PartGrid& grid, int ranks, int rank) {
  if (grid.peers() == 1) return replicas;
  grid.require_own_ranks(replicas.replicas());
  return {ranks, ranks, rank};
}

NetworkSpec network_of_step(const TrainingStepSpec& spec, int ranks, int rank) {
  const ReplicaMap workers = workers_of(spec.map, spec.grid, ranks, rank);
  const ReplicaMap turns = turns_of(spec, workers, rank).times(spec.accumulate);
  const bool holds_all = spec.apart && spec.spill.empty();
  NetworkSpec network = spec.network;
  network.training.split.grid = spec.grid;
  network.training.turns = turns.replicas();
  network.training.optimizer.sharded = spec.exchange.sharded;
  network.held = {.order = spec.order,
                  .batches = spec.accumulate,
                  .gradients = comm::plan_slots(turns.replicas(), turns.owned()).slots,
                  .replicas = holds_all ? spec.map.local_count() : 1};
  return network;
}

/// A group's sum is dense: it is compressed on its way to the servers
/// (train/rounds/rank_servers.h).
ExchangeSettings exchange_of(const TrainingStepSpec& spec, const Network& network) {
  ExchangeSettings settings = spec.exchange;
  if (spec.group == 0) settings.compression = network.compression;
  return settings;
}

void refuse_tables_apart(const Network& network) {
  if (network.has_tables)
    throw ConfigError(
        "the model looks rows up in tables, which all ranks share: they need sync.scheme = "
        "\"step\"");
}

TrainingStep::TrainingStep(const TrainingStepSpec& spec, const Backend& backend,
                           comm::Communicator& communicator)
    : communicator_(communicator), accumulate_(spec.accumulate), served_(spec.served),
      map_(spec.map),
      workers_(workers_of(spec.map, spec.grid, communicator.size(), communicator.rank())),
      turns_(turns_of(spec, workers_, communicator.rank()).times(accumulate_)), apart_(spec.apart),
      grouped_(spec.group > 0), summed_(ranks_summed(spec, communicator)),
      network_(compile_network(network_of_step(spec, communicator.size(), communicator.rank()),
                               backend, communicator)),
      exchange_(summed_ ? *summed_ : communicator, turns_, *network_, exchange_of(spec, *network_),
                spec.steps_compared),
      weights_(spec.apart ? Weights(network_->training.variables, spec.map.local_count(),
                                    Weights::Replicas::apart, spec.spill)
                          : Weights(network_->training.variables, spec.map.local_count(),
                                    exchange_.parameters(), exchange_.fills_parameters())),
      executor_(network_->training, backend,
                batches_under_way(spec.order, spec.grid.stages(), spec.grid.stage(), accumulate_)),
      share_(1.0f / static_cast<float>(spec.grid.tensor())), info_{.seed = spec.seed} {
  CHECK(!spec.apart || (spec.grid.peers() == 1 && !spec.exchange.sharded), "check_sync()");
  CHECK(spec.served == 0 || (communicator.size() == 1 && !spec.apart), "check_served_job()");
  CHECK(spec.group == 0 || (spec.map.replicas() == communicator.size() && !spec.exchange.sharded),
        "check_served_job()");
  if (spec.apart || spec.served > 0 || grouped_) refuse_tables_apart(*network_);
  if (spec.noise.every > 0) {
    CHECK(!spec.apart && !grouped_ && spec.served == 0 && spec.grid.peers() == 1,
          "measured_noise()");
    exchange_.measure_noise(spec.noise);
  }
  weights_.initialise(spec.seed);
  parts_.emplace(communicator, spec.grid, network_->training, executor_);
  if (spec.grid.tensor() > 1) weights_.share(slices_.emplace(communicator, spec.grid));
  table_turns_.emplace(*network_, turns_, executor_);
  exchange_.add_stages(communicator, spec.grid);
  if (spec.grid.stages() > 1) stage_.emplace(*network_, executor_, exchange_, accumulate_);
}

void TrainingStep::start() {
  executor_.bind(weights_.replica(0));
  // Parts add up to their replica's gradient.
  const int summed = apart_ ? 1 : served_ > 0 ? served_ : map_.replicas();
  executor_.set_scalar(network_->gradient_scale, 1.0f / static_cast<float>(summed * accumulate_));
  exchange_.attach(executor_, *parts_, slices_ ? &*slices_ : nullptr);
  communicator_.barrier();  // parameters that another rank has filled are there
  weights_.begin_average(exchange_.kept_state());
  executor_.pack();
}

/// Returns the seconds that it took, but for those in which it waited for others.
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
  if (!apart_) exchange_.begin_step(step);
  if (stage_) stage_->begin_step();
}

/// Of replicas that are apart, the turns of another one begin: there are gradients of one at a
/// time, so the one before is updated.
void TrainingStep::enter(int local_replica) {
  if (!apart_ || local_replica == entered_) return;
  if (entered_ >= 0) update();
  entered_ = local_replica;
  exchange_.begin_step(info_.step);
}

void TrainingStep::serve(const ServedGradient& gradient) {
  gradient_ = gradient;
  // What is packed are the weights that all updates change.
  if (gradient.weights != weights_.parameters()) bound_ = -1;
}

float TrainingStep::run(int local_turn, std::span<void* const> batch) {
  CHECK(batch.size() == network_->inputs.size(), "{} tensors of a batch for {} inputs",
        batch.size(), network_->inputs.size());
  // Of several gradients one at a time: its own turns.
  const int turn = settles_at_once() ? local_turn % turns_.replicas() : local_turn;
  const int by_order = local_turn / accumulate_;
  enter(by_order);
  info_.replica =
      (grouped_ ? stands_for_ : map_.replica(by_order)) * accumulate_ + local_turn % accumulate_;
  local_replica_ = served_ > 0 ? gradient_.worker * served_ + turn / accumulate_ : by_order;
  ReplicaState replica = weights_.replica(local_replica_);
  // The turns read them alone.
  if (served_ > 0) replica.parameters = const_cast<std::byte*>(gradient_.weights);
  const int packed = apart_ ? local_replica_ : 0;
  replica_seconds_[static_cast<size_t>(by_order)] += compute([&] {
    if (stage_) return stage_->run(turn, info_, replica, batch);
    for (size_t i = 0; i < batch.size(); ++i)
      executor_.bind_input(network_->inputs[i].value, batch[i]);
    replica.gradients = exchange_.begin(turn);
    executor_.bind(replica);
    if (bound_ != packed) executor_.pack();
    executor_.run(info_);
    table_turns_->take(local_turn);
  });
  bound_ = packed;
  note_norm();
  const float sum = loss();
  if (stage_) replica_seconds_[static_cast<size_t>(by_order)] += compute([&] { stage_->go_on(); });
  return sum * share_;
}

/// Of a stage that has none 0.
float TrainingStep::loss() const {
  float sum = 0;
  for (size_t i = 0; i < network_->losses.size(); ++i) {
    const float one = *static_cast<const float*>(executor_.result(network_->losses[i]));
    sum = i == 0 ? one : sum + one;
  }
  return sum;
}

const float* TrainingStep::prediction() {
  const Value value = network_->predictions.front();
  CHECK(value.valid(), "parts have no prediction of whole samples");
  const TensorDesc& desc = network_->training.desc(value);
  const auto* y = static_cast<const float*>(executor_.result(value));
  if (desc.layout.is_plain()) return y;
  to_plain(desc, y, plain_);
  return plain_.data();
}

void TrainingStep::update() {
  if (stage_) compute([&] { stage_->end_step(); });
  if (!grouped_) exchange_.end_of_backward();
  StepInfo info = info_;
  if (served_ > 0) {
    rate_ = gradient_.rate;
    info.step = gradient_.update;
    executor_.bind({.parameters = weights_.parameters()});
    exchange_.set_compensation(
        {.lambda = gradient_.compensation / static_cast<float>(turns_.replicas()),  // of the sum
         .now = weights_.parameters(),
         .then = gradient_.weights});
  }
  double seconds = compute([&] {
    settle();  // what no band has waited for has the rate of its own step
    executor_.set_scalar(network_->lr, rate_);
    executor_.update(info);
    exchange_.end_step(executor_);
    exchange_.begin_stage_sums();
  });
  norm_due_ = network_->gradient_norm.valid() && !grouped_;      // a server's is of what it applies
  if (settles_at_once()) seconds += compute([&] { settle(); });  // there is nobody to wait for
  if (served_ > 0) bound_ = 0;  // the update has packed what it has changed: all of it
  for (size_t r = 0; r < replica_seconds_.size(); ++r)
    if (!apart_ || static_cast<int>(r) == entered_) replica_seconds_[r] += seconds;
  entered_ = -1;
}

void TrainingStep::settle() {
  executor_.settle();
  note_norm();
}

/// A run waits for every update that one of its bands depends on, and so for the norm of all
/// gradients.
void TrainingStep::note_norm() {
  if (!std::exchange(norm_due_, false)) return;
  norms_ += {1, *static_cast<const float*>(executor_.result(network_->gradient_norm))};
}

StepTimes TrainingStep::times() const {
  StepTimes times;
  times.comm_exposed = exposed_seconds() - exposed_before_;
  times.compute = computing_ - times.comm_exposed;
  return times;
}

}  // namespace tutti
