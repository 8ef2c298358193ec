#include "tutti/train/loop/trainer_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/keep/rank_file.h"
#include "tutti/train/loop/resume.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/rounds/replay_clock.h"
#include "tutti/train/rounds/server_orders.h"
#include "tutti/train/settings/data_shards.h"
#include "tutti/train/settings/idle_keys.h"
#include "tutti/train/settings/resume_check.h"
#include "tutti/train/settings/server_settings.h"
#include "tutti/train/settings/settings.h"
#include "tutti/train/settings/slow_rank.h"
#include "tutti/train/step/step_settings.h"

namespace tutti {
namespace {

/// run.replicas = 0 means one per rank, but a resumed run has as many as it began with.
RunConfig with_replicas(RunConfig config, const std::optional<Checkpoint>& resumed) {
  if (config.run.replicas == 0 && resumed) config.run.replicas = replicas_of(resumed->info);
  return config;
}

}  // namespace

TrainerRun::TrainerRun(const TrainerSpec& spec)
    : spec_(spec), place_(spec.place), comm_(*spec.communicator),
      resumed_(open_resume(comm_, place_)), config_(with_replicas(spec.config, resumed_)),
      grid_(part_grid(config_.parallel, comm_.size(), comm_.rank())),
      devices_(static_cast<int>(replica_count(config_.run, grid_.groups()))),
      gradients_(static_cast<int>(gradients_of_step(config_, devices_))),
      replicas_(has_clock() ? gradients_ : devices_, grid_.groups(), grid_.group()),
      workers_(workers_of(replicas_, grid_, comm_.size(), comm_.rank())),
      accumulate_(static_cast<int>(config_.batch.accumulate)), turns_(workers_.times(accumulate_)),
      batch_(batch_sizes(config_.batch, gradients_)),
      sampler_({.seed = static_cast<uint64_t>(config_.run.seed),
                .size = spec.data.train->size(),
                .replicas = gradients_ * accumulate_,
                .local_batch = batch_.local,
                .node_of = nodes_of_turns(
                    config_, [this](int rank) { return comm_.node(rank); }, grid_, replicas_),
                .file_samples = samples_of_files(config_, *spec.data.train),
                .strict = config_.data.strict,
                .spacing = spec.data.train->spacing(),
                .anywhere = config_.data.windows == TextWindows::random}),
      total_steps_(total_steps(config_.run, sampler_.steps_per_epoch())),
      schedule_(learning_rate_settings(config_, sampler_.steps_per_epoch(), batch_.global)),
      goal_(goal_of(config_, model_spec(config_, *spec.data.train, batch_.local))),
      patience_(*goal_.metric, config_.run.min_improvement),
      display_({.terminal = spec.terminal && comm_.rank() == 0}), interval_(turns_.local_count()) {}

void TrainerRun::compare_with_before() {
  settings_ = effective_settings(config_, devices_, spec_.data);
  add_shards(sampler_.spec().node_of, sampler_.by_files(), settings_);
  if (has_clock() &&
      rounds_kind(config_, devices_, replicas_.replicas(), true) == RoundsKind::served_replay)
    settings_[kOrderMachine] = fmt::format("{} ({:016x}), buckets of {} bytes", spec_.machine->name,
                                           spec_.machine->content, clock_bucket_bytes(config_));
  comm::agree(comm_, "the configuration", shared_lines(settings_));
  if (!resumed_) return;
  changes_ = check_resume(resumed_->path, resumed_->info, settings_, spec_.resume_anyway);
  const std::string there = resumed_->info.settings.at("run.threads"),
                    here = settings_.at("run.threads");
  if (there != here)
    log::warn_alike(
        "run.threads was {} and is now {}: sums are taken in another order, so the last bits "
        "will differ",
        there, here);
}

Choices TrainerRun::choices_before() const {
  Choices choices = Choices::parse(resumed_->info.plan_choices);
  if (!spec_.resume_anyway.empty()) choices.make_advice();
  return choices;
}

void TrainerRun::build() {
  check_served_job(config_, devices_, comm_.size(), has_clock() ? &*spec_.machine : nullptr);
  const std::optional<ServerSettings> served = served_settings(config_, devices_);
  if (served && !has_clock() && first() &&
      rounds_kind(config_, devices_, replicas_.replicas(), false) == RoundsKind::every_step)
    log::info("sync.scheme = \"{}\" is run as step: without --machine no servers are replayed{}",
              config_.sync.scheme, served->servers > 1 ? ", and sync.servers says nothing" : "");
  if (first()) warn_of_idle_keys(config_, model_spec(config_, *spec_.data.train, batch_.local));
  build_step();
  build_meetings();
  build_data();
  if (config_.run.profile) {
    spans_.emplace();
    training_->executor().set_spans(&*spans_);
    if (comm_.size() > 1) exchange().set_spans(&*spans_);
  }
  log::debug("{}", network().training.to_string());
}

void TrainerRun::build_step() {
  if (!config_.comm.shape.empty()) comm_.set_shape(comm::LinkShape::parse(config_.comm.shape));
  NetworkSpec spec = network_spec(config_, *spec_.data.train, batch_.local);
  if (resumed_)
    spec.choices = choices_before();
  else if (!config_.plan.choices_from.empty())
    spec.choices = Choices::parse(
        comm::decide(comm_, "reading plan.choices_from",
                     [&] {
                       return verify_checkpoint(
                                  checkpoint_at(config_.plan.choices_from, "plan.choices_from"))
                           .plan_choices;
                     }),
        Choices::Of::another_run);
  spec.tuning_file = spec_.tuning_file;
  constexpr int64_t kSteps = 256;
  TrainingStepSpec step = step_spec(config_, std::move(spec), replicas_, grid_, has_clock());
  step.seed = static_cast<uint64_t>(config_.run.seed);
  step.noise = measured_noise();
  step.steps_compared = static_cast<int>(std::min(config_.run.log_every, kSteps));
  training_.emplace(step, *spec_.backend, comm_);
  if (spec_.job && first())
    tell_choices(*spec_.job, comm_.size(), network().training.options.choices);
  if (needs_rank_files())
    comm::on_each(comm_, "looking for the run's folder", [&] {
      std::error_code none;
      if (!std::filesystem::is_directory(place_.directory, none))
        throw IoError(fmt::format(
            "{}: {} does not see the run's folder, where each rank writes its part of a "
            "checkpoint: run.output_dir must be on a file system that all hosts share",
            place_.directory, comm_.who()));
    });
  if (!resumed_ && !config_.model.weights.empty())
    give_weights(comm_, {config_.model.weights, config_.model.weights_except},
                 training_->weights());
  rounds_ = make_rounds(rounds_spec());
  if (resumed_) {
    restore(*resumed_, with_statistics(), grid_.parts(), exchange().kept_state(),
            training_->weights());
    SavedCompression saved(*resumed_);
    exchange().restore_compression(saved);
    if (first() && config_.comm.compression == "none" &&
        std::ranges::any_of(saved.names(0), comm::is_piece))
      log::warn(
          "what compression had not sent is lost: this run goes on from a compressed one and has "
          "comm.compression = \"none\"");
    if (resumed_->info.metrics.contains(kCompressionPays))
      exchange().set_verdict(resumed_->info.metrics.at(kCompressionPays));
    go_on_from(*resumed_);
  }
  restore_noise(resumed_ ? resumed_->info.metrics : std::map<std::string, double>{});
  rounds_->start(resumed_ ? &*resumed_ : nullptr, step_);
  virtual_before_ = rounds_->virtual_seconds().value_or(0);
}

RoundsSpec TrainerRun::rounds_spec() {
  return {.config = config_,
          .backend = *spec_.backend,
          .step = *training_,
          .workers = comm_,
          .job = spec_.job,
          .machine = has_clock() ? &*spec_.machine : nullptr,
          .grid = grid_,
          .replicas = replicas_,
          .devices = devices_,
          .steps_per_epoch = sampler_.steps_per_epoch(),
          .dependent_batches = spec_.data.canvases != nullptr,
          .rate = [this](int64_t step) { return learning_rate(step); },
          .comes = [this](int64_t step, int replica) { note_samples(step, replica); }};
}

void TrainerRun::build_meetings() {
  const size_t statistics = network().training.variables.statistic_bytes;
  averaged_ = Buffer(statistics);
  average_.emplace(alike(), with_statistics(), std::max<size_t>(statistics / sizeof(float), 1));
  stragglers_.emplace(exchange().communicator(), exchange().arrivals());
  if (!config_.run.slow.empty() || config_.run.slow_sigma > 0)
    slow_.emplace(config_.run, comm_.rank());
  for (const SlowEntry& entry : parse_slow(config_.run))
    if (entry.rank >= comm_.size())
      log::warn_alike("run.slow names rank {}, which this job does not have", entry.rank);
  if (comm_.size() > 1)
    stop_vote_ = comm_.plan({.name = "was anyone asked to stop",
                             .kind = comm::Collective::allreduce,
                             .element = comm::Element::i32,
                             .op = comm::ReduceOp::max,
                             .count = 1,
                             .output = &stop_signal_,
                             .algorithm = "recursive_doubling"});
}

void TrainerRun::build_data() {
  if (config_.schedule.name == ScheduleKind::plateau) plateau_.emplace(*goal_.metric, config_);
  if (resumed_) {
    patience_.restore(kPatience, resumed_->info.metrics);
    if (plateau_) plateau_->restore(resumed_->info.metrics);
  }
  training_batch_.emplace(sample_writer(config_, *spec_.data.train, network().batch()));
  evaluation_batch_.emplace(
      sample_writer(config_, spec_.data.judge(), network().evaluation.batch()));
  for (const std::string& sentence :
       unit_sentences(model_spec(config_, *spec_.data.train, batch_.local)))
    if (first()) log::info("{}", sentence);
  loss_batch_ = loss_writer(config_, spec_.data.judge(), network().evaluation, goal_);
  evaluator_.emplace(Evaluated{.network = network().evaluation,
                               .backend = *spec_.backend,
                               .communicator = comm_,
                               .dataset = spec_.data.judge(),
                               .writer = *evaluation_batch_,
                               .losses = loss_batch_ ? &*loss_batch_ : nullptr},
                     goal_.metrics);
  if (training_->weights().average() || rounds_->has_model())
    shown_ = Buffer(network().training.variables.parameter_bytes);
  evaluator_->bind({.parameters = shown_weights(),
                    .tables = training_->weights().tables(),
                    .statistics = averaged_.data()});
  batches_ = make_batches();
}

void TrainerRun::go_on_from(const Checkpoint& checkpoint) {
  step_ = left_.last = checkpoint.info.step;
  // Its own name, also where a link or a path with a slash at its end was given.
  went_on_from_ = std::filesystem::canonical(checkpoint.path);
  for (const auto& metric : goal_.metrics)
    if (const std::string name(metric->name()); checkpoint.info.metrics.contains(name))
      result_.metrics[name] = checkpoint.info.metrics.at(name);
  earlier_ = read_earlier(checkpoint.info);
  evaluation_seconds_ = earlier_.eval_seconds;
  checkpoint_seconds_ = earlier_.checkpoint_seconds;
  // Of a lowered target, any evaluation may be the one that reaches it.
  target_reached_ = earlier_.reached || goal_.reached_by(quality());
  const std::string best =
      comm::decide(comm_, "looking for the best checkpoint", [&]() -> std::string {
        const auto path = find_best(place_.checkpoints);
        if (!path) return "none";
        if (is_abandoned(*path) && !is_abandoned(*went_on_from_)) return "";
        const CheckpointInfo info = open_checkpoint(*path).info;
        const auto value = info.metrics.find(std::string(goal_.metric->name()));
        if (info.step > step_ || value == info.metrics.end()) return "";
        return fmt::format("{} {}", info.step, value->second);
      });
  if (best.empty()) return;
  if (best != "none") keep_best(std::stoll(best), std::stod(best.substr(best.find(' '))));
  // A run that is killed right behind a checkpoint has not marked it yet.
  if (!config_.checkpoint.best || !earlier_.evaluated || is_abandoned(*went_on_from_) ||
      !std::isfinite(quality()) || !goal_.better(quality(), left_.best_value))
    return;
  keep_best(step_, quality());
  comm::on_each(comm_, "marking the best checkpoint", [&] {
    if (first()) mark_best(*went_on_from_);
  });
}

void TrainerRun::keep_best(int64_t step, double value) {
  left_.best = step;
  left_.best_value = value;
  left_.best_text = to_text(*goal_.metric, value);
}

EarlierPart TrainerRun::read_earlier(const CheckpointInfo& checkpoint) const {
  return earlier_part_from_text(comm::decide(comm_, "reading the record of the run before", [&] {
    const std::string record = (std::filesystem::path(place_.directory) / kRecordFile).string();
    std::error_code none;
    const bool known = place_.goes_on && std::filesystem::exists(record, none);
    return to_text(
        earlier_part(checkpoint, known ? read_readable(record).log : RunLog{}, goal_.in_record()));
  }));
}

}  // namespace tutti
