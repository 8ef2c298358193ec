#include "tutti/cli/infer/pairs_to_translate.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/cli/data/run_tokenizer.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/text_file.h"
#include "tutti/data/text/pair_set.h"
#include "tutti/train/metrics/bleu.h"

namespace tutti {
namespace {

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
void read_samples(const SourcesGiven& given, const RunConfig& config, SequencePairs& pairs) {
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

}  // namespace

std::string SequencePairs::text_of_target(std::span<const int32_t> tokens) const {
  if (!tokenizer) return fmt::format("{}", fmt::join(tokens, " "));
  std::string text = tokenizer->decode(tokens);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::vector<std::string> SequencePairs::words_of_target(std::span<const int32_t> tokens) const {
  if (tokenizer) return bleu_words(text_of_target(tokens));
  std::vector<std::string> words;
  for (const int32_t token : tokens) words.push_back(fmt::format("{}", token));
  return words;
}

SequencePairs sequence_pairs(const SourcesGiven& given, const TrainedPairs& trained) {
  const DataSection& data = trained.config.data;
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

}  // namespace tutti
