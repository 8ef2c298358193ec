#pragma once
// tokenize: from text files to token files and the tokenizer that wrote them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::data {

struct TokenizeSpec {
  std::vector<std::filesystem::path> inputs{};  ///< in the order of the text
  std::filesystem::path to{};     ///< gets vocab.json, merges.txt and PART-00000.tokens
  std::string kind = "bpe";       ///< "bytes", "characters" or "bpe", made of the text
  std::filesystem::path files{};  ///< the folder of a tokenizer to take instead; empty: none
  int64_t vocabulary = 8192;      ///< of "bpe", at most
  std::string part = "train";     ///< of the data set that is written
  double validation = 0;  ///< share of the bytes, from the end, that become the part "validation"
  std::string
      separator{};  ///< stands between documents, and becomes the end token; empty: none does
  int64_t shard_tokens = 100'000'000;
  int threads = 1;  ///< nothing that is written depends on them
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

/// Reads each text once, or twice where a tokenizer is made of it, in blocks. A document begins
/// with the end token, if the tokenizer has one: that of byte pairs does, the others where there is
/// a separator; each file begins a document, too. ConfigError for what the specification lacks;
/// BadFile, IoError.
Tokenized tokenize(const TokenizeSpec& spec);

}  // namespace tutti::data
