#include "tutti/train/rounds/rounds_kinds.h"

#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include "tutti/base/log.h"
#include "tutti/train/rounds/every_step.h"

namespace tutti::train {
namespace {

/// Each replica has its own weights and follows its own gradients; between steps the replicas meet
/// (sync/meeting.h).
class Apart final : public EveryStep {
 public:
  Apart(const RoundsSpec& spec, const sync::MeetingSettings& settings)
      : EveryStep(spec), settings_(settings),
        meeting_(
            sync::make_meeting(settings, spec.workers, spec.replicas,
                               spec.step.weights().variables().trained_bytes / sizeof(float))) {
    Weights& weights = spec.step.weights();
    const plan::Variables& variables = weights.variables();
    for (int local = 0; local < spec.replicas.local_count(); ++local) {
      sync::ReplicaValues values{.parameters = reinterpret_cast<float*>(weights.parameters(local))};
      for (size_t k = 0; k < variables.state_kinds.size(); ++k)
        values.states.push_back(
            reinterpret_cast<float*>(weights.state(local) + k * variables.trained_bytes));
      values_.push_back(std::move(values));
    }
    for (sync::OwnValues& own : meeting_->own())
      weights.add_rows(own.name, std::move(own.of_local));
  }

  void start(const keep::Checkpoint* resumed, int64_t step) override {
    const Weights& weights = spec_.step.weights();
    const plan::Variables& variables = weights.variables();
    // A scheme's values for each replica exist only if the checkpoint has the same scheme.
    bool filled = resumed != nullptr;
    if (filled && !meeting_->own().empty())
      filled = weights.has_added_rows() && meeting_->restore(resumed->info.metrics);
    for (const sync::SharedValues& shared : meeting_->shared()) {
      if (!resumed) continue;
      auto* const arena = reinterpret_cast<std::byte*>(shared.values.data());
      const std::string suffix = "." + shared.name;
      if (resumed->state.find(variables.parameters.front().name + suffix))
        weights.import_arena(resumed->state, suffix, arena);
      else if (shared.like_weights)  // another scheme: start from the common model
        weights.import_arena(resumed->weights, "", arena);
    }
    meeting_->begin(values_, filled);
    if (spec_.workers.rank() == 0)
      log::info("replicas train apart: sync.scheme = \"{}\", they meet {}",
                spec_.config.sync.scheme,
                settings_.kind == sync::MeetingKind::never    ? "at no time"
                : settings_.kind == sync::MeetingKind::gossip ? "two by two, by chance"
                : settings_.every == 1                        ? "after every step"
                                       : fmt::format("every {} steps", settings_.every));
    EveryStep::start(resumed, step);
  }

  void begin(int64_t first, int64_t end) override {
    EveryStep::begin(first, end);
    made_here_ = 0;
    meeting_->before(first, values_);
  }

  std::optional<RoundGradient> next(int) override {
    if (made_here_ > 0) spec_.step.update({.settled = true});
    if (made_here_ == spec_.replicas.local_count()) return std::nullopt;
    if (made_here_ > 0) spec_.step.begin_gradient();
    const auto batches = static_cast<int>(spec_.config.batch.accumulate);
    RoundGradient gradient = gradient_of(made_here_ * batches, batches);
    for (int i = 0; i < batches; ++i) gradient.batches[static_cast<size_t>(i)].place = i;
    gradient.slowed = made_here_++ == 0;
    return gradient;
  }

  int64_t end(int) override {
    times_ = spec_.step.times();
    const auto began = RunClock::Clock::now();
    if (meeting_->after(step_, spec_.rate(step_), values_)) spec_.step.weights_changed();
    const double seconds = RunClock::since(began);
    seconds_ += seconds;
    times_.comm_exposed += seconds;
    if (clock_) clock_->follow(step_);
    return step_ + 1;
  }

  bool has_model() const override { return true; }
  void model(std::span<float> weights) override { meeting_->model(values_, weights); }
  bool first_stands_for_all() const override { return settings_.kind == sync::MeetingKind::never; }

  void report(int64_t step, trace::RunRecord* record) override {
    std::array<double, 3> sums{static_cast<double>(meeting_->bytes_sent() - bytes_before_),
                               meeting_->moved().squares, meeting_->moved().of};
    spec_.workers.sum(sums);
    trace::SyncRecord line{.epoch = step / spec_.steps_per_epoch,
                           .step = step,
                           .meetings = meeting_->meetings() - meetings_before_,
                           .bytes = static_cast<int64_t>(sums[0]),
                           .seconds = std::exchange(seconds_, 0)};
    if (line.meetings > 0) line.moved = std::sqrt(sums[1] / sums[2]);
    meetings_before_ = meeting_->meetings();
    bytes_before_ = meeting_->bytes_sent();
    if (!record) return;
    if (line.meetings > 0)
      log::info(
          "replicas met {} time(s): {:.1f} MiB sent, {:.2f} s, weights moved by {:.2g} of their "
          "length",
          line.meetings, static_cast<double>(line.bytes) / (1 << 20), line.seconds, line.moved);
    record->append(line);
  }

  /// The replicas' own values are rows of the weights.
  void save(keep::SavedRun& saved) override {
    meeting_->save(saved.numbers);
    for (const sync::SharedValues& shared : meeting_->shared())
      std::ranges::move(
          spec_.step.weights().arena_tensors(
              "." + shared.name, reinterpret_cast<const std::byte*>(shared.values.data())),
          std::back_inserter(saved.shared));
    spec_.step.exchange().save(saved);
    save_clock(saved);
  }

 private:
  const sync::MeetingSettings settings_;
  const std::unique_ptr<sync::Meeting> meeting_;
  std::vector<sync::ReplicaValues> values_;         // by local replica
  int made_here_ = 0;                               // local replicas done in this step
  int64_t meetings_before_ = 0, bytes_before_ = 0;  // at the last report
  double seconds_ = 0;                              // since the last report
};

}  // namespace

std::unique_ptr<Rounds> make_apart(const RoundsSpec& spec, const sync::MeetingSettings& settings) {
  return std::make_unique<Apart>(spec, settings);
}

}  // namespace tutti::train
