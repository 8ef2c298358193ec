#pragma once
// BLEU (Papineni et al. 2002): the share of the written text that occurs in references, over a
// corpus.
//
//   BLEU = min(1, exp(1 - r / c)) * (p1 p2 p3 p4)^(1/4)
//
// p_n is the share of all written n-grams that occur in the sample's reference, each counted at
// most as often as there; c and r are the numbers of words in all written texts and in all
// references. BLEU is 0 if any p_n is 0: nothing is smoothed.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::train {

/// Splits a text into words and signs like mteval-v13a.pl, the default of sacreBLEU: signs are
/// separate except within numbers.
std::vector<std::string> bleu_words(std::string_view text);

class Bleu {
 public:
  static constexpr size_t kLongest = 4;

  void add(const std::vector<std::string>& written, const std::vector<std::string>& reference);

  double value() const;  ///< 0 to 1
  double precision(size_t n) const;
  double brevity() const;                             ///< min(1, exp(1 - r / c))
  int64_t written() const { return written_; }        ///< words, c
  int64_t references() const { return references_; }  ///< words, r

 private:
  std::array<int64_t, kLongest> found_{}, all_{};
  int64_t written_ = 0, references_ = 0;
};

}  // namespace tutti::train
