#pragma once
// Measures how well scores separate zeros from ones.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::train {

/// Returns the area under the receiver operating characteristic: the fraction of all pairs of a
/// zero and a one in which the one has the greater score; equal scores count half. Independent of
/// the order of both lists. NaN where one is empty or a score is NaN.
double area_under_curve(std::vector<float> zeros, std::vector<float> ones);

/// Estimates the same area for scores too many to keep: they are counted in bins, and scores in one
/// bin count as equal. A bin holds the numbers with the same sign, exponent and first 9 bits after
/// the point, so its width is 1/512 of its scores; the area's error is at most half of the pairs
/// that share a bin.
class ScoreBins {
 public:
  static constexpr size_t kBins = size_t{1} << 18;

  ScoreBins() : counts_(2 * kBins + 1) {}
  void add(float score, bool one);
  /// Returns counts of zeros, of ones and of NaN scores; ranks add them up.
  std::span<double> counts() { return counts_; }
  double area() const;

 private:
  std::vector<double> counts_;
};

}  // namespace tutti::train
