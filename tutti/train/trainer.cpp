#include "tutti/train/trainer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>

#include "tutti/base/error_type.h"
#include "tutti/base/log.h"
#include "tutti/comm/agree.h"
#include "tutti/data/format/catalog.h"
#include "tutti/data/pipeline.h"
#include "tutti/parallel/average.h"
#include "tutti/plan/executor.h"
#include "tutti/trace/span.h"
#include "tutti/train/checkpoint.h"
#include "tutti/train/evaluator.h"
#include "tutti/train/nonfinite.h"
#include "tutti/train/progress.h"
#include "tutti/train/reporter.h"
#include "tutti/train/resume.h"
#include "tutti/train/resume_check.h"
#include "tutti/train/run_clock.h"
#include "tutti/train/settings.h"
#include "tutti/train/step_exchange.h"
#include "tutti/train/stragglers.h"
#include "tutti/train/weights.h"

namespace tutti {
namespace {

constexpr const char* kCompressionPays =
    "compression_pays";  // of a checkpoint: StepExchange::verdict()

/// Steps between two looks at whether any rank was asked to stop.
constexpr int64_t kStopCheckSteps = 4;

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Sums since the last line of the record.
struct Interval {
  StepTimes times;
  int64_t steps = 0;
  std::vector<double> loss;  ///< of each local replica, over steps

  explicit Interval(int local_replicas) : loss(static_cast<size_t>(local_replicas), 0.0) {}
  /// Over local replicas and steps.
  double mean_loss() const {
    return std::accumulate(loss.begin(), loss.end(), 0.0) /
           static_cast<double>(steps * static_cast<int64_t>(loss.size()));
  }
};

/// run.replicas = 0 means one per rank, but a resumed run has as many as it began with.
RunConfig with_replicas(RunConfig config, const std::optional<Checkpoint>& resumed) {
  if (config.run.replicas == 0 && resumed) config.run.replicas = resumed->info.replicas;
  return config;
}

class Run {
 public:
  explicit Run(const TrainerSpec& spec)
      : spec_(spec), place_(spec.place), comm_(*spec.communicator),
        resumed_(open_resume(comm_, place_)), config_(with_replicas(spec.config, resumed_)),
        replicas_(static_cast<int>(replica_count(config_.run, comm_.size())), comm_.size(),
                  comm_.rank()),
        batch_(batch_sizes(config_.batch, replicas_.replicas())),
        sampler_({static_cast<uint64_t>(config_.run.seed), spec.train->size(), replicas_.replicas(),
                  batch_.local}),
        total_steps_(total_steps(config_.run, sampler_.steps_per_epoch())),
        schedule_(learning_rate_settings(config_, sampler_.steps_per_epoch(), batch_.global)),
        display_({.terminal = spec.terminal && comm_.rank() == 0}),
        interval_(replicas_.local_count()) {}

  RunResult run() {
    compare_with_before();
    build();
    open_record();
    try {
      comm_.barrier();
      clock_.start(before("wall_seconds", 0), before("train_seconds", 0));
      resumed_.reset();
      run_started_ = RunClock::Clock::now();
      log::info("{:.2f} s from start to the first step", unix_now() - spec_.process_started);
      loop();
    } catch (const std::exception& error) {
      record_failure(error);
      throw;
    }
    return result_;
  }

 private:
  // --- building ---

  /// A metric of the checkpoint that this run continues.
  double before(const std::string& name, double otherwise) const {
    if (!resumed_) return otherwise;
    const auto at = resumed_->info.metrics.find(name);
    return at == resumed_->info.metrics.end() ? otherwise : at->second;
  }

  /// All ranks must have the same configuration and data, and a resumed run what the run before it
  /// had.
  void compare_with_before() {
    settings_ = effective_settings(config_, replicas_.replicas(), *spec_.train, *spec_.test);
    comm::agree(comm_, "the configuration", shared_lines(settings_));
    if (!resumed_) return;
    changes_ = check_resume(resumed_->path, resumed_->info, settings_, spec_.resume_anyway);
    const std::string there = resumed_->info.settings.at("run.threads"),
                      here = settings_.at("run.threads");
    if (there != here)
      log::warn(
          "run.threads was {} and is now {}: sums are taken in another order, so the last bits "
          "will differ",
          there, here);
  }

  /// The choices that this run must keep to. Where something else changed they are advice: the bits
  /// differ anyway, and a changed network may not have what the old one used.
  Choices choices_before() const {
    Choices choices = Choices::parse(resumed_->info.plan_choices);
    if (!spec_.resume_anyway.empty()) choices.make_advice();
    return choices;
  }

  void build() {
    if (!config_.comm.shape.empty()) comm_.set_shape(comm::LinkShape::parse(config_.comm.shape));
    NetworkSpec spec = network_spec(config_, *spec_.train, batch_.local);
    if (resumed_)
      spec.choices = choices_before();
    else if (!config_.plan.choices_from.empty())
      spec.choices = Choices::parse(comm::decide(comm_, "reading plan.choices_from", [&] {
        return verify_checkpoint(checkpoint_at(config_.plan.choices_from, "plan.choices_from"))
            .plan_choices;
      }));
    spec.tuning_file = spec_.tuning_file;
    network_ = compile_network(spec, *spec_.backend, comm_);
    constexpr int64_t kSteps = 256;
    exchange_.emplace(comm_, replicas_, *network_, exchange_settings(config_.comm),
                      static_cast<int>(std::min(config_.run.log_every, kSteps)));
    weights_.emplace(network_->training.variables, replicas_.local_count(), exchange_->parameters(),
                     exchange_->fills_parameters());
    weights_->initialise(static_cast<uint64_t>(config_.run.seed));
    averaged_ = Buffer(network_->training.variables.statistic_bytes);
    if (resumed_) {
      restore(*resumed_, replicas_, exchange_->kept_state(), *weights_);
      exchange_->restore_compression(resumed_->state);
      if (resumed_->info.metrics.contains(kCompressionPays))
        exchange_->set_verdict(resumed_->info.metrics.at(kCompressionPays));
      go_on_from(*resumed_);
    }

    executor_.emplace(network_->training, *spec_.backend);
    average_.emplace(
        comm_, replicas_,
        std::max<size_t>(network_->training.variables.statistic_bytes / sizeof(float), 1));
    executor_->bind(kParameters, weights_->parameters());
    executor_->bind(kState, weights_->state());
    executor_->set_scalar(network_->gradient_scale,
                          1.0f / static_cast<float>(replicas_.replicas()));
    stragglers_.emplace(comm_, exchange_->arrivals());
    exchange_->attach(*executor_, [this](int local, int bucket) { gradient_ready(local, bucket); });
    comm_.barrier();  // parameters that another rank has filled are there
    executor_->pack();

    const data::ChannelStatistics& own = data::known_dataset(config_.data.dataset).normalization;
    training_images_.emplace(augment_spec(config_, own), spec_.train->shape(),
                             network_->training.desc(network_->images));
    evaluation_images_.emplace(augment_spec(config_, own), spec_.test->shape(),
                               network_->evaluation.desc(network_->evaluation_images));
    evaluator_.emplace(network_->evaluation, network_->evaluation_images,
                       network_->evaluation_logits, *spec_.backend, *spec_.test,
                       *evaluation_images_);
    evaluator_->bind(weights_->parameters(), averaged_.data());

    const int64_t per_epoch = sampler_.steps_per_epoch();
    data::PipelineSpec pipeline;
    pipeline.threads = static_cast<int>(config_.data.readers);
    pipeline.slots = static_cast<int>(config_.data.prefetch);
    auto order = std::make_unique<data::TrainingOrder>(
        sampler_, data::TrainingStart{step_ / per_epoch, step_ % per_epoch, replicas_.owned().lo,
                                      replicas_.local_count()});
    pipeline_.emplace(*spec_.train, *training_images_, std::move(order), pipeline);
    if (config_.run.profile) {
      spans_.emplace();
      executor_->set_spans(&*spans_);
      if (comm_.size() > 1) exchange_->set_spans(&*spans_);
    }
    log::debug("{}", network_->training.to_string());
  }

  /// Where the run before stood. The best checkpoint counts where it is of this run's past: not of
  /// steps that are computed again, and not lost since.
  void go_on_from(const Checkpoint& checkpoint) {
    step_ = left_.last = checkpoint.info.step;
    result_.accuracy = before("accuracy", kNotMeasured);
    result_.loss = before("loss", kNotMeasured);
    target_reached_ = reaches_target(result_.accuracy);
    const std::string best =
        comm::decide(comm_, "looking for the best checkpoint", [&]() -> std::string {
          const auto path = find_best(place_.checkpoints);
          if (!path) return "";
          const CheckpointInfo info = open_checkpoint(*path).info;
          const auto accuracy = info.metrics.find("accuracy");
          if (info.step > step_ || accuracy == info.metrics.end()) return "";
          return fmt::format("{} {}", info.step, accuracy->second);
        });
    if (best.empty()) return;
    left_.best = std::stoll(best);
    left_.best_accuracy = std::stod(best.substr(best.find(' ')));
  }

  // --- the loop ---

  bool first() const { return comm_.rank() == 0; }
  double epochs_done() const {
    return static_cast<double>(step_) / static_cast<double>(sampler_.steps_per_epoch());
  }

  void loop() {
    const int64_t per_epoch = sampler_.steps_per_epoch();
    epoch_partial_ = step_ % per_epoch != 0;
    first_step_ = step_;
    if (target_reached_)
      return stop(RunStatus::done, fmt::format("target reached before step {}", step_));
    while (step_ < total_steps_) {
      train_step();
      const bool last = step_ == total_steps_;
      if (step_ % config_.run.log_every == 0 || last || step_ % per_epoch == 0) log_steps();
      if (step_ % per_epoch == 0) end_epoch();
      bool best = false;
      if (evaluation_due() || last) best = evaluate();
      const bool asked = stop_asked();
      const bool ends = last || target_reached_ || asked;
      if (checkpoint_due() || best || ends) write_checkpoint_now(best, ends);
      if (target_reached_) return stop(RunStatus::done, "target reached");
      if (asked && !last)
        return stop(
            RunStatus::requeue,
            fmt::format("stopped by signal {} with a checkpoint at step {}", asked_by_, step_));
    }
    if (config_.run.target > 0 && !target_reached_)
      return stop(RunStatus::target_missed,
                  fmt::format("accuracy {:.4f} after {:.2f} epochs, the target was {}",
                              result_.accuracy, epochs_done(), config_.run.target));
    stop(RunStatus::done, fmt::format("{} steps", step_));
  }

  void train_step() {
    const auto began = RunClock::Clock::now();
    StepTimes times;
    const double exposed_before = exchange_->exposed_seconds();
    StepInfo info{.seed = static_cast<uint64_t>(config_.run.seed),
                  .step = step_,
                  .replica = 0,
                  .batch = batch_.local};
    double computing = 0;
    const auto compute = [&](auto&& work) {
      const auto start = RunClock::Clock::now();
      work();
      computing += RunClock::since(start);
    };
    const ScopedSpan step_span(spans(), span_name("step"), span_lane());
    exchange_->begin_step(step_);
    for (int local = 0; local < replicas_.local_count(); ++local) {
      const data::Batch& batch = next_batch();
      times.data_wait += pipeline_->last_wait_seconds();
      info.replica = replicas_.replica(local);
      executor_->bind_input(network_->images, batch.images);
      executor_->bind_input(network_->labels, batch.labels);
      executor_->bind(kStatistics, weights_->statistics(local));
      executor_->bind(kGradients, exchange_->begin(local));
      compute([&] { executor_->run(info); });
      const float loss = *static_cast<const float*>(executor_->result(network_->loss));
      if (!std::isfinite(loss)) report_nonfinite(info, batch, loss);
      if (!bad_gradient_.empty())
        throw NumericError(
            fmt::format("{} at step {}, replica {}, although the loss is {}; {}; lower "
                        "optimizer.lr or look at the data",
                        bad_gradient_, info.step, info.replica, loss, what_is_left()));
      interval_.loss[static_cast<size_t>(local)] += loss;
    }
    exchange_->end_of_backward();
    compute([&] {
      executor_->set_scalar(network_->lr, static_cast<float>(schedule_.rate(step_)));
      executor_->update(info);
      exchange_->end_step(*executor_);
    });
    times.comm_exposed = exchange_->exposed_seconds() - exposed_before;
    times.compute = computing - times.comm_exposed;
    times.total = RunClock::since(began);
    interval_.times += times;
    epoch_times_ += times;
    ++interval_.steps;
    ++epoch_steps_;
    ++step_;
    if (spec_.terminal && first()) display_.step(progress(interval_.mean_loss()));
  }

  void gradient_ready(int local, int bucket) {
    if (bad_gradient_.empty())
      bad_gradient_ = nonfinite_gradient(network_->training.variables,
                                         network_->buckets.buckets[static_cast<size_t>(bucket)],
                                         exchange_->gradients().slot(local));
  }

  const data::Batch& next_batch() {
    const ScopedSpan span(spans(), span_name("wait for data"), span_lane());
    return pipeline_->next();
  }

  Spans* spans() { return spans_ ? &*spans_ : nullptr; }
  Spans::Name span_name(const char* text) { return spans_ ? spans_->name(text) : Spans::Name{}; }
  int span_lane() { return spans_ ? spans_->lane("trainer") : 0; }

  [[noreturn]] void report_nonfinite(const StepInfo& info, const data::Batch& batch, float loss) {
    const std::string where =
        first_nonfinite({.model = model_spec(config_, *spec_.train, batch_.local),
                         .weights = &*weights_,
                         .images = batch.images,
                         .images_desc = network_->training.desc(network_->images),
                         .layout = network_->training.layout},
                        *spec_.backend);
    throw NumericError(fmt::format(
        "the loss is {} at step {}, replica {}: {}; {}; lower optimizer.lr or look at "
        "the data",
        std::isnan(loss) ? "NaN" : "infinite", info.step, info.replica, where, what_is_left()));
  }

  std::string what_is_left() const {
    return left_.last < 0
               ? "there is no checkpoint yet"
               : fmt::format("the last checkpoint, of step {}, is from before it", left_.last);
  }

  bool stop_asked() {
    if (step_ % kStopCheckSteps != 0) return false;
    double asked = spec_.stop_requested ? spec_.stop_requested() : 0;
    if (comm_.size() > 1) {
      std::vector<double> all = comm_.allgather_value(asked);
      asked = *std::ranges::max_element(all);
    }
    asked_by_ = static_cast<int>(asked);
    return asked != 0;
  }

  bool every_epochs(double epochs) const {
    if (epochs <= 0) return false;
    const auto steps = std::max<int64_t>(
        1, std::llround(epochs * static_cast<double>(sampler_.steps_per_epoch())));
    return step_ % steps == 0;
  }
  bool evaluation_due() const { return every_epochs(config_.run.eval_every); }
  bool checkpoint_due() const {
    return (config_.checkpoint.every_steps > 0 && step_ % config_.checkpoint.every_steps == 0) ||
           every_epochs(static_cast<double>(config_.checkpoint.every_epochs));
  }

  // --- reporting ---

  /// Mean over all replicas, one value of each local one.
  double mean_over_replicas(std::span<const double> local) {
    return sum_over_replicas(comm_, replicas_, local, 1)[0] / replicas_.replicas();
  }

  ProgressState progress(double loss) const {
    const double steps = static_cast<double>(std::max<int64_t>(interval_.steps, 1));
    ProgressState state;
    state.elapsed_s = RunClock::since(run_started_);
    state.first_step = first_step_;
    state.step = step_;
    state.steps = total_steps_;
    state.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1;
    state.epochs = (total_steps_ + sampler_.steps_per_epoch() - 1) / sampler_.steps_per_epoch();
    state.loss = loss;
    if (std::isfinite(result_.accuracy)) state.accuracy = result_.accuracy;
    state.learning_rate = schedule_.rate(step_ - 1);
    state.samples_per_s = steps * static_cast<double>(batch_.global) / interval_.times.total;
    state.step_ms = interval_.times.total / steps * 1e3;
    state.exposed_communication_ms = interval_.times.comm_exposed / steps * 1e3;
    state.input_stall_ms = interval_.times.data_wait / steps * 1e3;
    return state;
  }

  void log_steps() {
    if (interval_.steps == 0) return;
    const double steps = static_cast<double>(interval_.steps);
    const double loss = mean_over_replicas(interval_.loss) / steps;
    epoch_loss_ += loss * steps;
    const std::vector<double> memory = comm_.allgather_value(peak_memory_bytes());
    if (first()) {
      const StepTimes& t = interval_.times;
      StepRecord line{.epoch = (step_ - 1) / sampler_.steps_per_epoch() + 1,
                      .step = step_,
                      .loss = loss,
                      .lr = schedule_.rate(step_ - 1),
                      .samples_per_s = steps * static_cast<double>(batch_.global) / t.total,
                      .step_ms = t.total / steps * 1e3,
                      .compute_ms = t.compute / steps * 1e3,
                      .comm_exposed_ms = t.comm_exposed / steps * 1e3,
                      .data_wait_ms = t.data_wait / steps * 1e3,
                      .other_ms = t.other() / steps * 1e3,
                      .memory_bytes = *std::ranges::max_element(memory)};
      reporter_->add(line);
      display_.report(progress(loss));
    }
    stragglers_->report(step_, first() ? &reporter_->record() : nullptr);
    interval_ = Interval(replicas_.local_count());
  }

  void end_epoch() {
    report_compression();
    if (first()) {
      const auto per_epoch = static_cast<double>(sampler_.steps_per_epoch());
      EpochRecord line{.epoch = step_ / sampler_.steps_per_epoch(),
                       .step = step_,
                       .seconds = epoch_times_.total,
                       .train_loss = epoch_partial_ ? kNotMeasured : epoch_loss_ / per_epoch,
                       .samples_per_s = epoch_partial_
                                            ? kNotMeasured
                                            : per_epoch * static_cast<double>(batch_.global) /
                                                  epoch_times_.total,
                       .compute_seconds = epoch_times_.compute,
                       .comm_exposed_seconds = epoch_times_.comm_exposed,
                       .data_wait_seconds = epoch_times_.data_wait,
                       .other_seconds = epoch_times_.other(),
                       .partial = epoch_partial_};
      reporter_->add(line);
    }
    epoch_times_ = {};
    epoch_loss_ = 0;
    epoch_partial_ = false;
  }

  void report_compression() {
    const std::string line = exchange_->compression_line(std::exchange(epoch_steps_, 0));
    if (first() && !line.empty()) log::info("{}", line);
  }

  void average_statistics() {
    const size_t bytes = network_->training.variables.statistic_bytes;
    const std::span<const float> mean = average_->average([&](int local, std::span<float> place) {
      std::memcpy(place.data(), weights_->statistics(local), bytes);
    });
    std::memcpy(averaged_.data(), mean.data(), bytes);
  }

  bool reaches_target(double accuracy) const {
    return config_.run.target > 0 && accuracy >= config_.run.target;
  }

  /// Whether these weights are to be kept as the best so far.
  bool evaluate() {
    const auto began = RunClock::Clock::now();
    const double train_seconds = clock_.train();
    const ScopedSpan span(spans(), span_name("evaluate"), span_lane());
    executor_->settle();
    average_statistics();
    const ClassifierQuality local =
        evaluator_->run(data::evaluation_range(spec_.test->size(), comm_.rank(), comm_.size()),
                        static_cast<int>(config_.data.readers));
    double sums[] = {static_cast<double>(local.samples), static_cast<double>(local.correct),
                     local.cross_entropy};
    comm_.sum(sums);
    result_.accuracy = sums[1] / sums[0];
    result_.loss = sums[2] / sums[0];
    const double seconds = RunClock::since(began);
    clock_.add_pause(seconds);
    evaluation_seconds_ += seconds;
    target_reached_ = reaches_target(result_.accuracy);
    const bool best = config_.checkpoint.best && !(result_.accuracy <= left_.best_accuracy);
    if (!first()) return best;
    EvalRecord line{.epoch = epochs_done(),
                    .step = step_,
                    .samples = static_cast<int64_t>(sums[0]),
                    .accuracy = result_.accuracy,
                    .loss = result_.loss,
                    .seconds = seconds,
                    .wall_seconds = clock_.wall(),
                    .train_seconds = train_seconds};
    reporter_->add(line);
    display_.note(
        fmt::format("epoch {:.2f}: test accuracy {:.2f} %, loss {:.4f} ({} samples in {:.1f} s)",
                    epochs_done(), result_.accuracy * 100, result_.loss, line.samples, seconds));
    if (target_reached_)
      reporter_->record().append(TargetReached{.epoch = epochs_done(),
                                               .step = step_,
                                               .wall_seconds = line.wall_seconds,
                                               .train_seconds = train_seconds,
                                               .value = result_.accuracy});
    return best;
  }

  // --- checkpoints ---

  CheckpointInfo info_now() const {
    CheckpointInfo info{
        .step = step_,
        .epoch = step_ / sampler_.steps_per_epoch(),
        .epoch_position = step_ % sampler_.steps_per_epoch(),
        .seed = static_cast<uint64_t>(config_.run.seed),
        .replicas = replicas_.replicas(),
        .ranks = comm_.size(),
        .precision = std::string(to_string(config_.run.precision)),
        .plan_choices = network_->training.options.choices.to_string(),
        .config = spec_.resolved_config,
        .run_id = place_.run_id,
        .optimizer = std::string(to_string(config_.optimizer.name)),
        .state_kinds = network_->training.variables.state_kinds,
        .settings = settings_,
        .metrics = {{"wall_seconds", clock_.wall()}, {"train_seconds", clock_.train()}}};
    if (std::isfinite(result_.accuracy)) info.metrics["accuracy"] = result_.accuracy;
    if (std::isfinite(result_.loss)) info.metrics["loss"] = result_.loss;
    if (exchange_->verdict()) info.metrics[kCompressionPays] = *exchange_->verdict();
    return info;
  }

  /// Rank 0's part. Returns the path.
  std::string write_files(const std::vector<NamedTensor>& statistics,
                          const std::vector<NamedTensor>& compression, bool best) {
    const std::vector<NamedTensor> model = weights_->export_model(averaged_.data()),
                                   state = weights_->export_state();
    CheckpointContent content{.info = info_now(), .weights = {}, .state = {}, .best = best};
    for (const NamedTensor& tensor : model) content.weights.push_back(tensor.ref());
    for (const auto* list : {&state, &statistics, &compression})
      for (const NamedTensor& tensor : *list) content.state.push_back(tensor.ref());
    return write_checkpoint(place_.checkpoints, content, static_cast<int>(config_.checkpoint.keep))
        .string();
  }

  /// `best`: of the best evaluation so far. Where the run does not end here, one that cannot be
  /// written costs a warning: the earlier ones are valid, and the next may find space.
  void write_checkpoint_now(bool best, bool ends) {
    const auto began = RunClock::Clock::now();
    const ScopedSpan span(spans(), span_name("checkpoint"), span_lane());
    executor_->settle();
    average_statistics();
    exchange_->collect_state(weights_->state());
    const std::vector<NamedTensor> statistics = gather_statistics(*weights_, replicas_, comm_),
                                   compression = exchange_->collect_compression();
    together_ = true;
    const std::string path = comm::decide(comm_, "writing a checkpoint", [&]() -> std::string {
      try {
        return write_files(statistics, compression, best);
      } catch (const IoError& error) {
        if (ends) throw IoError(fmt::format("{}; {}", error.what(), what_is_left()));
        log::warn("no checkpoint of step {}: {}; {}; training goes on to the next one", step_,
                  error.what(), what_is_left());
        return "";
      }
    });
    together_ = false;
    const double seconds = RunClock::since(began);
    clock_.add_pause(seconds);
    checkpoint_seconds_ += seconds;
    if (path.empty()) return;
    left_.last = step_;
    if (best) {
      left_.best = step_;
      left_.best_accuracy = result_.accuracy;
    }
    if (!first()) return;
    int64_t bytes = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      const auto size = entry.file_size(error);
      if (error) break;
      bytes += static_cast<int64_t>(size);
    }
    if (error) throw IoError(fmt::format("{}: cannot be read: {}", path, error.message()));
    reporter_->record().append(CheckpointRecord{
        .epoch = epochs_done(), .step = step_, .path = path, .bytes = bytes, .seconds = seconds});
  }

  // --- start and end of the record ---

  void open_record() {
    // From here on a signal is a wish on every rank, before the folder holds a run: "nothing has
    // changed" would no longer be so.
    if (spec_.stop_requested) (void)spec_.stop_requested();
    comm_.barrier();
    std::vector<std::string> hosts;
    for (int r = 0; r < comm_.size(); ++r)
      if (std::ranges::find(hosts, comm_.host(r)) == hosts.end()) hosts.push_back(comm_.host(r));
    if (!first()) return;
    RunStart about = spec_.about;
    about.time = unix_now();
    about.model = config_.model.name;
    about.dataset = config_.data.dataset;
    about.precision = to_string(config_.run.precision);
    about.ranks = comm_.size();
    about.replicas = replicas_.replicas();
    about.local_batch = batch_.local;
    about.global_batch = batch_.global;
    about.train_samples = sampler_.steps_per_epoch() * batch_.global;
    about.threads_per_rank = static_cast<int>(config_.run.threads);
    about.hosts = hosts;
    about.oversubscribed = comm_.local_size() * about.threads_per_rank > about.cores_per_host &&
                           about.cores_per_host > 0;
    about.seed = static_cast<uint64_t>(config_.run.seed);
    about.parameters = network_->training.graph.parameter_count();
    about.flop_per_sample = network_->training.graph.flop() / static_cast<double>(batch_.local);
    about.synchronisation = "every step";
    about.plan_hash = fmt::format("{:016x}", network_->training.hash());
    about.resume_step = step_;
    about.changes = changes_;
    if (config_.run.target > 0)
      about.target =
          Target{.metric = "accuracy", .value = config_.run.target, .higher_is_better = true};
    reporter_.emplace(place_, about, spec_.resolved_config);
    log_places(place_);
    log::info("{} on {}: {} parameters, {}, layout {}", about.model, about.dataset,
              about.parameters, about.precision, network_->training.layout);
    log::info("{} replica(s) of {} samples on {} rank(s) x {} thread(s), {} buckets by {}",
              about.replicas, about.local_batch, about.ranks, about.threads_per_rank,
              network_->training.buckets.size(), comm_.transport());
    if (about.oversubscribed)
      log::warn("{} ranks x {} threads share {} cores: speeds will not be those of separate cores",
                comm_.local_size(), about.threads_per_rank, about.cores_per_host);
  }

  void stop(RunStatus status, const std::string& reason) {
    result_.status = status;
    result_.steps = step_;
    display_.clear();
    report_compression();
    if (spans_)
      spans_->write(
          (std::filesystem::path(place_.directory) / fmt::format("trace.rank{}.json", comm_.rank()))
              .string(),
          comm_.rank());
    if (!first()) return;
    reporter_->record().append(stop_event(status, reason));
    log::info("{}: {} ({:.1f} s training, {:.1f} s in all)", name(status), reason, clock_.train(),
              clock_.wall());
    log_next(place_, left_, spec_.next, status);
  }

  RunStop stop_event(RunStatus status, const std::string& reason) const {
    return {.status = status,
            .reason = reason,
            .error = {},
            .epochs = epochs_done(),
            .steps = step_,
            .samples = step_ * batch_.global,
            .wall_seconds = clock_.wall(),
            .train_seconds = clock_.train(),
            .eval_seconds = evaluation_seconds_,
            .checkpoint_seconds = checkpoint_seconds_};
  }

  /// The rank that sees the cause writes the record's last line, whichever it is: rank 0 may be
  /// ended before it hears of it. Errors of communication have their cause elsewhere, so of those
  /// rank 0's is enough.
  void record_failure(const std::exception& error) {
    display_.clear();
    const bool alone = !together_ && dynamic_cast<const CommError*>(&error) == nullptr;
    if (!first() && !alone) return;
    const std::string reason =
        comm_.size() == 1 ? error.what() : fmt::format("{}: {}", comm_.who(), error.what());
    RunStop event = stop_event(RunStatus::failed, reason);
    event.error = name(type_of(error));
    RunRecord::append_failure((std::filesystem::path(place_.directory) / kRecordFile).string(),
                              std::move(event));
  }

  const TrainerSpec& spec_;
  const RunPlace& place_;
  comm::Communicator& comm_;
  std::optional<Checkpoint> resumed_;  // until the first step
  const RunConfig config_;
  const ReplicaMap replicas_;
  const BatchSizes batch_;
  const data::Sampler sampler_;
  const int64_t total_steps_;
  const LearningRateSchedule schedule_;

  std::unique_ptr<Network> network_;
  std::optional<Weights> weights_;
  Buffer averaged_;  // batch-norm statistics over all replicas, for evaluation and checkpoints
  std::optional<Spans> spans_;  // with run.profile
  std::optional<Executor> executor_;
  std::optional<StepExchange> exchange_;
  std::optional<ReplicaAverage> average_;
  std::optional<Stragglers> stragglers_;
  std::optional<data::Augment> training_images_, evaluation_images_;
  std::optional<Evaluator> evaluator_;
  std::optional<data::Pipeline> pipeline_;
  std::optional<Reporter> reporter_;  // rank 0
  ProgressDisplay display_;
  RunClock clock_;
  RunClock::Clock::time_point run_started_;

  int64_t step_ = 0, first_step_ = 0, epoch_steps_ = 0;
  RunSettings settings_;              // what a resume compares
  std::vector<std::string> changes_;  // of this resume
  LeftCheckpoints left_;
  bool together_ = false;     // an error now is thrown by all ranks: one of them records it
  std::string bad_gradient_;  // the first one of the step that is not finite
  Interval interval_;
  StepTimes epoch_times_;
  double epoch_loss_ = 0, evaluation_seconds_ = 0, checkpoint_seconds_ = 0;
  bool epoch_partial_ = false, target_reached_ = false;
  int asked_by_ = 0;
  RunResult result_;
};

}  // namespace

RunResult train(const TrainerSpec& spec) { return Run(spec).run(); }

}  // namespace tutti
