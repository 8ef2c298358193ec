#include <algorithm>
#include <span>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/train/loop/trainer_run.h"
#include "tutti/train/network/table_files.h"

namespace tutti {

int64_t TrainerRun::take_tested_weights(std::optional<ModelWeights>& best) {
  if (!config_.checkpoint.best || left_.best < 0 || left_.best == step_) return step_;
  const Variables& variables = network().training.variables;
  best.emplace(variables);
  Weights& weights = best->weights();
  // One rank reads: the others need not see the folder.
  // But for tables and slices, of which each has its rows to read.
  const std::string step = comm::decide(comm_, "reading the best weights", [&]() -> std::string {
    const auto path = find_best(place_.checkpoints);
    if (!path) return "";
    const Checkpoint checkpoint = open_checkpoint(*path);
    if (grid_.stages() == 1) weights.import_model(checkpoint.weights);
    return std::to_string(checkpoint.info.step) + '\0' + path->string();
  });
  if (step.empty()) {
    log::warn_alike("the best checkpoint is gone: the test set measures the last weights");
    best.reset();
    return step_;
  }
  const size_t end = step.find('\0');
  if (variables.has_slices() || grid_.stages() > 1)  // each reads its own
    comm::on_each(comm_, "reading the best weights", [&] {
      if (!first() || grid_.stages() > 1)
        weights.import_model(open_checkpoint(step.substr(end + 1)).weights);
    });
  else
    comm_.broadcast({weights.parameters(), variables.parameter_bytes}, 0);
  if (grid_.stages() == 1) comm_.broadcast({weights.statistics(0), variables.statistic_bytes}, 0);
  if (!variables.tables.empty())
    comm::on_each(comm_, "reading the best tables", [&] {
      const Checkpoint checkpoint = open_checkpoint(step.substr(end + 1));
      read_tables(checkpoint.weights, checkpoint.path, weights);
    });
  return std::stoll(step.substr(0, end));
}

void TrainerRun::test() {
  const auto began = RunClock::Clock::now();
  const double train_seconds = clock_.train();
  const ScopedSpan span(spans(), span_name("test"), span_lane());
  settle();
  average_statistics();
  gather_shown();
  evaluator_.reset();  // its memory is the next one's
  std::optional<ModelWeights> best;
  const int64_t weights_step = take_tested_weights(best);
  const data::Dataset& dataset = *spec_.data.test;
  const data::SampleWriter writer = sample_writer(config_, dataset, network().evaluation.batch());
  const std::optional<data::SampleWriter> losses =
      loss_writer(config_, dataset, network().evaluation, goal_);
  Evaluator evaluator({.network = network().evaluation,
                       .backend = *spec_.backend,
                       .communicator = comm_,
                       .dataset = dataset,
                       .writer = writer,
                       .losses = losses ? &*losses : nullptr},
                      goal_.metrics);
  if (best)
    evaluator.bind(best->weights().replica(0));
  else
    evaluator.bind({.parameters = shown_weights(),
                    .tables = training_->weights().tables(),
                    .statistics = averaged_.data()});
  const Quality all = evaluator.run(dataset.size(), static_cast<int>(config_.data.readers));
  const double seconds = RunClock::since(began);
  clock_.add_pause(seconds);
  evaluation_seconds_ += seconds;
  TestRecord line;
  line.epoch = epochs_done();
  line.step = step_;
  line.weights_step = weights_step;
  line.samples = all.samples();
  line.seconds = seconds;
  line.wall_seconds = clock_.wall();
  line.train_seconds = train_seconds;
  std::string text;
  for (const auto& metric : goal_.metrics) {
    const double value = all.value(metric->name());
    result_.test[std::string(metric->name())] = value;
    line.set(std::string(metric->name()), value);
    text += (text.empty() ? "" : ", ") + to_text(*metric, value);
  }
  if (!all.exact()) {
    text += fmt::format(", auc in {} bins", ScoreBins::kBins);
    line.set("auc_bins", ScoreBins::kBins);
  }
  if (const std::string word = all.undefined(); !word.empty()) text += "; " + word;
  if (!first()) return;
  reporter_->add(line);
  log::info("test set: {} ({} samples, weights of step {})", text, line.samples, weights_step);
}

}  // namespace tutti
