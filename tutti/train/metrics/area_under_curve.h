#pragma once
// How well scores tell zeros from ones.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

/// The area under the receiver operating characteristic: the part of all pairs of a zero and a one
/// in which the one has the greater score; equal scores count half. Independent of the order of
/// both lists. NaN where one is empty or a score is NaN.
double area_under_curve(std::vector<float> zeros, std::vector<float> ones);

/// The same of so many scores that they are counted in bins instead of kept: scores of one bin
/// count as equal. A bin holds the numbers with the same sign, exponent and first 9 bits behind the
/// point, so it is 1/512 of its scores wide; the area errs by half of the pairs that share one at
/// most.
class ScoreBins {
 public:
  static constexpr size_t kBins = size_t{1} << 18;

  ScoreBins() : counts_(2 * kBins + 1) {}
  void add(float score, bool one);
  /// Of the zeros, of the ones, and of scores that are NaN: those of ranks add up.
  std::span<double> counts() { return counts_; }
  double area() const;

 private:
  std::vector<double> counts_;
};

}  // namespace tutti
