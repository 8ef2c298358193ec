// tutti translate: translates sources with a trained model of pairs, and scores the result.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/log.h"
#include "tutti/base/visible.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/config/config_flags.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/infer/trained_model.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/job.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/text_file.h"
#include "tutti/data/text/pair_set.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/keep/result_file.h"
#include "tutti/train/infer/translator.h"
#include "tutti/train/metrics/bleu.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

// Exactly one of text, file and split is set.
struct SourcesGiven {
  std::string text, file, split;
  int64_t samples = 0;  // only the first ones; 0: all
};

struct SequencePairs {
  std::vector<std::vector<int32_t>> sources;   // empty for an empty line
  std::vector<std::vector<int32_t>> targets;   // without the end token; empty: not known
  int32_t end_token = 0;                       // end token of targets
  std::unique_ptr<data::Tokenizer> tokenizer;  // tokenizer of targets; null: tokens are numbers
  std::unique_ptr<data::Dataset> fields;       // the fields of samples, for a network

  // Returns the text on one line; numbers where no tokenizer is known.
  std::string text_of_target(std::span<const int32_t> tokens) const;
  // Returns the units that BLEU counts: words of the text, or tokens.
  std::vector<std::string> words_of_target(std::span<const int32_t> tokens) const;
};

// Weights, and the file of their configuration.
struct TrainedPairs {
  std::filesystem::path weights, file;
  const config::RunConfig& config;
};

/// Samples that are typed in have the fields of a set of pairs.
class PairFields final : public data::Dataset {
 public:
  PairFields(int64_t window, int64_t sources, int64_t targets) {
    const auto add = [&](const char* name, int64_t vocabulary) {
      fields_.push_back({.name = name,
                         .element = data::ElementType::i32,
                         .shape = {window},
                         .class_names = std::vector<std::string>(static_cast<size_t>(vocabulary))});
    };
    add("source", sources);
    add("next", targets);
    add("tokens", targets);
  }
  int64_t size() const override { return 0; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t, data::Sample&) const override {}

 private:
  std::vector<data::Field> fields_;
};

std::unique_ptr<data::Tokenizer> kept_tokenizer(const TrainedPairs& trained, const char* folder) {
  const std::filesystem::path near =
      tokenizer_of_weights(trained.weights, trained.file, trained.config, folder);
  return near.empty() ? nullptr : data::read_tokenizer(near);
}

std::vector<std::string> given_lines(const SourcesGiven& given) {
  if (given.file.empty()) return {given.text};
  const data::FileBytes file = data::FileBytes::open(given.file);
  std::string text(static_cast<size_t>(file.size()), '\0');
  if (!text.empty()) file.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  text = data::plain_lines(std::move(text));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Leaves out a line that is too long; its place stays empty, and other lines are unaffected.
void leave_out_long(const SourcesGiven& given, int64_t window, SequencePairs& pairs) {
  std::string last;
  for (size_t i = 0; i < pairs.sources.size(); ++i) {
    std::vector<int32_t>& source = pairs.sources[i];
    if (std::ssize(source) <= window) continue;
    if (!last.empty()) log::warn("{}: nothing is written for it", last);
    last = fmt::format("line {} of {} has {} tokens, and data.window is {}", i + 1,
                       given.file.empty() ? "--text" : given.file, source.size(), window);
    source.clear();
  }
  if (last.empty()) return;
  if (std::ranges::all_of(pairs.sources, &std::vector<int32_t>::empty))
    throw ConfigError(last + ": the network was not trained for such sources; cut them");
  log::warn("{}: nothing is written for it", last);
}

void read_lines(const SourcesGiven& given, const TrainedPairs& trained, SequencePairs& pairs) {
  const auto of_source = kept_tokenizer(trained, kSourceTokenizerFolder);
  if (!of_source || !pairs.tokenizer || pairs.tokenizer->end_token() < 0)
    throw ConfigError(fmt::format(
        "no tokenizers lie beside {}, {} or its data, so a text cannot be read as its sources "
        "were: give --split, a part of its data set",
        trained.weights.string(), trained.file.string()));
  const int64_t window = trained.config.data.window;
  pairs.end_token = pairs.tokenizer->end_token();
  pairs.fields = std::make_unique<PairFields>(window, of_source->size(), pairs.tokenizer->size());
  for (const std::string& line : given_lines(given)) {
    if (given.samples > 0 && std::ssize(pairs.sources) == given.samples) break;
    of_source->encode(line, given.file.empty() ? "--text" : given.file,
                      pairs.sources.emplace_back());
  }
  leave_out_long(given, window, pairs);
}

/// Reads sources and targets; the field that the network learns holds the target and the end token.
void read_samples(const SourcesGiven& given, const config::RunConfig& config,
                  SequencePairs& pairs) {
  auto set = open_configured(config, given.split);
  const size_t source = data::field_index(*set, "source"), next = data::field_index(*set, "next");
  const data::PairSet* const text = data::pairs_in(*set);
  if (text && pairs.tokenizer && text->target().tokenizer_identity() != pairs.tokenizer->identity())
    throw ConfigError(fmt::format(
        "the token files in {} were written with another tokenizer than those of the run",
        config.data.dir));
  data::Sample sample(set->fields());
  const int64_t count = given.samples > 0 ? std::min(given.samples, set->size()) : set->size();
  for (int64_t i = 0; i < count; ++i) {
    set->read(i, sample);
    const auto tokens = [&](size_t field) {
      const auto* numbers = static_cast<const int32_t*>(sample.at(field));
      return std::vector<int32_t>(
          numbers, std::find(numbers, numbers + set->fields()[field].elements(), -1));
    };
    pairs.sources.push_back(tokens(source));
    pairs.targets.push_back(tokens(next));
    CHECK(!pairs.targets.back().empty(), "sample {} has no end token", i);
    pairs.end_token = pairs.targets.back().back();
    pairs.targets.back().pop_back();
  }
  pairs.fields = std::move(set);
}

std::string SequencePairs::text_of_target(std::span<const int32_t> tokens) const {
  if (!tokenizer) return fmt::format("{}", fmt::join(tokens, " "));
  std::string text = tokenizer->decode(tokens);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::vector<std::string> SequencePairs::words_of_target(std::span<const int32_t> tokens) const {
  if (tokenizer) return train::bleu_words(text_of_target(tokens));
  std::vector<std::string> words;
  for (const int32_t token : tokens) words.push_back(fmt::format("{}", token));
  return words;
}

// Reads pairs with the tokenizers of such weights (run_tokenizer.h). A line longer than
// data.window becomes an empty source, and a warning names it. Throws ConfigError if all lines are
// too long, no tokenizer is known, or the data set has another one.
SequencePairs sequence_pairs(const SourcesGiven& given, const TrainedPairs& trained) {
  const config::DataSection& data = trained.config.data;
  if (data.dataset != "token-pairs")
    throw ConfigError(fmt::format(
        "data.dataset = \"{}\" has no sources: translate is for models of \"token-pairs\"",
        data.dataset));
  if (given.text.empty() && given.file.empty() && given.split.empty())
    throw ConfigError("translate needs sources: give --text, --input or --split, one of them");
  SequencePairs pairs;
  pairs.tokenizer = kept_tokenizer(trained, kTokenizerFolder);
  if (given.split.empty())
    read_lines(given, trained, pairs);
  else
    read_samples(given, trained.config, pairs);
  return pairs;
}

struct TranslateVerb {
  std::string weights, data_dir, output;
  SourcesGiven sources;
  train::BeamSettings beam;
  int64_t side_by_side = 16;
  ModelRun run{};
  bool json = false;
};

/// The quality of translations, compared with the data set's targets.
struct TranslationQuality {
  train::Bleu bleu;
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
  const train::Bleu& bleu = q.bleu;
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
    for (size_t n = 1; n <= train::Bleu::kLongest; ++n)
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
std::vector<train::WrittenSequence> written_by(train::Translator& translator,
                                               const SequencePairs& pairs) {
  std::vector<std::vector<int32_t>> sources;
  for (const std::vector<int32_t>& source : pairs.sources)
    if (!source.empty()) sources.push_back(source);
  std::vector<train::WrittenSequence> found = translator.write(sources), all;
  auto next = found.begin();
  for (const std::vector<int32_t>& source : pairs.sources)
    all.push_back(source.empty() ? train::WrittenSequence{} : std::move(*next++));
  return all;
}

int translate(const TranslateVerb& verb, const GivenNames& given, const train::FoundWeights& found,
              config::RunConfig& config) {
  take_task(found, config);
  const SequencePairs pairs = sequence_pairs(verb.sources, {verb.weights, given.config, config});
  const ComputeBackend compute = compute_backend(config);
  train::BeamSettings beam = verb.beam;
  beam.end_token = pairs.end_token;
  const int64_t side_by_side =
      std::clamp(std::ssize(pairs.sources), std::ptrdiff_t{1}, std::ptrdiff_t{verb.side_by_side});
  train::Translator translator(train::model_spec(config, *pairs.fields, 1), side_by_side, beam,
                               compute.backend(), plan_options_for(config, found));
  train::Weights weights(translator.variables(), 1);
  import_weights(given, found, weights);
  translator.bind(weights.replica(0));
  const std::vector<train::WrittenSequence> written = written_by(translator, pairs);
  std::string text;
  for (const train::WrittenSequence& one : written) text += pairs.text_of_target(one.tokens) + "\n";
  if (!verb.output.empty()) {
    keep::write_result_file(verb.output, text);
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
  const std::string file = configuration_of(verb.weights, verb.run.config);
  ResolvedConfig resolved = read_config({.file = file, .flags = verb.run.device.settings()});
  config::RunConfig& config = resolved.config;
  if (!verb.data_dir.empty()) config.data.dir = verb.data_dir;
  const train::FoundWeights found = train::find_weights(verb.weights, "translate");
  set_model_compute(found, verb.run.threads, config);
  const GivenNames given{.verb = "translate", .weights = verb.weights, .config = file};
  return naming_networks(given, found, config,
                         [&] { return translate(verb, given, found, config); });
}

std::vector<Flag> translate_flags(TranslateVerb& state) {
  return {
      flag("--text", "TEXT", "A source", &state.sources.text),
      excluding(named_flag(Names::file, "--input", "FILE",
                           "Sources, one a line; one that data.window has no room for is left out",
                           &state.sources.file),
                {"--text"}),
      excluding(choice_flag("--split",
                            "The sources of a part of the configured data set, whose targets are "
                            "what the result is compared with",
                            &state.sources.split, {"test", "validation", "train"}),
                {"--text", "--input"}),
      flag("--samples", "N", "Only the first N of them. 0: all", &state.sources.samples, {0}),
      named_flag(Names::file, "--output", "FILE",
                 "Gets what is written, a line for each source. Empty: it is printed, but for a "
                 "--split",
                 &state.output),
      flag("--beam", "N", "Sequences that are followed side by side; 1: always the likeliest token",
           &state.beam.size, {1, 1024}),
      flag("--length-penalty", "A",
           "Sequences of n tokens are compared by log p / ((5 + n) / 6)^A (Wu et al. 2016)",
           &state.beam.length_penalty, {0, 10}),
      flag("--batch", "N", "Sources at a time", &state.side_by_side, {1, 65536}),
      named_flag(Names::folder, "--data-dir", "DIR",
                 "The data set's folder. Empty: data.dir of the configuration", &state.data_dir),
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
          .flags = joined(translate_flags(*state), model_flags(state->run)),
          .examples = {{"tutti translate runs/mine --text hello",
                        "Translate a word or, in quotes, a sentence"},
                       {"tutti translate runs/mine --split test --beam 4 --output test.txt",
                        "Translate the test set and compare with its targets"}},
          .see_also = {"tutti help train", "tutti help eval", "docs/workloads/translation.md"},
          .run = [state] { return run_translate(*state); }};
}

}  // namespace tutti::cli
