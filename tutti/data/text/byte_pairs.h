#pragma once
// Encodes text as byte pairs (Gage 1994; Sennrich, Haddow, Birch 2016; with bytes: Radford et al.
// 2019): text is cut into pieces (pre_tokens.h); in each piece the pair of neighbours that is
// earliest in the list of merges becomes one token, until no listed pair is left. Any bytes can be
// encoded, and decoding restores them.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/data/text/tokenizer.h"

namespace tutti::data {

struct TokenPair {
  int32_t left = 0, right = 0;
  bool operator==(const TokenPair&) const = default;
  uint64_t key() const {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
};

struct BytePairs {
  std::vector<std::string> tokens;  ///< the bytes of each token
  std::vector<TokenPair> merges;    ///< in the order of their rank; `tokens` has each result
  int32_t end_token = -1;           ///< its bytes are its name
};

class BytePairTokenizer final : public Tokenizer {
 public:
  /// BadFile beginning with `name` unless each single byte is a token, all tokens differ, and each
  /// merge joins bytes or results of earlier merges into a token.
  BytePairTokenizer(BytePairs pairs, const std::string& name);

  std::string_view kind() const override { return pairs_.merges.empty() ? "bytes" : "bpe"; }
  int64_t size() const override { return std::ssize(pairs_.tokens); }
  int32_t end_token() const override { return pairs_.end_token; }
  void encode(std::string_view text, const TextPlace& place,
              std::vector<int32_t>& tokens) const override;
  std::string_view text_of(int32_t token) const override;
  Files files() const override;

 private:
  struct Merge {
    int32_t rank = 0, token = 0;
  };
  void encode_piece(std::string_view piece, std::vector<int32_t>& tokens) const;
  const Merge* merge_of(int32_t left, int32_t right) const;

  BytePairs pairs_;
  std::array<int32_t, 256> of_byte_{};
  std::unordered_map<uint64_t, Merge> merges_;  // by TokenPair::key()
};

/// Returns the 256 bytes as tokens in GPT-2's order: printable ones first.
std::vector<std::string> single_bytes();

}  // namespace tutti::data
