#include "tutti/cli/data/run_tokenizer.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/cli/job/job.h"
#include "tutti/data/text/text_set.h"

namespace tutti::cli {

namespace fs = std::filesystem;

void keep_tokenizer(const data::Tokenizer::Files& files, const fs::path& run, const char* name) {
  const fs::path folder = run / name;
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", folder.string(), failed.message()));
  data::write_tokenizer(*data::parse_tokenizer(files, folder.string()), folder);
}

fs::path tokenizer_near(const fs::path& weights, const char* folder) {
  fs::path at = weights.has_filename() ? weights : weights.parent_path();
  // The path is the run, its checkpoints, one of them, or a file in one.
  for (int up = 0; up < 4; ++up, at = at.parent_path()) {
    if (data::has_tokenizer(at / folder)) return at / folder;
    if (at.empty() || at == at.parent_path()) break;
  }
  return {};
}

fs::path tokenizer_of_weights(const fs::path& weights, const fs::path& file,
                              const config::RunConfig& config, const char* folder) {
  for (const fs::path& place : {weights, file})
    if (const fs::path near = tokenizer_near(place, folder); !near.empty()) return near;
  fs::path data = config.data.dir;
  if (config.data.dataset == "token-pairs")
    data /= std::string_view(folder) == kTokenizerFolder ? "target" : "source";
  else if (config.data.dataset == "text")
    data = config.data.vocabulary;
  return data::has_tokenizer(data) ? data : fs::path();
}

void check_tokenizer(const data::Tokenizer::Files& files, const fs::path& weights,
                     std::string_view key) {
  const fs::path near = tokenizer_near(weights);
  if (near.empty()) return;
  const data::Tokenizer::Files kept = data::read_tokenizer(near)->files();
  if (kept.vocabulary == files.vocabulary && kept.merges == files.merges) return;
  throw ConfigError(fmt::format(
      "{} = {}: its network was trained with another tokenizer than that of the training text, {}: "
      "by characters set data.vocabulary to that folder; 'tutti data tokenize --files {}' makes "
      "token files with it",
      key, weights.string(), near.string(), near.string()));
}

void take_tokenizer(const fs::path& weights, const std::string& part, config::RunConfig& config) {
  if (!config::is_text(config.data)) return;
  const fs::path near = tokenizer_near(weights);
  if (near.empty()) return;
  if (config.data.dataset == "text") {
    const bool characters = config.data.tokenizer == config::TextTokens::characters;
    if (characters && config.data.vocabulary.empty()) config.data.vocabulary = near.string();
    return;
  }
  const auto opened = open_configured(config, part);
  const auto& set = dynamic_cast<const data::TextSet&>(*opened);
  if (set.tokenizer_identity() != 0 &&
      set.tokenizer_identity() != data::read_tokenizer(near)->identity())
    throw ConfigError(fmt::format(
        "the token files in {} were written with another tokenizer than the run's, {}: tokenize "
        "their text with it ('tutti data tokenize --files {}')",
        config.data.dir, near.string(), near.string()));
}

}  // namespace tutti::cli
