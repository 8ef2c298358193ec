#include "tutti/train/step/step_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tutti/base/log.h"
#include "tutti/comm/schedule/tree.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/parts.h"
#include "tutti/train/network/nonfinite.h"
#include "tutti/train/network/optimizer.h"

namespace tutti::train {
namespace {

/// Returns the name of a trial's step in a checkpoint's numbers.
constexpr const char* kVerdict = "compression_pays";

std::string trial_number(int step) { return fmt::format("compression_trial_{:02}", step); }

}  // namespace

StepExchange::StepExchange(comm::Communicator& communicator, const exchange::ReplicaMap& map,
                           const Network& network, const exchange::ExchangeSettings& settings,
                           int steps_compared)
    : communicator_(communicator), network_(network),
      gradients_(communicator, map, network.buckets, settings),
      slots_(comm::plan_slots(map.replicas(), map.owned())),
      arrivals_(communicator, gradients_.buckets(), steps_compared), settings_(settings) {
  if (settings_.compression.automatic && communicator.size() > 1) compressing_.trial.emplace();
  find_kinds();
  if (!settings.sharded) return;
  weights_.emplace(communicator, network.buckets, network.training.variables.parameter_bytes);
  shards_.emplace(communicator, network.buckets, *weights_, norm_counts_);
}

void StepExchange::find_kinds() {
  const plan::Plan& plan = network_.training;
  for (const plan::PlanExchange& exchange : plan.exchanges) {
    const graph::Op& op = *plan.graph.nodes()[static_cast<size_t>(exchange.node)].op;
    Made& made = made_.emplace_back(Made{exchange.kind, exchange.bucket});
    if (made.kind == plan::ExchangeKind::norms) {
      made.index = static_cast<int>(norm_counts_.size());
      norm_counts_.push_back(static_cast<size_t>(exchange.in_desc[0].elements()));
    } else if (made.kind == plan::ExchangeKind::parts) {
      CHECK(dynamic_cast<const ops::ExchangeParts*>(&op), "nobody makes the exchange {}",
            op.name());
    } else if (const auto* sum = dynamic_cast<const ops::AllReduceGradients*>(&op)) {
      CHECK(sum->sharded() == settings_.sharded, "the plan's buckets are {}sharded",
            sum->sharded() ? "" : "not ");
    }
  }
}

void StepExchange::add_stages(comm::Communicator& communicator, const split::PartGrid& grid) {
  const std::vector<plan::Variable>& parameters = network_.training.variables.parameters;
  for (const split::SharedParameter& shared : network_.shared) {
    const auto at = std::ranges::find(parameters, shared.name, &plan::Variable::name);
    const int bucket = network_.buckets.bucket_of[static_cast<size_t>(at - parameters.begin())];
    stage_sums_[bucket] = std::make_unique<StageSum>(communicator, grid, shared, *at);
  }
}

void StepExchange::attach(plan::Executor& executor, PartExchange& parts, SliceRanks* slices) {
  executor_ = &executor;
  parts_ = &parts;
  slices_ = slices;
  if (slices_) slices_->plan_norms(network_.training);
  executor.set_exchanges(*this);
}

std::span<float> StepExchange::norms_at(int exchange) const {
  const plan::PlanExchange& norms = network_.training.exchanges[static_cast<size_t>(exchange)];
  return {reinterpret_cast<float*>(executor_->address(norms.out[0])),
          static_cast<size_t>(norms.out_desc[0].elements())};
}

void StepExchange::start(int exchange) {
  const Made& made = made_[static_cast<size_t>(exchange)];
  switch (made.kind) {
    case plan::ExchangeKind::none: break;
    case plan::ExchangeKind::parts: return parts_->start(exchange);
    case plan::ExchangeKind::gradients: return start_sum(made.index);
    case plan::ExchangeKind::norms:
      return slices_ ? slices_->start_norms(exchange, norms_at(exchange))
                     : shards_->start_norms(made.index, norms_at(exchange));
    case plan::ExchangeKind::weights: return shards_->updated(made.index);
  }
}

bool StepExchange::done(int exchange) {
  const Made& made = made_[static_cast<size_t>(exchange)];
  switch (made.kind) {
    case plan::ExchangeKind::none: break;
    case plan::ExchangeKind::parts: return parts_->done(exchange);
    case plan::ExchangeKind::gradients:
      if (servers_) return servers_->arrived(made.index);
      if (!gradients_.arrived(made.index) || (shards_ && !shards_->all_have_read())) return false;
      if (StageSum* const sum = stage_sum(made.index))
        return sum->arrived(gradients_.result(made.index));
      return true;
    case plan::ExchangeKind::norms:
      return slices_ ? slices_->norms_done(exchange) : shards_->norms_done(made.index);
    case plan::ExchangeKind::weights: return shards_->gathered(made.index);
  }
  return true;
}

plan::ExchangeOutput StepExchange::finish(int exchange) {
  const Made& made = made_[static_cast<size_t>(exchange)];
  switch (made.kind) {
    case plan::ExchangeKind::none: break;
    case plan::ExchangeKind::parts: return parts_->finish(exchange);
    case plan::ExchangeKind::gradients: return finish_sum(made.index);
    case plan::ExchangeKind::norms:
      slices_ ? slices_->finish_norms(exchange, norms_at(exchange))
              : shards_->finish_norms(made.index, norms_at(exchange));
      break;
    case plan::ExchangeKind::weights: shards_->gather(made.index); break;
  }
  return {};
}

/// Returns the arena of a slot: the one of any micro-batch that has it.
const void* StepExchange::slot(int number) const {
  const auto of = std::ranges::find(slots_.replicas, number, &comm::SlotPlan::Replica::slot);
  return gradients_.slot(static_cast<int>(of - slots_.replicas.begin()));
}

std::vector<plan::GradientFold> StepExchange::folds() const {
  std::vector<plan::GradientFold> folds;
  for (const auto& [into, from] : slots_.replicas[static_cast<size_t>(local_)].adds)
    folds.push_back({slot(into), slot(from)});
  return folds;
}

void StepExchange::look(const std::byte* gradients) {
  for (int b = 0; b < gradients_.buckets(); ++b)
    noise_->add_micro_batch(local_, b, reinterpret_cast<const float*>(gradients));
}

void StepExchange::look_at_sum(const std::byte* gradients) {
  for (int b = 0; b < gradients_.buckets(); ++b)
    noise_->add_sum(b, reinterpret_cast<const float*>(
                           gradients + gradients_.layout().buckets[static_cast<size_t>(b)].begin));
}

void StepExchange::start_sum(int bucket) {
  if (bad_gradient_.empty())
    bad_gradient_ = nonfinite_gradient(network_.training.variables,
                                       network_.buckets.buckets[static_cast<size_t>(bucket)],
                                       gradients_.slot(local_), communicator_.work());
  if (local_ + 1 == gradients_.map().local_count()) {
    arrivals_.note(bucket);
    if (spans_) bucket_spans_[static_cast<size_t>(bucket)].begin_ns = trace::Spans::now_ns();
  }
  if (noise_) noise_->add_micro_batch(local_, bucket, gradients_.slot(local_));
  gradients_.ready(local_, bucket);
  // A group's gradient must be summed first.
  if (servers_ && servers_->alone() && local_ + 1 == gradients_.map().local_count() &&
      bad_gradient_.empty())
    servers_->push(bucket, gradients_.result(bucket));
}

plan::ExchangeOutput StepExchange::finish_sum(int bucket) {
  if (servers_) {
    servers_->wait(bucket);
    return {.at = reinterpret_cast<const std::byte*>(gradients_.result(bucket)),
            .range = plan::ExchangeOutput::Range{}};  // there is nothing left to update
  }
  StageSum* const stages = stage_sum(bucket);
  const auto begin = comm::ArrivalRecord::Clock::now();
  gradients_.wait(bucket);
  if (!stages || !stages->under_way()) arrivals_.waited(bucket, begin);
  if (shards_) shards_->wait_for_readers();
  if (noise_) noise_->add_sum(bucket, gradients_.result(bucket));
  if (spans_) {
    const BucketSpan& span = bucket_spans_[static_cast<size_t>(bucket)];
    const auto end = gradients_.sum(bucket).operation().completed().time_since_epoch();
    spans_->record(span.name, span.lane, span.begin_ns,
                   std::chrono::duration_cast<std::chrono::nanoseconds>(end).count());
  }
  plan::ExchangeOutput output;
  output.at = reinterpret_cast<const std::byte*>(gradients_.result(bucket));
  if (compensation_.lambda > 0) output.at = compensated(bucket);
  if (stages) output.at = stages->wait(gradients_.result(bucket));
  if (shards_) {
    const exchange::Shard mine = shards_->mine(bucket);
    output.range = plan::ExchangeOutput::Range{mine.begin, mine.end};
  }
  return output;
}

const std::byte* StepExchange::compensated(int number) {
  const exchange::Bucket& bucket = gradients_.layout().buckets[static_cast<size_t>(number)];
  if (compensated_.bytes() == 0) compensated_ = device::Buffer(gradients_.layout().bytes);
  auto* const out = reinterpret_cast<float*>(compensated_.data() + bucket.begin);
  sync::compensate(compensation_, bucket.begin, gradients_.result(number), {out, bucket.floats()});
  return reinterpret_cast<const std::byte*>(out);
}

void StepExchange::set_spans(trace::Spans* spans) {
  spans_ = spans;
  bucket_spans_.clear();
  for (int b = 0; spans && b < gradients_.buckets(); ++b) {
    const std::string& name = gradients_.layout().buckets[static_cast<size_t>(b)].name;
    bucket_spans_.push_back(
        {spans->name("exchange of " + name), spans->lane("exchange of " + name), 0});
  }
}

void StepExchange::measure_noise(const NoiseSettings& settings) {
  CHECK(!compresses(), "a compressed sum is not the mean of the gradients");
  noise_.emplace(communicator_, gradients_.map(), network_.training.variables, gradients_.layout(),
                 settings);
}

void StepExchange::begin_step(int64_t step) {
  if (noise_) noise_->begin_step(step);
  if (!compresses()) return;
  compressing_.step = exchange::compression_at(settings_.compression.phases, step).compresses() &&
                      compressing_.verdict != 0.0;
  const bool dense =
      !compressing_.step || (compressing_.trial && !compressing_.trial->compressed());
  gradients_.begin_step(step, dense);
}

void StepExchange::begin_stage_sums() {
  for (const auto& [bucket, sum] : stage_sums_) {
    if (!gradients_.is_due(bucket)) continue;  // the update has used it
    const auto begin = comm::ArrivalRecord::Clock::now();
    gradients_.look_forward(bucket);
    arrivals_.waited(bucket, begin);
    sum->begin(gradients_.result(bucket));
  }
}

void StepExchange::end_step(plan::Executor& executor) {
  if (!compressing_.trial || !compressing_.step) return;
  executor.finish_update();
  const double codec = gradients_.compression_report().caller_seconds;
  const double spent = codec - compressing_.codec_before;
  compressing_.trial->record(std::max(0.0, blocked_seconds() - compressing_.blocked_before - spent),
                             spent);
  compressing_.codec_before = codec;
  compressing_.blocked_before = blocked_seconds();
  if (!compressing_.trial->complete()) return;
  const exchange::CompressionTrial::Verdict verdict =
      compressing_.trial->decide(communicator_, gradients_.compression_report());
  set_verdict(verdict.pays ? 1 : 0);
  if (communicator_.rank() == 0)
    log::info("compression {}",
              verdict.to_string(to_string(settings_.compression.phases.back().compression)));
}

void StepExchange::set_verdict(double pays) {
  compressing_.verdict = pays;
  compressing_.trial.reset();
}

std::vector<keep::UnsentBucket> StepExchange::unsent() {
  std::vector<keep::UnsentBucket> buckets;
  for (int b = 0; compresses() && b < gradients_.buckets(); ++b)
    if (exchange::BucketSum& sum = gradients_.sum(b); sum.compressed())
      buckets.push_back(
          {&gradients_.layout().buckets[static_cast<size_t>(b)], sum.state_layout(), sum.state()});
  return buckets;
}

void StepExchange::save(keep::SavedRun& saved) {
  std::ranges::move(keep::unsent_tensors(communicator_.rank(), unsent()),
                    std::back_inserter(saved.own));
  if (compressing_.verdict) saved.numbers[kVerdict] = *compressing_.verdict;
  if (!compressing_.trial) return;
  compressing_.trial->combine(communicator_);
  for (int i = 0; const double seconds : compressing_.trial->seconds())
    saved.numbers[trial_number(i++)] = seconds;
}

void StepExchange::restore(const keep::Checkpoint& checkpoint) {
  keep::SavedCompression saved(checkpoint);
  keep::restore_unsent(communicator_, saved, unsent());
  for (int b = 0; compresses() && b < gradients_.buckets(); ++b) gradients_.sum(b).note_restored();
  const std::map<std::string, double>& numbers = checkpoint.info.metrics;
  if (const auto pays = numbers.find(kVerdict); pays != numbers.end()) set_verdict(pays->second);
  if (!compressing_.trial) return;
  std::vector<double> seconds;
  for (int i = 0; i + 1 < compressing_.trial->steps() && numbers.contains(trial_number(i)); ++i)
    seconds.push_back(numbers.at(trial_number(i)));
  compressing_.trial->restore(std::move(seconds));
}

std::string StepExchange::compression_line(int64_t steps) {
  if (!compresses() || steps == 0) return {};
  const comm::CompressionReport now = gradients_.compression_report();
  comm::CompressionReport since = now;
  since -= compressing_.reported;
  compressing_.reported = now;
  return since.runs == 0 ? std::string{}
                         : fmt::format("compression {}: {}",
                                       to_string(settings_.compression.phases.back().compression),
                                       to_string(since, static_cast<uint64_t>(steps)));
}

float* StepExchange::begin(int local_replica) {
  local_ = local_replica;
  return gradients_.slot(local_replica);
}

void StepExchange::end_of_backward() {
  if (shards_) shards_->finish_reading();
  for (int b = 0; servers_ && b < gradients_.buckets(); ++b) {
    gradients_.wait(b);
    if (!servers_->alone()) servers_->push(b, gradients_.result(b));
  }
}

void StepExchange::plan_state(std::byte* state) {
  const bool root = communicator_.rank() == 0;
  const size_t kinds = network_.training.variables.state_kinds.size();
  for (size_t k = 0; k < kinds; ++k) {
    // share() gives the average to all ranks.
    if (network_.training.variables.state_kinds[k] == kAverageState) continue;
    for (int b = 0; b < gradients_.buckets(); ++b) {
      const exchange::Bucket& bucket = gradients_.layout().buckets[static_cast<size_t>(b)];
      std::byte* const at = state + k * network_.training.variables.trained_bytes + bucket.begin;
      comm::CollectiveSpec spec{.name = fmt::format("state {} of {}", k, bucket.name),
                                .kind = comm::Collective::gather,
                                .count = bucket.floats(),
                                .input = at + shards_->mine(b).begin,
                                .output = root ? at : nullptr};
      for (const exchange::Shard& shard : shards_->shards(b))
        spec.parts.push_back({shard.begin / sizeof(float), shard.bytes() / sizeof(float)});
      state_.push_back(communicator_.plan(spec));
    }
  }
}

std::vector<ArenaRange> StepExchange::kept_state() const {
  if (!shards_) return {{0, network_.training.variables.trained_bytes}};
  std::vector<ArenaRange> kept;
  for (int b = 0; b < gradients_.buckets(); ++b) {
    const size_t begin = gradients_.layout().buckets[static_cast<size_t>(b)].begin;
    kept.push_back({begin + shards_->mine(b).begin, begin + shards_->mine(b).end});
  }
  return kept;
}

void StepExchange::share(const std::byte* kept, std::byte* whole) {
  if (!shards_) return (void)std::memcpy(whole, kept, network_.training.variables.trained_bytes);
  for (int b = static_cast<int>(shared_.size()); b < gradients_.buckets(); ++b) {
    const exchange::Bucket& bucket = gradients_.layout().buckets[static_cast<size_t>(b)];
    comm::CollectiveSpec spec{.name = "average of " + bucket.name,
                              .kind = comm::Collective::allgather,
                              .count = bucket.floats(),
                              .input = kept + bucket.begin + shards_->mine(b).begin,
                              .output = whole + bucket.begin};
    for (const exchange::Shard& shard : shards_->shards(b))
      spec.parts.push_back({shard.begin / sizeof(float), shard.bytes() / sizeof(float)});
    shared_.push_back(communicator_.plan(spec));
  }
  for (const auto& gather : shared_) gather->start();
  for (const auto& gather : shared_) gather->wait();
}

void StepExchange::collect_state(std::byte* state) {
  if (!shards_) return;
  if (state_.empty()) plan_state(state);
  for (const auto& gather : state_) gather->start();
  for (const auto& gather : state_) gather->wait();
}

}  // namespace tutti::train
