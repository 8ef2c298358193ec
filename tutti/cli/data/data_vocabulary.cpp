#include "tutti/cli/data/data_vocabulary.h"

#include <fmt/format.h>

#include <memory>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/clicks/click_vocabulary.h"

namespace tutti {
namespace {

struct VocabularyVerb {
  ConfigFlags flags;
  int64_t minimum = 2;
};

int run_vocabulary(const VocabularyVerb& verb) {
  ResolvedConfig resolved = verb.flags.read();
  const RunConfig& config = resolved.config;
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

Verb data_vocabulary_verb() {
  auto state = std::make_shared<VocabularyVerb>();  // shared: std::function must be copyable
  return {.name = "vocabulary",
          .summary = "Give categories of click logs rows of their own",
          .text =
              "Reads the training logs of a configuration once, and writes the file that "
              "data.vocabulary names: of each column of categories those that are frequent enough, "
              "the most frequent first. Categories are in memory meanwhile.",
          .arguments = {state->flags.file_argument("data vocabulary", true)},
          .flags = joined({{.names = "--minimum",
                            .value = "N",
                            .help = "How often a category must stand in the logs to have a row",
                            .bind = &state->minimum,
                            .least = 1}},
                          state->flags.flags({"data-dir"})),
          .examples = {{"tutti data vocabulary run.toml --minimum 4",
                        "Categories of three lines or fewer share row 0"}},
          .see_also = {"docs/samples.md"},
          .run = [state] { return run_vocabulary(*state); }};
}

}  // namespace tutti
