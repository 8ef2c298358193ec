#include "tutti/cli/data/inspect_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "tutti/base/json.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/cli/data/data_suggestion.h"
#include "tutti/config/config.h"
#include "tutti/data/open/open.h"
#include "tutti/data/text/pair_set.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWidestWindow = 1024;  // longer pairs are counted but not read
constexpr int64_t kPairsLookedAt = 1000;

/// Returns the tokens of a field up to their end, without the end token.
std::vector<int32_t> tokens_of(const data::Sample& sample, size_t field, int32_t end) {
  const auto* numbers = static_cast<const int32_t*>(sample.at(field));
  const auto* last = std::find_if(numbers, numbers + kWidestWindow,
                                  [&](int32_t token) { return token < 0 || token == end; });
  return {numbers, last};
}

/// Returns the tokens as text if a tokenizer lies beside them.
std::string shown(const data::Tokenizer* tokenizer, const std::vector<int32_t>& tokens) {
  if (tokenizer) return print_json(Json(as_utf8(tokenizer->decode(tokens))));
  return fmt::format("{}", fmt::join(tokens, " "));
}

struct InspectedPairs {
  std::string listing;
  int64_t window = 1;  ///< fits all pairs that were read
};

InspectedPairs inspect_first(const data::PairSet& set) {
  InspectedPairs found;
  data::Sample sample(set.fields());
  std::string first;
  const int64_t count = std::min(set.size(), kPairsLookedAt);
  for (int64_t i = 0; i < count; ++i) {
    set.read(i, sample);
    const auto source = tokens_of(sample, 0, -1),
               target = tokens_of(sample, 1, set.target().end_token());
    found.window = std::max({found.window, std::ssize(source), std::ssize(target) + 1});
    if (i == 0)
      first = fmt::format("{} -> {}", shown(set.source_tokenizer(), source),
                          shown(set.tokenizer(), target));
  }
  found.listing = fmt::format(
      "{} pairs of vocabularies of {} and {}, the first {} of up to {} tokens\n  {}\n", set.size(),
      set.source().vocabulary(), set.target().vocabulary(), count, found.window, first);
  if (set.left_out() > 0)
    found.listing += fmt::format("  {} more are longer than {} tokens, or one of both is empty\n",
                                 set.left_out(), kWidestWindow);
  return found;
}

}  // namespace

bool is_pair_set(const fs::path& folder) {
  std::error_code unknown;
  return std::ranges::all_of(std::array{"source", "target"}, [&](const char* side) {
    return std::ranges::any_of(fs::directory_iterator(folder / side, unknown), [](const auto& e) {
      return e.path().extension() == ".tokens" &&
             e.path().filename().string().starts_with("train-");
    });
  });
}

InspectedData inspect_pairs(const fs::path& folder) {
  data::DatasetSpec spec{.name = "token-pairs", .dir = folder};
  spec.text.window = kWidestWindow;
  InspectedData report;
  int64_t window = 1, pairs = 0;
  bool judged = false;
  for (const char* part : {"train", "validation", "test"}) {
    spec.split = part;
    if (!data::has_split(spec)) continue;
    const auto opened = data::open_dataset(spec);
    const auto& set = dynamic_cast<const data::PairSet&>(*opened);
    const InspectedPairs found = inspect_first(set);
    report.listing += fmt::format("{}: {}: {}", folder.string(), part, found.listing);
    window = std::max(window, found.window);
    if (std::string_view(part) == "train")
      pairs = set.size();
    else
      judged = true;
  }
  const HeldOut held = judged ? HeldOut{"", pairs} : held_out(pairs);
  report.configuration = fmt::format(
      "[data]\ndataset = \"token-pairs\"\ndir = {}\nwindow = {}\n{}\n[model]\nname = "
      "\"transformer-base\"\ndepth = 2\nheads = 4\nwidth = 128\nhidden = "
      "[512]\n\n[optimizer]\nname "
      "= \"adamw\"\nlr = 0.001\nclip_norm = 1.0\n\n[batch]\nglobal = {}\n\n[run]\nepochs = 1\n",
      toml_of_path(fs::absolute(folder).lexically_normal()), window, held.line,
      std::min<int64_t>(held.left, 32));
  return report;
}

}  // namespace tutti::cli
