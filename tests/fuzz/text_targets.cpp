#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tutti/data/text/pair_set.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/text_set.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti::fuzz {
namespace {

void read_samples(const data::Dataset& set) {
  data::Sample sample(set.fields());
  for (int64_t i = 0; i < set.size(); ++i) set.read(i, sample);
}

void encode_and_decode(const std::string& given) {
  static const auto kTokenizer = data::parse_tokenizer(
      [] {
        data::Tokenizer::Files files = data::byte_tokenizer(false)->files();
        files.vocabulary.replace(files.vocabulary.rfind('}'), 1, ", \"ab\": 256, \"aba\": 257}");
        files.merges += "a b\nab a\n";
        return files;
      }(),
      "own");
  std::vector<int32_t> tokens;
  kTokenizer->encode(given, "input", tokens);
  CHECK(kTokenizer->decode(tokens) == given, "{} bytes came back otherwise", given.size());
  CHECK(given.empty() || data::last_safe_cut(given) < given.size(), "a cut behind the end");
}

/// Any bytes can be encoded and come back; as a set of characters they are accepted or refused.
void text(Bytes bytes) {
  try {
    encode_and_decode(std::string(bytes.begin(), bytes.end()));
  } catch (const Error& error) {  // no answer, of whatever type
    CHECK(false, "{}", error.what());
  }
  const auto file = as_file("text", bytes);
  using Kind = data::TextSetSpec::Kind;
  for (const Kind kind : {Kind::bytes, Kind::characters})
    answer([&] {
      read_samples(data::TextSet({.kind = kind, .files = {file, file}, .window = 7}));
    });
}

/// Returns a token file; `mend` corrects the checksums of header and tokens, which no search would
/// find.
std::vector<uint8_t> token_bytes(Bytes bytes, bool mend) {
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  constexpr size_t kHeader = data::kTokenHeaderBytes;
  if (!mend || file.size() < kHeader) return file;
  const uint64_t of_tokens = XXH64(file.data() + kHeader, file.size() - kHeader, 0);
  std::memcpy(file.data() + 32, &of_tokens, sizeof of_tokens);
  const uint64_t of_header = data::token_header_sum(file);
  std::memcpy(file.data() + 56, &of_header, sizeof of_header);
  return file;
}

/// A first byte of 1 mends the checksums.
void token_file(Bytes bytes) {
  if (bytes.empty()) return;
  const auto path = as_file("train-0.tokens", token_bytes(bytes.subspan(1), bytes[0] == 1));
  answer([&] { data::TokenFile(data::FileBytes::open(path)).verify(); });
  read_samples(data::TextSet(
      {.kind = data::TextSetSpec::Kind::tokens, .files = {path}, .window = 7, .anywhere = true}));
}

/// A first byte of 1 mends the checksums; two bytes hold the size of the sources' file; both files
/// follow.
void pairs(Bytes bytes) {
  if (bytes.size() < 3) return;
  const bool mend = bytes[0] == 1;
  const size_t first = std::min<size_t>(bytes[1] | bytes[2] << 8, bytes.size() - 3);
  const auto source = as_file("source.tokens", token_bytes(bytes.subspan(3, first), mend));
  const auto target = as_file("target.tokens", token_bytes(bytes.subspan(3 + first), mend));
  read_samples(data::PairSet({.source = {source}, .target = {target}, .window = 7}));
}

/// The input is vocab.json, a zero byte, merges.txt.
void vocabulary(Bytes bytes) {
  const auto zero = std::ranges::find(bytes, 0);
  data::Tokenizer::Files files{std::string(bytes.begin(), zero), {}};
  if (zero != bytes.end()) files.merges.assign(zero + 1, bytes.end());
  const auto tokenizer = data::parse_tokenizer(files, "input");
  const auto again = data::parse_tokenizer(tokenizer->files(), "again");
  CHECK(again->size() == tokenizer->size() && again->identity() == tokenizer->identity(),
        "{} tokens became {}", tokenizer->size(), again->size());
}

constexpr std::array<Target, 4> kTargets = {
    {{"text", text}, {"token_file", token_file}, {"pairs", pairs}, {"vocabulary", vocabulary}}};

}  // namespace

std::span<const Target> text_targets() { return kTargets; }

}  // namespace tutti::fuzz
