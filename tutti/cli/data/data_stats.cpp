#include "tutti/cli/data/data_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/arrays/statistics_file.h"
#include "tutti/data/clicks/click_vocabulary.h"
#include "tutti/data/open/field_statistics.h"
#include "tutti/keep/result_file.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct StatsVerb {
  ConfigFlags flags;
  std::string output;
  bool json = false;
};

/// Returns the axis whose indices are the channels after data.transforms.
int channel_axis(const std::vector<data::FieldSteps>& steps, const std::string& field) {
  const auto own = std::ranges::find(steps, field, &data::FieldSteps::field);
  return own == steps.end() || own->placement.permute.empty() ? 0 : own->placement.permute[0];
}

int run_stats(const StatsVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  config::RunConfig& config = resolved.config;
  log::configure(log::Level::warn, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  config.data.statistics.clear();  // may be the file that is to be written
  const auto train = open_configured(config, "train");
  const std::vector<data::FieldSteps> steps = train::field_steps(config.data);
  std::vector<data::FieldStatistics> all;
  for (const data::Field& field : train->fields())
    all.push_back(field.class_names.empty()
                      ? data::field_statistics(*train, field.name, channel_axis(steps, field.name))
                      : data::FieldStatistics());
  const std::string text = data::statistics_json(train->fields(), all) + "\n";
  if (verb.output.empty()) return print_output(text), 0;
  keep::write_result_file(verb.output, text);
  if (verb.json)
    print_json_output(
        Json{{"file", verb.output}, {"samples", train->size()}, {"statistics", parse_json(text)}});
  else
    fmt::print("{}: statistics of {} training samples\n", verb.output, train->size());
  return 0;
}

struct VocabularyVerb {
  ConfigFlags flags;
  int64_t minimum = 2;
};

int run_vocabulary(const VocabularyVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  const config::RunConfig& config = resolved.config;
  log::configure(log::Level::warn, 0, 1);
  for (const std::string& warning : resolved.warnings) log::warn("{}", warning);
  if (config.data.dataset != "clicks")
    throw ConfigError(
        fmt::format("data.dataset is '{}': a vocabulary is of \"clicks\"", config.data.dataset));
  if (config.data.vocabulary.empty())
    throw ConfigError("data.vocabulary names no file: it says where the vocabulary is written");
  const auto vocabulary =
      data::ClickVocabulary::of_logs(files_of_part(config, "train"), verb.minimum,
                                     config.data.bag_length, config.data.bag_weights);
  vocabulary.write(config.data.vocabulary);
  int64_t rows = 0;
  for (size_t c = 0; c < vocabulary.columns(); ++c) rows += vocabulary.rows(c);
  fmt::print("{}: {} columns, tables of {} rows together\n", config.data.vocabulary,
             vocabulary.columns(), rows);
  return 0;
}

}  // namespace

Verb data_stats_verb() {
  auto state = std::make_shared<StatsVerb>();  // shared: std::function must be copyable
  return {
      .name = "stats",
      .summary = "Compute what data.statistics reads: means, deviations, extremes",
      .text =
          "Reads the training set of a configuration once. The numbers are of stored values, "
          "of each channel: an index of the first axis after data.transforms has permuted "
          "them; of u8, of the values divided by 255.",
      .arguments = {state->flags.file_argument("data stats", true)},
      .flags = joined({named_flag(Names::file, "--output", "FILE",
                                  "The .json file to write. Empty: the terminal", &state->output),
                       json_flag(state->json)},
                      state->flags.flags({"data-dir"})),
      .examples = {{"tutti data stats run.toml --output stats.json",
                    "Then data.statistics may be stats.json, and normalise needs no numbers"}},
      .see_also = {"docs/samples.md"},
      .run = [state] { return run_stats(*state); }};
}

Verb data_vocabulary_verb() {
  auto state = std::make_shared<VocabularyVerb>();  // shared: std::function must be copyable
  return {.name = "vocabulary",
          .summary = "Give categories of click logs rows of their own",
          .text =
              "Reads the training logs of a configuration once, and writes the file that "
              "data.vocabulary names: of each column of categories those that are frequent enough, "
              "the most frequent first. Categories are in memory meanwhile.",
          .arguments = {state->flags.file_argument("data vocabulary", true)},
          .flags = joined(
              {flag("--minimum", "N", "How often a category must stand in the logs to have a row",
                    &state->minimum, {1})},
              state->flags.flags({"data-dir"})),
          .examples = {{"tutti data vocabulary run.toml --minimum 4",
                        "Categories of three lines or fewer share row 0"}},
          .see_also = {"docs/samples.md"},
          .run = [state] { return run_vocabulary(*state); }};
}

}  // namespace tutti::cli
