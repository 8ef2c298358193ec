// tutti generate: continues text with a trained language model.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "tutti/base/log.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/visible.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/flags/flag_rows.h"
#include "tutti/cli/infer/import_weights.h"
#include "tutti/cli/infer/trained_model.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/cli/job/launch.h"
#include "tutti/cli/verbs/verbs.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/models/registry.h"
#include "tutti/train/infer/language_network.h"
#include "tutti/train/infer/token_choice.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

struct GenerateVerb {
  std::string weights, tokenizer, prompt, prompt_file;
  int64_t tokens = 200, samples = 1;
  int window = 0;
  uint64_t seed = 1;
  ModelRun run{};
  train::TokenChoice choice{};
};

/// The fields of a text's samples, for a network that takes its data's form from them.
class TextFields final : public data::Dataset {
 public:
  TextFields(int64_t window, int64_t vocabulary)
      : fields_{{.name = "tokens", .element = data::ElementType::i32, .shape = {window}},
                {.name = "next", .element = data::ElementType::i32, .shape = {window}}} {
    for (data::Field& field : fields_) field.class_names.resize(static_cast<size_t>(vocabulary));
  }
  int64_t size() const override { return 0; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t, data::Sample&) const override {}

 private:
  std::vector<data::Field> fields_;
};

std::unique_ptr<data::Tokenizer> tokenizer_of(const GenerateVerb& verb, const std::string& file,
                                              const config::RunConfig& config) {
  const std::filesystem::path folder = verb.tokenizer.empty()
                                           ? tokenizer_of_weights(verb.weights, file, config)
                                           : std::filesystem::path(verb.tokenizer);
  if (folder.empty())
    throw ConfigError(fmt::format(
        "no tokenizer lies beside {}, {} or its data, so what its tokens mean is not known: name "
        "the folder of its vocab.json with --tokenizer",
        verb.weights, file));
  return data::read_tokenizer(folder);
}

std::string prompt_of(const GenerateVerb& verb) {
  if (verb.prompt_file.empty()) return verb.prompt;
  const data::FileBytes file = data::FileBytes::open(verb.prompt_file);
  std::string text(static_cast<size_t>(file.size()), '\0');
  if (!text.empty()) file.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return text;
}

/// Returns the tokens to begin with. Without a prompt: the beginning of a document, or of a line,
/// or the first token.
std::vector<int32_t> first_tokens(const GenerateVerb& verb, const data::Tokenizer& tokenizer,
                                  const std::string& prompt) {
  std::vector<int32_t> tokens;
  if (!prompt.empty()) {
    tokenizer.encode(prompt, verb.prompt_file.empty() ? "--prompt" : verb.prompt_file, tokens);
    return tokens;
  }
  if (tokenizer.end_token() >= 0) return {tokenizer.end_token()};
  for (int32_t t = 0; t < tokenizer.size(); ++t)
    if (tokenizer.text_of(t) == "\n") return {t};
  return {0};
}

void print_text(std::string_view text) {
  keep_bytes_of_output();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void write_sample(const GenerateVerb& verb, int64_t sample, const data::Tokenizer& tokenizer,
                  train::LanguageNetwork& network) {
  const std::string prompt = prompt_of(verb);
  std::vector<int32_t> tokens = first_tokens(verb, tokenizer, prompt);
  print_text(prompt);
  Rng rng(verb.seed, Purpose::text_tokens, static_cast<uint64_t>(sample));
  for (int64_t i = 0; i < verb.tokens; ++i) {
    const auto seen = std::min(tokens.size(), static_cast<size_t>(network.window()));
    const auto logits = network.logits(std::span(tokens).last(seen));
    const double uniform = static_cast<double>(rng.next_u64() >> 11) * 0x1p-53;
    tokens.push_back(train::choose_token(logits.first(static_cast<size_t>(tokenizer.size())),
                                         verb.choice, uniform));
    if (tokens.back() == tokenizer.end_token()) break;
    print_text(tokenizer.text_of(tokens.back()));
  }
  print_text("\n");
}

int generate(const GenerateVerb& verb, const GivenNames& given, const train::FoundWeights& found,
             config::RunConfig& config) {
  take_task(found, config);
  if (config.data.dataset == "token-pairs")
    throw ConfigError(fmt::format(
        "the network of {} writes one sequence from another: 'tutti translate' gives it sources",
        verb.weights));
  const auto tokenizer = tokenizer_of(verb, given.config, config);
  const int64_t window = verb.window > 0 ? verb.window : config.data.window;
  if (window != config.data.window && config.model.context == 0 &&
      models::find_model(config.model.name).takes_context)
    config.model.context = config.data.window;  // learned positions
  // The input is tokens alone, without numbers of documents: the text is one document.
  config.data.input.clear();
  const TextFields fields(window, tokenizer->size());
  const ComputeBackend compute = compute_backend(config);
  train::LanguageNetwork network(train::model_spec(config, fields, 1), compute.backend(),
                                 plan_options_for(config, found));
  if (network.vocabulary() < tokenizer->size())
    throw ConfigError(fmt::format(
        "the network knows {} tokens, and the tokenizer has {}: name the one that it was trained "
        "with in --tokenizer",
        network.vocabulary(), tokenizer->size()));
  train::Weights weights(network.plan().variables, 1);
  import_weights(given, found, weights);
  network.bind(weights.replica(0));
  for (int64_t sample = 0; sample < verb.samples; ++sample) {
    if (sample > 0) print_text("---\n");
    write_sample(verb, sample, *tokenizer, network);
  }
  return 0;
}

int run_generate(const GenerateVerb& verb) {
  log::configure(log::Level::warn, 0, 1);  // the output is the text
  const std::string file = configuration_of(verb.weights, verb.run.config);
  ResolvedConfig resolved = read_config({.file = file, .flags = verb.run.device.settings()});
  const train::FoundWeights found = train::find_weights(verb.weights, "generate");
  set_model_compute(found, verb.run.threads, resolved.config);
  const GivenNames given{.verb = "generate", .weights = verb.weights, .config = file};
  return naming_networks(given, found, resolved.config,
                         [&] { return generate(verb, given, found, resolved.config); });
}

std::vector<Flag> generate_flags(GenerateVerb& state) {
  return {
      flag("--prompt", "TEXT",
           "What the text begins with. Without it: a document's beginning, else a line's",
           &state.prompt),
      excluding(named_flag(Names::file, "--prompt-file", "FILE", "The same from a file",
                           &state.prompt_file),
                {"--prompt"}),
      flag("--tokens", "N", "Tokens to add; fewer where a document ends", &state.tokens, {1}),
      flag("--temperature", "X",
           "Divides the logits: below 1 likely tokens become more likely. 0: always the "
           "most likely one",
           &state.choice.temperature, {0, 1000}),
      flag("--top-k", "N", "Only the N most likely tokens. 0: all", &state.choice.top_k, {0}),
      flag("--top-p", "X",
           "Of these only the most likely ones that have this share of the probability",
           &state.choice.top_p, {0, 1}),
      flag("--seed", "N", "The text is a function of it", &state.seed),
      flag("--samples", "N", "Texts, with --- between them", &state.samples, {1}),
      flag("--window", "N", "Tokens that the network looks back at. 0: data.window", &state.window,
           {0}),
      named_flag(Names::folder, "--tokenizer", "DIR",
                 "The tokenizer's folder. Empty: the one that the run has kept", &state.tokenizer)};
}

}  // namespace

Verb generate_verb() {
  auto state = std::make_shared<GenerateVerb>();  // shared: std::function must be copyable
  return {.name = "generate",
          .summary = "Write text with a trained language model",
          .text =
              "Goes on with a text, a token at a time, each drawn from what the network makes of "
              "those before it; the same flags and weights give the same text. Texts are printed "
              "as they come about.",
          .arguments = {weights_argument(state->weights, "generate", "tutti generate runs/mine")},
          .flags = joined(generate_flags(*state), model_flags(state->run)),
          .examples = {{"tutti generate runs/mine --prompt \"ROMEO:\" --tokens 500 --seed 3",
                        "Go on with a speech"},
                       {"tutti generate runs/mine --temperature 0.8 --top-k 40",
                        "Leave out what is unlikely"}},
          .see_also = {"tutti help train", "docs/workloads/text.md"},
          .run = [state] { return run_generate(*state); }};
}

}  // namespace tutti::cli
