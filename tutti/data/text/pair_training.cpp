#include "tutti/data/text/pair_training.h"

#include <algorithm>
#include <array>
#include <queue>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/data/text/byte_pairs.h"
#include "tutti/data/text/pre_tokens.h"

namespace tutti::data {
namespace {

struct CountedPair {
  int64_t count = 0;
  TokenPair pair;
  /// Orders pairs so that the greatest in the queue is merged next.
  bool operator<(const CountedPair& other) const {
    return count != other.count ? count < other.count : pair.key() > other.pair.key();
  }
};

/// Keeps counts of pairs up to date as merges change the pieces: each merge visits only the pieces
/// that have its pair. The queue may hold old counts, but never too small ones: a count that comes
/// out of it is compared, and goes back with its right value.
class PairTraining {
 public:
  explicit PairTraining(const PieceCounts& pieces) : tokens_(single_bytes()) {
    std::array<int32_t, 256> of_byte{};
    for (const std::string& byte : tokens_)
      of_byte[static_cast<uint8_t>(byte[0])] = static_cast<int32_t>(&byte - tokens_.data());
    for (size_t t = 0; t < tokens_.size(); ++t) known_.emplace(tokens_[t], static_cast<int32_t>(t));
    for (const auto& [text, count] : pieces.counts()) {
      pieces_.push_back({{}, count});
      for (const char byte : text)
        pieces_.back().tokens.push_back(of_byte[static_cast<uint8_t>(byte)]);
      count_pairs(pieces_.size() - 1, 1);
    }
    queue_changed();
  }

  void merge_until(int64_t vocabulary) {
    while (std::ssize(tokens_) + 1 < vocabulary && !queue_.empty()) {
      const CountedPair next = queue_.top();
      queue_.pop();
      const int64_t count = pairs_.at(next.pair.key()).count;
      if (count != next.count) {
        if (count > 1) queue_.push({count, next.pair});
        continue;
      }
      if (count < 2) break;
      merge(next.pair);
    }
  }

  BytePairs result() && {
    tokens_.emplace_back(kEndOfText);
    const auto end = static_cast<int32_t>(tokens_.size()) - 1;
    return {std::move(tokens_), std::move(merges_), end};
  }

 private:
  struct Piece {
    std::vector<int32_t> tokens;
    int64_t count = 0;
  };
  struct PairPlaces {
    TokenPair pair;
    int64_t count = 0;
    std::vector<uint32_t> pieces;  // pieces that have or had it
    bool changed = false;
  };

  /// Adds the pairs of a piece, or removes them with sign -1.
  void count_pairs(size_t piece, int64_t sign) {
    const Piece& own = pieces_[piece];
    for (size_t i = 0; i + 1 < own.tokens.size(); ++i) {
      const TokenPair pair{own.tokens[i], own.tokens[i + 1]};
      PairPlaces& places = pairs_[pair.key()];
      places.pair = pair;
      places.count += sign * own.count;
      if (sign < 0) continue;
      if (places.pieces.empty() || places.pieces.back() != piece)
        places.pieces.push_back(static_cast<uint32_t>(piece));
      if (!places.changed) changed_.push_back(pair.key());
      places.changed = true;
    }
  }

  void queue_changed() {
    for (const uint64_t key : changed_) {
      PairPlaces& places = pairs_.at(key);
      places.changed = false;
      if (places.count > 1) queue_.push({places.count, places.pair});
    }
    changed_.clear();
  }

  int32_t token_of(const TokenPair& pair) {
    std::string bytes =
        tokens_[static_cast<size_t>(pair.left)] + tokens_[static_cast<size_t>(pair.right)];
    const auto [place, fresh] = known_.emplace(bytes, static_cast<int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(std::move(bytes));
    return place->second;
  }

  void merge(const TokenPair& pair) {
    const int32_t token = token_of(pair);
    merges_.push_back(pair);
    const std::vector<uint32_t> places = std::move(pairs_.at(pair.key()).pieces);
    for (const uint32_t piece : places) {
      std::vector<int32_t>& tokens = pieces_[piece].tokens;
      const auto has = std::ranges::adjacent_find(
          tokens, [&](int32_t a, int32_t b) { return a == pair.left && b == pair.right; });
      if (has == tokens.end()) continue;
      count_pairs(piece, -1);
      size_t to = 0;
      for (size_t i = 0; i < tokens.size(); ++i, ++to) {
        const bool both =
            i + 1 < tokens.size() && tokens[i] == pair.left && tokens[i + 1] == pair.right;
        tokens[to] = both ? token : tokens[i];
        i += both ? 1 : 0;
      }
      tokens.resize(to);
      count_pairs(piece, 1);
    }
    queue_changed();
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> known_;
  std::vector<TokenPair> merges_;
  std::vector<Piece> pieces_;
  std::unordered_map<uint64_t, PairPlaces> pairs_;
  std::vector<uint64_t> changed_;  // keys of pairs whose count has grown
  std::priority_queue<CountedPair> queue_;
};

}  // namespace

void PieceCounts::add(std::string_view text) {
  std::unordered_map<std::string_view, int64_t> seen;
  for (size_t at = 0; at < text.size();) {
    const std::string_view piece = text.substr(at, first_piece(text.substr(at)));
    ++seen[piece];
    at += piece.size();
  }
  for (const auto& [piece, count] : seen) counts_[std::string(piece)] += count;
}

void PieceCounts::add(const PieceCounts& other) {
  for (const auto& [piece, count] : other.counts_) counts_[piece] += count;
}

std::unique_ptr<Tokenizer> train_byte_pairs(const PieceCounts& pieces, int64_t vocabulary) {
  if (vocabulary < 257 || vocabulary > INT32_MAX)
    throw ConfigError(fmt::format(
        "a vocabulary of {} tokens: byte pairs need 257 or more, the bytes and the end token",
        vocabulary));
  PairTraining training(pieces);
  training.merge_until(vocabulary);
  return std::make_unique<BytePairTokenizer>(std::move(training).result(), "byte pairs");
}

}  // namespace tutti::data
