#pragma once
// tokenize turns text files into token files and the tokenizer that wrote them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::data {

struct TokenizeSpec {
  std::vector<std::filesystem::path> inputs{};  ///< in the order of the text
  std::filesystem::path to{};     ///< gets vocab.json, merges.txt and PART-00000.tokens
  std::string kind = "bpe";       ///< "bytes", "characters" or "bpe", trained on the text
  std::filesystem::path files{};  ///< folder of a tokenizer to use instead; empty: none
  int64_t vocabulary = 8192;      ///< for "bpe": most tokens
  std::string part = "train";     ///< part of the data set to write
  double validation = 0;  ///< share of the bytes, from the end, that becomes the part "validation"
  std::string separator{};  ///< text between documents, encoded as the end token; empty: none
  int64_t shard_tokens = 100'000'000;
  int threads = 1;  ///< the output does not depend on it
};

struct TokenizedPart {
  std::string part;
  int64_t bytes = 0, tokens = 0, documents = 0;
  int64_t shards = 0;
};

struct Tokenized {
  std::string kind;
  int64_t vocabulary = 0;
  std::vector<TokenizedPart> parts;
};

/// Reads each text in blocks, once, or twice if a tokenizer is trained on it. A document begins
/// with the end token, if the tokenizer has one: one for byte pairs does, the others do if there is
/// a separator. Each file also begins a document. ConfigError for an incomplete specification;
/// BadFile, IoError.
Tokenized tokenize(const TokenizeSpec& spec);

}  // namespace tutti::data
