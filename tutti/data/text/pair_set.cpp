#include "tutti/data/text/pair_set.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/subset.h"

namespace tutti::data {
namespace {

std::unique_ptr<TextSource> open_documents(const std::vector<std::filesystem::path>& files) {
  auto text = token_shards(files);
  if (text->end_token() < 0)
    throw BadFile(
        "{}: its documents are not told apart: make it anew with 'tutti data tokenize --separator'",
        files.front().string());
  return text;
}

}  // namespace

std::vector<PairSet::Places> PairSet::documents_of(const TextSource& text) {
  std::vector<Places> places;
  std::vector<int32_t> block;
  for (int64_t at = 0; at < text.size(); at += std::ssize(block)) {
    block.resize(static_cast<size_t>(std::min<int64_t>(text.size() - at, 1 << 18)));
    text.read(at, block);
    for (size_t i = 0; i < block.size(); ++i) {
      const int64_t here = at + static_cast<int64_t>(i);
      if (block[i] == text.end_token())
        places.push_back({here + 1, 0});
      else if (!places.empty())
        ++places.back().count;
    }
  }
  return places;
}

PairSet::PairSet(const PairSetSpec& spec)
    : source_(open_documents(spec.source)), target_(open_documents(spec.target)),
      window_(spec.window) {
  const std::vector<Places> sources = documents_of(*source_), targets = documents_of(*target_);
  if (sources.size() != targets.size())
    throw BadFile(
        "{} has {} documents, and {} has {}: document by document one is to be made from the "
        "other; tokenize texts with as many",
        spec.source.front().string(), sources.size(), spec.target.front().string(), targets.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool fits = sources[i].count > 0 && targets[i].count > 0 && sources[i].count <= window_ &&
                      targets[i].count < window_;
    if (fits)
      pairs_.push_back({sources[i], targets[i]});
    else
      ++left_out_;
  }
  if (pairs_.empty())
    throw ConfigError(fmt::format(
        "{}: none of {} pairs of documents fits data.window = {}, or one of both is empty: choose "
        "another window",
        spec.source.front().string(), left_out_, window_));
  const auto field = [&](const char* name, const TextSource& text) {
    return Field{.name = name,
                 .element = ElementType::i32,
                 .shape = {window_},
                 .class_names = std::vector<std::string>(static_cast<size_t>(text.vocabulary()))};
  };
  fields_ = {field("source", *source_), field("next", *target_), field("tokens", *target_)};
}

void PairSet::read(int64_t index, Sample& sample) const {
  const Pair& pair = pairs_[static_cast<size_t>(index)];
  const auto window = static_cast<size_t>(window_);
  const auto field = [&](size_t f) {
    const std::span<int32_t> numbers(static_cast<int32_t*>(sample.own(f)), window);
    std::ranges::fill(numbers, -1);
    return numbers;
  };
  const std::span<int32_t> source = field(0), next = field(1), tokens = field(2);
  source_->read(pair.source.first, source.first(static_cast<size_t>(pair.source.count)));
  const auto count = static_cast<size_t>(pair.target.count);
  target_->read(pair.target.first, next.first(count));
  next[count] = target_->end_token();
  tokens[0] = target_->end_token();
  std::copy_n(next.begin(), count, tokens.begin() + 1);
}

const PairSet* pairs_in(const Dataset& set) {
  const auto* const part = dynamic_cast<const Subset*>(&set);
  return dynamic_cast<const PairSet*>(part ? &part->whole() : &set);
}

}  // namespace tutti::data
