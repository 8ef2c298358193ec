#pragma once
// Beam search: the sequence that a model of the next token finds most likely, among a few that are
// followed in parallel.

#include <cstdint>
#include <span>
#include <vector>

namespace tutti::train {

struct BeamSettings {
  int64_t size = 4;  ///< sequences followed in parallel; 1: always the most likely token
  /// Sequences y of |y| tokens, including the end token, are compared by log p(y) / ((5 + |y|) /
  /// 6)^a (Wu et al. 2016, equation 14, without coverage). 0: by their probability.
  double length_penalty = 0.6;
  int64_t longest = 64;  ///< tokens; a sequence that has not ended by then is accepted as it is
  int32_t end_token = 0;
};

struct WrittenSequence {
  std::vector<int32_t> tokens{};  ///< without the end token
  double log_probability = 0, score = 0;
};

/// Searches for one source. Of equal scores the sequence found first wins, and the lower token.
class BeamSearch {
 public:
  explicit BeamSearch(const BeamSettings& settings);

  /// Returns whether no followed sequence can become the best.
  bool done() const { return done_; }
  /// Returns the last token of each of the `size` sequences; the end token where there are fewer,
  /// and at the beginning.
  std::span<const int32_t> last() const { return last_; }
  /// Takes the logits [size, vocabulary] of the next tokens. Afterwards sequence i is the former
  /// sequence from()[i] with one more token. CHECKs that the search is not done.
  void advance(std::span<const float> logits);
  std::span<const int32_t> from() const { return from_; }

  /// Returns the best sequence that has ended; valid once done().
  const WrittenSequence& best() const { return best_; }

 private:
  struct Candidate {
    double log_probability;
    int32_t row, token;
  };
  double score_of(double log_probability, int64_t tokens) const;
  std::vector<Candidate> candidates(std::span<const float> logits) const;
  void end(const WrittenSequence& sequence, double log_probability, int64_t tokens);

  BeamSettings settings_;
  std::vector<WrittenSequence> followed_;
  WrittenSequence best_;
  bool has_best_ = false, done_ = false;
  std::vector<int32_t> last_, from_;
};

}  // namespace tutti::train
