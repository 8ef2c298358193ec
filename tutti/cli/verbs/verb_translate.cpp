// tutti translate: translates sources with a trained model of pairs, and scores the result.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/visible.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/infer/pairs_to_translate.h"
#include "tutti/cli/infer/trained_model.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/keep/result_file.h"
#include "tutti/train/infer/translator.h"
#include "tutti/train/metrics/bleu.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/settings/specs.h"

namespace tutti {
namespace {

struct TranslateVerb {
  std::string weights, config, data_dir, output;
  SourcesGiven sources;
  BeamSettings beam;
  int64_t side_by_side = 16;
  int threads = 0;
  bool json = false;
};

/// The quality of translations, compared with the data set's targets.
struct TranslationQuality {
  Bleu bleu;
  int64_t samples = 0, right_samples = 0, tokens = 0, right_tokens = 0;

  void add(const SequencePairs& pairs, size_t i, std::vector<int32_t> written) {
    std::vector<int32_t> wanted = pairs.targets[i];
    bleu.add(pairs.words_of_target(written), pairs.words_of_target(wanted));
    ++samples;
    right_samples += written == wanted;
    written.push_back(pairs.end_token);
    wanted.push_back(pairs.end_token);
    tokens += std::ssize(wanted);
    for (size_t t = 0; t < std::min(written.size(), wanted.size()); ++t)
      right_tokens += written[t] == wanted[t];
  }
  double token_share() const { return share(right_tokens, tokens); }
  double sample_share() const { return share(right_samples, samples); }

 private:
  static double share(int64_t part, int64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  }
};

void print_report(const TranslateVerb& verb, const TranslationQuality& q) {
  const Bleu& bleu = q.bleu;
  if (verb.json) {
    Json out = {{"weights", verb.weights},
                {"split", verb.sources.split},
                {"samples", q.samples},
                {"beam", verb.beam.size},
                {"length_penalty", verb.beam.length_penalty},
                {"bleu", bleu.value()},
                {"brevity", bleu.brevity()},
                {"words", bleu.written()},
                {"reference_words", bleu.references()},
                {"token_accuracy", q.token_share()},
                {"sequence_accuracy", q.sample_share()}};
    for (size_t n = 1; n <= Bleu::kLongest; ++n)
      out[fmt::format("precision{}", n)] = bleu.precision(n);
    print_json_output(out);
    return;
  }
  fmt::print(
      "{}: {} samples, BLEU {:.2f} ({:.1f}/{:.1f}/{:.1f}/{:.1f}, brevity {:.3f}, {} words of {}), "
      "tokens {:.3f} %, whole sequences {:.2f} %\n",
      verb.sources.split, q.samples, 100 * bleu.value(), 100 * bleu.precision(1),
      100 * bleu.precision(2), 100 * bleu.precision(3), 100 * bleu.precision(4), bleu.brevity(),
      bleu.written(), bleu.references(), 100 * q.token_share(), 100 * q.sample_share());
}

/// Returns the translations in the order of the sources.
std::vector<WrittenSequence> written_by(Translator& translator, const SequencePairs& pairs) {
  std::vector<std::vector<int32_t>> sources;
  for (const std::vector<int32_t>& source : pairs.sources)
    if (!source.empty()) sources.push_back(source);
  std::vector<WrittenSequence> found = translator.write(sources), all;
  auto next = found.begin();
  for (const std::vector<int32_t>& source : pairs.sources)
    all.push_back(source.empty() ? WrittenSequence{} : std::move(*next++));
  return all;
}

int translate(const TranslateVerb& verb, const GivenNames& given, const FoundWeights& found,
              RunConfig& config) {
  take_task(found, config);
  const SequencePairs pairs = sequence_pairs(verb.sources, {verb.weights, given.config, config});
  const CpuBackend backend;
  PlanOptions options = plan_options_for(config, found);
  options.threads = static_cast<int>(config.run.threads);
  BeamSettings beam = verb.beam;
  beam.end_token = pairs.end_token;
  const int64_t side_by_side =
      std::clamp(std::ssize(pairs.sources), std::ptrdiff_t{1}, std::ptrdiff_t{verb.side_by_side});
  Translator translator(model_spec(config, *pairs.fields, 1), side_by_side, beam, backend, options);
  Weights weights(translator.variables(), 1);
  import_weights(given, found, weights);
  translator.bind(weights.replica(0));
  const std::vector<WrittenSequence> written = written_by(translator, pairs);
  std::string text;
  for (const WrittenSequence& one : written) text += pairs.text_of_target(one.tokens) + "\n";
  if (!verb.output.empty()) {
    write_result_file(verb.output, text);
  } else if (verb.sources.split.empty()) {
    keep_bytes_of_output();
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if (pairs.targets.empty()) return 0;
  TranslationQuality quality;
  for (size_t i = 0; i < written.size(); ++i) quality.add(pairs, i, written[i].tokens);
  print_report(verb, quality);
  return 0;
}

int run_translate(const TranslateVerb& verb) {
  if (verb.json && verb.sources.split.empty())
    throw ConfigError(
        "translate --json says how good translations are, and only a --split has the right ones to "
        "compare with: leave --json out");
  log::configure(log::Level::warn, 0, 1);  // the output is the text
  const std::string file = configuration_of(verb.weights, verb.config);
  ResolvedConfig resolved = read_config({.file = file, .environment = {}, .flags = {}});
  RunConfig& config = resolved.config;
  if (!verb.data_dir.empty()) config.data.dir = verb.data_dir;
  const FoundWeights found = find_weights(verb.weights, "translate");
  set_model_threads(found, verb.threads, config);
  const GivenNames given{.verb = "translate", .weights = verb.weights, .config = file};
  return naming_networks(given, found, config,
                         [&] { return translate(verb, given, found, config); });
}

std::vector<Flag> translate_flags(TranslateVerb& state) {
  return {{.names = "--text", .value = "TEXT", .help = "A source", .bind = &state.sources.text},
          {.names = "--input",
           .value = "FILE",
           .help = "Sources, one a line; one that data.window has no room for is left out",
           .bind = &state.sources.file,
           .kind = Names::file,
           .excludes = {"--text"}},
          {.names = "--split",
           .help = "The sources of a part of the configured data set, whose targets are what the "
                   "result is compared with",
           .bind = &state.sources.split,
           .choices = {"test", "validation", "train"},
           .excludes = {"--text", "--input"}},
          {.names = "--samples",
           .value = "N",
           .help = "Only the first N of them. 0: all",
           .bind = &state.sources.samples,
           .least = 0},
          {.names = "--output",
           .value = "FILE",
           .help = "Gets what is written, a line for each source. Empty: it is printed, but for a "
                   "--split",
           .bind = &state.output,
           .kind = Names::file},
          {.names = "--beam",
           .value = "N",
           .help = "Sequences that are followed side by side; 1: always the likeliest token",
           .bind = &state.beam.size,
           .least = 1,
           .greatest = 1024},
          {.names = "--length-penalty",
           .value = "A",
           .help = "Sequences of n tokens are compared by log p / ((5 + n) / 6)^A (Wu et al. 2016)",
           .bind = &state.beam.length_penalty,
           .least = 0,
           .greatest = 10},
          {.names = "--batch",
           .value = "N",
           .help = "Sources at a time",
           .bind = &state.side_by_side,
           .least = 1,
           .greatest = 65536},
          {.names = "--data-dir",
           .value = "DIR",
           .help = "The data set's folder. Empty: data.dir of the configuration",
           .bind = &state.data_dir,
           .kind = Names::folder},
          json_flag(state.json)};
}

}  // namespace

Verb translate_verb() {
  auto state = std::make_shared<TranslateVerb>();  // shared: std::function must be copyable
  return {.name = "translate",
          .summary = "Write what a trained model of pairs makes of sources",
          .text =
              "Reads each source once and writes its target token by token, by beam search. "
              "Beside the targets of a data set it says BLEU, the share of the tokens that "
              "stand where they should, and of the sequences that are right as a whole.",
          .arguments = {weights_argument(state->weights, "translate",
                                         "tutti translate runs/mine --split test")},
          .flags = joined(translate_flags(*state), model_flags(state->config, state->threads)),
          .examples = {{"tutti translate runs/mine --text hello",
                        "Translate a word or, in quotes, a sentence"},
                       {"tutti translate runs/mine --split test --beam 4 --output test.txt",
                        "Translate the test set and compare with its targets"}},
          .see_also = {"tutti help train", "tutti help eval", "docs/workloads/translation.md"},
          .run = [state] { return run_translate(*state); }};
}

}  // namespace tutti
