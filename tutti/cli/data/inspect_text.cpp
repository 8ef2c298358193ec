#include "tutti/cli/data/inspect_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/config/config.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"
#include "tutti/data/text/text_set.h"
#include "tutti/data/text/token_file.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

/// More characters than any alphabet has: a text with more is read as bytes.
constexpr int64_t kMostCharacters = 1024;
constexpr int64_t kShownTokens = 64;

/// Returns the data set whose names the folder's files have; empty: none.
std::string text_set_in(const fs::path& folder) {
  std::error_code unknown;
  for (const char* set : {"tokens", "text"}) {
    const std::string& pattern = data::known_dataset(set).train_files.front();
    const size_t star = pattern.find('*');
    for (const auto& entry : fs::directory_iterator(folder, unknown)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(pattern.substr(0, star)) && name.ends_with(pattern.substr(star + 1)))
        return set;
    }
  }
  return "";
}

/// Returns how the path is read: data.dataset, data.dir and the settings that go with them.
data::DatasetSpec spec_of(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) return {.name = text_set_in(path), .dir = path};
  data::DatasetSpec spec{.name = path.extension() == ".tokens" ? "tokens" : "text",
                         .dir = fs::absolute(path).lexically_normal().parent_path()};
  spec.arrays.train = {path.filename().string()};
  return spec;
}

std::unique_ptr<data::Dataset> open_part(data::DatasetSpec spec, const std::string& part) {
  spec.split = part;
  spec.text.window = 1;
  return data::open_dataset(spec);
}

/// Reads a text of few characters by characters, any other by bytes.
void choose_tokens(data::DatasetSpec& spec) {
  spec.text.kind = data::TextSetSpec::Kind::characters;
  try {
    const auto set = open_part(spec, "train");
    if (dynamic_cast<const data::TextSet&>(*set).vocabulary() <= kMostCharacters) return;
  } catch (const data::BadFile&) {}  // not UTF-8, or refused as bytes, too
  spec.text.kind = data::TextSetSpec::Kind::bytes;
}

/// Returns the first tokens, as text if a tokenizer lies beside them.
std::string beginning_of(const data::TextSet& set) {
  data::Sample sample(set.fields());
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < std::min(set.size(), kShownTokens); ++i) {
    set.read(i, sample);
    tokens.push_back(*static_cast<const int32_t*>(sample.at(0)));
  }
  if (set.tokenizer()) return print_json(Json(as_utf8(set.tokenizer()->decode(tokens))));
  std::string text;
  for (const int32_t token : tokens) text += fmt::format("{}{}", text.empty() ? "" : " ", token);
  return text;
}

}  // namespace

bool is_text_path(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) return !text_set_in(path).empty();
  return path.extension() == ".txt" || path.extension() == ".tokens";
}

InspectedData inspect_text(const fs::path& path) {
  data::DatasetSpec spec = spec_of(path);
  const bool tokens = spec.name == "tokens";
  if (!tokens) choose_tokens(spec);
  InspectedData report;
  int64_t count = 0;
  bool judged = false;
  for (const char* part : {"train", "validation", "test"}) {
    spec.split = part;
    if (!data::has_split(spec)) continue;
    const auto opened = open_part(spec, part);
    const auto& set = dynamic_cast<const data::TextSet&>(*opened);
    const std::string_view kind = set.tokenizer() ? set.tokenizer()->kind() : "not known";
    report.listing +=
        fmt::format("{}: {}: {} tokens of a vocabulary of {} ({})\n  begins with {}\n",
                    path.string(), part, set.tokens(), set.vocabulary(), kind, beginning_of(set));
    if (std::string_view(part) == "train")
      count = set.tokens();
    else
      judged = true;
  }
  const int64_t window = std::clamp<int64_t>(count / 64, 1, 64);
  const bool bytes = spec.text.kind == data::TextSetSpec::Kind::bytes;
  report.configuration = fmt::format(
      "[data]\ndataset = \"{}\"\ndir = {}\n{}{}window = {}\n{}\n[model]\nname = \"gpt2\"\ndepth = "
      "4\nheads = 4\nwidth = 128\ndropout = 0.0\n\n[optimizer]\nname = \"adamw\"\nlr = "
      "0.001\nclip_norm = 1.0\n\n[batch]\nglobal = 12\n\n[run]\nepochs = 1\n",
      spec.name, toml_of_path(fs::absolute(spec.dir).lexically_normal()),
      spec.arrays.train.empty()
          ? ""
          : fmt::format("train_files = {}\n", config::to_toml(spec.arrays.train)),
      tokens ? "" : fmt::format("tokenizer = \"{}\"\n", bytes ? "bytes" : "characters"), window,
      judged ? "" : "validation = 0.1  # there is no validation text: the last tenth\n");
  return report;
}

}  // namespace tutti::cli
