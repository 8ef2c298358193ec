// Measures the test set, once, at the end.

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/comm/control/agree.h"
#include "tutti/exchange/arena_message.h"
#include "tutti/train/loop/evaluation.h"
#include "tutti/train/network/table_files.h"

namespace tutti::train {

int64_t Evaluation::take_tested_weights(std::optional<ModelWeights>& best) {
  if (!run_.config.checkpoint.best || run_.left.best < 0 || run_.left.best == run_.step)
    return run_.step;
  const plan::Variables& variables = run_.network().training.variables;
  best.emplace(variables);
  Weights& weights = best->weights();
  // One rank reads, so that the others need not see the folder. With tables and slices, each rank
  // reads its own rows.
  const std::string step =
      comm::decide(run_.comm, "reading the best weights", [&]() -> std::string {
        const auto path = keep::find_best(run_.spec.place.checkpoints);
        if (!path) return "";
        const keep::Checkpoint checkpoint = keep::open_checkpoint(*path);
        if (run_.shape.grid.stages() == 1) weights.import_model(checkpoint.weights);
        return std::to_string(checkpoint.info.step) + '\0' + path->string();
      });
  if (step.empty()) {
    log::warn_once("the best checkpoint is gone: the test set measures the last weights");
    best.reset();
    return run_.step;
  }
  const size_t end = step.find('\0');
  if (variables.has_slices() || run_.shape.grid.stages() > 1)  // each reads its own
    comm::on_each(run_.comm, "reading the best weights", [&] {
      if (!run_.first() || run_.shape.grid.stages() > 1)
        weights.import_model(keep::open_checkpoint(step.substr(end + 1)).weights);
    });
  else
    exchange::broadcast_arena(run_.comm, "the best weights", 0,
                              {weights.parameters(), variables.parameter_bytes});
  if (run_.shape.grid.stages() == 1)
    run_.comm.broadcast({weights.statistics(0), variables.statistic_bytes}, 0);
  if (!variables.tables.empty())
    comm::on_each(run_.comm, "reading the best tables", [&] {
      const keep::Checkpoint checkpoint = keep::open_checkpoint(step.substr(end + 1));
      read_tables(checkpoint.weights, checkpoint.path, weights);
    });
  return std::stoll(step.substr(0, end));
}

void Evaluation::test() {
  const auto began = RunClock::Clock::now();
  const double train_seconds = run_.clock.train();
  const trace::ScopedSpan span = run_.span("test");
  settle();
  gather();
  evaluator_.reset();  // frees memory for the next one
  std::optional<ModelWeights> best;
  const int64_t weights_step = take_tested_weights(best);
  const data::Dataset& dataset = *run_.spec.data.test;
  const data::SampleWriter writer =
      sample_writer(run_.config, dataset, run_.network().evaluation.batch());
  const std::optional<data::SampleWriter> losses =
      loss_writer(run_.config, dataset, run_.network().evaluation, run_.goal.goal);
  Evaluator evaluator({.network = run_.network().evaluation,
                       .backend = *run_.spec.backend,
                       .communicator = run_.comm,
                       .dataset = dataset,
                       .writer = writer,
                       .losses = losses ? &*losses : nullptr},
                      run_.goal.goal.metrics);
  if (best)
    evaluator.bind(best->weights().replica(0));
  else
    evaluator.bind({.parameters = weights(),
                    .tables = run_.training->weights().tables(),
                    .statistics = averaged_.data()});
  const Quality all = evaluator.run(dataset.size(), static_cast<int>(run_.config.data.readers));
  const double seconds = RunClock::since(began);
  run_.clock.add_pause(seconds);
  run_.evaluation_seconds += seconds;
  trace::TestRecord line;
  line.epoch = run_.epochs_done();
  line.step = run_.step;
  line.weights_step = weights_step;
  line.samples = all.samples();
  line.seconds = seconds;
  line.wall_seconds = run_.clock.wall();
  line.train_seconds = train_seconds;
  std::string text;
  for (const auto& metric : run_.goal.goal.metrics) {
    const double value = all.value(metric->name());
    run_.result.test[std::string(metric->name())] = value;
    line.set(std::string(metric->name()), value);
    text += (text.empty() ? "" : ", ") + to_text(*metric, value);
  }
  if (!all.exact()) {
    text += fmt::format(", auc in {} bins", ScoreBins::kBins);
    line.set("auc_bins", ScoreBins::kBins);
  }
  if (const std::string word = all.undefined(); !word.empty()) text += "; " + word;
  if (!run_.first()) return;
  run_.reporter->add(line);
  log::info("test set: {} ({} samples, weights of step {})", text, line.samples, weights_step);
}

}  // namespace tutti::train
