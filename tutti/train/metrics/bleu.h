#pragma once
// BLEU (Papineni et al. 2002): how much of what was written stands in references, over a corpus.
//
//   BLEU = min(1, exp(1 - r / c)) * (p1 p2 p3 p4)^(1/4)
//
// with p_n the share of all n-grams written that are in the sample's reference, each at most as
// often as there; c and r the words of all that was written and of all references. 0 where a p_n
// is: nothing is smoothed.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// Words and signs as mteval-v13a.pl, and sacreBLEU by default, tells them apart: signs but those
/// within numbers stand alone.
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

}  // namespace tutti
