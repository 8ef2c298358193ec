// tutti eval: measures the quality of given weights on a data set.

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/infer/evaluation_ranks.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/infer/prediction_rows.h"
#include "tutti/cli/infer/saved_predictions.h"
#include "tutti/cli/infer/trained_model.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/network/network.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct EvalVerb {
  ConfigFlags flags;
  std::string weights, logits, pictures,
      split;  // split empty: test, or validation if there is no test set
  int64_t samples = 0;
  int ranks = 0;
  bool json = false;
};

/// Returns whether run.target is reached; nothing if there is none, or if other samples were
/// evaluated than all of the validation or the test set, to which the target applies.
std::optional<bool> target_reached(const EvalVerb& verb, const train::Goal& goal,
                                   const train::Quality& quality, int64_t all) {
  if (goal.target <= 0 || verb.split == "train" || quality.samples() < all) return std::nullopt;
  return goal.reached_by(quality.value(goal.metric->name()));
}

void print_quality(const EvalVerb& verb, const config::RunConfig& config,
                   const train::FoundWeights& found, const train::Goal& goal,
                   const train::Quality& quality, std::optional<bool> reached,
                   const std::vector<std::string>& units) {
  if (verb.json) {
    Json out = {{"dataset", config.data.dataset},
                {"split", verb.split},
                {"weights", verb.weights},
                {"samples", quality.samples()}};
    for (const auto& metric : goal.metrics)
      out[std::string(metric->name())] = quality.value(metric->name());
    if (!found.checkpoint.empty()) {
      out["checkpoint"] = found.checkpoint;
      out["step"] = found.step;
    }
    if (reached) {
      out["metric"] = goal.metric->name();
      out["target"] = goal.target;
      out["target_reached"] = *reached;
    }
    if (!units.empty()) out["units"] = units;
    if (const std::string word = quality.undefined(); !word.empty()) out["undefined"] = word;
    print_json_output(out);
    return;
  }
  std::string text;
  for (const auto& metric : goal.metrics)
    text += ", " + to_text(*metric, quality.value(metric->name()));
  fmt::print("{} {}: {} samples{}\n", config.data.dataset, verb.split, quality.samples(), text);
  for (const std::string& sentence : units) fmt::print("{}\n", sentence);
  if (const std::string word = quality.undefined(); !word.empty()) fmt::print("{}\n", word);
  if (reached)
    fmt::print("the target, {}, is {}\n", to_text(*goal.metric, goal.target),
               *reached ? "reached" : "not reached: the exit code is 3");
}

void write_predictions(const std::string& path, const train::EvaluationNetwork& network,
                       int64_t samples, const std::vector<std::vector<float>>& predictions,
                       const PredictionSource& source) {
  for (size_t o = 0; o < predictions.size(); ++o) {
    const Shape& batch = network.plan.desc(network.predictions[o]).shape;
    std::vector<int64_t> extents(batch.begin(), batch.end());
    extents.front() = samples;
    const auto rows =
        data::open_npy_rows(path_of_output(path, network.names[o]),
                            {.name = "prediction",
                             .shape = extents,
                             .attributes = attributes_of(source, network.names[o]),
                             .columns = row_columns(source.dataset.origins(), samples)});
    rows->append(predictions[o].data(), samples);
    rows->close();
  }
}

/// Evaluates the weights that were found.
int evaluate(const EvalVerb& verb, const GivenNames& given, const train::FoundWeights& found,
             config::RunConfig& config, const EvaluationRanks& ranks) {
  const bool keeps = !verb.logits.empty() || !verb.pictures.empty();
  take_tokenizer(verb.weights, verb.split, config);
  const auto dataset = open_configured(config, verb.split);
  take_task(found, config);
  const ComputeBackend compute = compute_backend(config);
  const models::ModelSpec model =
      train::model_spec(config, *dataset, config::batch_sizes(config.batch, 1).local);
  train::Goal goal = train::goal_of(config, model);
  split::SplitSettings split = train::split_settings(config);
  split.grid = ranks.grid();
  const auto network = train::compile_evaluation(
      model, split, compute.backend(), ranks.communicator(), plan_options_for(config, found));
  train::Weights weights(network->plan.variables, 1);
  import_weights(given, found, weights);

  const data::SampleWriter writer = train::sample_writer(config, *dataset, network->batch());
  const std::optional<data::SampleWriter> losses =
      train::loss_writer(config, *dataset, *network, goal);
  train::Evaluator evaluator({.network = *network,
                              .backend = compute.backend(),
                              .communicator = ranks.communicator(),
                              .dataset = *dataset,
                              .writer = writer,
                              .losses = losses ? &*losses : nullptr},
                             goal.metrics);
  evaluator.bind(weights.replica(0));
  const int64_t samples =
      verb.samples > 0 ? std::min(verb.samples, dataset->size()) : dataset->size();
  std::vector<std::vector<float>> logits;
  const train::Quality quality = evaluator.run(samples, static_cast<int>(config.data.readers),
                                               keeps && ranks.first() ? &logits : nullptr);
  const std::optional<bool> reached = target_reached(verb, goal, quality, dataset->size());
  const auto code =
      static_cast<int>(reached.value_or(true) ? ExitCode::done : ExitCode::target_missed);
  if (!ranks.first()) return code;
  const PredictionSource source{.config = config,
                                .model = model,
                                .dataset = *dataset,
                                .found = found,
                                .weights = verb.weights,
                                .split = verb.split};
  if (!verb.logits.empty()) write_predictions(verb.logits, *network, samples, logits, source);
  if (!verb.pictures.empty()) {
    save_predictions(verb.pictures, {.config = config,
                                     .dataset = *dataset,
                                     .model = model,
                                     .source = source,
                                     .network = *network,
                                     .predictions = logits,
                                     .samples = samples});
    log::info("{}: fields, truth and predictions of {} samples", verb.pictures, samples);
  }
  print_quality(verb, config, found, goal, quality, reached, train::unit_sentences(model));
  for (const auto& metric : goal.metrics)
    if (metric->name() == "loss" && !std::isfinite(quality.value(metric->name())))
      throw NumericError(fmt::format(
          "the loss is no number: the weights of {} are not finite, or too large; take an earlier "
          "checkpoint",
          verb.weights));
  return code;
}

int run_eval(EvalVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  config::RunConfig& config = resolved.config;
  const train::FoundWeights found = train::find_weights(verb.weights, "--weights");
  if (const auto code = launch_evaluation(verb.ranks, found, config)) return *code;
  const EvaluationRanks ranks(config, found, !verb.logits.empty() || !verb.pictures.empty());
  if (ranks.idle()) return 0;
  if (ranks.first())
    for (const std::string& warning : resolved.warnings) log::warn("{}", warning);

  if (!verb.pictures.empty()) require_empty_folder(verb.pictures);
  if (!verb.logits.empty()) require_output(verb.logits, "--logits");
  if (verb.split.empty()) verb.split = configured_parts(config).back();
  const GivenNames given{.verb = "eval", .weights = verb.weights, .config = verb.flags.file()};
  return naming_networks(given, found, config,
                         [&] { return evaluate(verb, given, found, config, ranks); });
}

}  // namespace

Verb eval_verb() {
  auto state = std::make_shared<EvalVerb>();  // shared: std::function must be copyable
  return {
      .name = "eval",
      .summary = "Measure the accuracy and loss of given weights on a data set",
      .text =
          "Ranks share the samples, and with parallel.spatial so many of them share each sample. "
          "With a run.target in the file the exit code is 3 where the whole validation or test "
          "set does not reach it.",
      .arguments = {state->flags.file_argument("eval", true)},
      .flags = joined(
          {weights_flag(state->weights, "eval"),
           choice_flag("--split",
                       "The part of the data set. By default test, or validation where "
                       "there is no test set",
                       &state->split, {"test", "validation", "train"}),
           flag("--samples", "N", "Only the first N samples. 0: all", &state->samples, {0}),
           ranks_flag(state->ranks),
           named_flag(
               Names::file, "--logits", "FILE.npy",
               "Write what the network predicts of all samples, float32: samples "
               "x classes, or samples x classes x height x width; of texts samples x 2 x "
               "tokens, -log of the probability of each and whether it was the likeliest; of "
               "several predictions each, as FILE.NAME.npy; of numbers in the units of the "
               "data. FILE.npy.json has which sample each row is, and attributes as of infer",
               &state->logits),
           named_flag(Names::folder, "--save-predictions", "DIR",
                      "Make a folder with the fields, the predictions and what they should be as "
                      ".npy, and pictures of the first samples; with --samples of fewer",
                      &state->pictures),
           json_flag(state->json)},
          state->flags.flags(
              {"data-dir", "batch-size", "precision", "device", "threads", "spatial", "tensor"})),
      .examples = {{"tutti eval run.toml --weights runs/mine",
                    "Evaluate the best checkpoint of a run, or its newest if none is marked"},
                   {"tutti eval run.toml --weights runs/mine --ranks 4 --spatial 2",
                    "On 4 ranks, of which two share each sample"},
                   {"tutti eval run.toml --weights model.safetensors --split train --json",
                    "Evaluate a file of weights on the training images, for a program"}},
      .see_also = {"tutti help train", "tutti help infer", "docs/configuration.md"},
      .run = [state] { return run_eval(*state); }};
}

}  // namespace tutti::cli
