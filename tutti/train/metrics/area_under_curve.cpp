#include "tutti/train/metrics/area_under_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tutti::train {

double area_under_curve(std::vector<float> zeros, std::vector<float> ones) {
  const auto bad = [](float x) { return std::isnan(x); };
  if (zeros.empty() || ones.empty() || std::ranges::any_of(zeros, bad) ||
      std::ranges::any_of(ones, bad))
    return std::nan("");
  std::ranges::sort(zeros);
  std::ranges::sort(ones);
  uint64_t halves = 0;  // two for each pair in the right order, one for an equal pair
  size_t below = 0, not_above = 0;
  for (const float one : ones) {
    while (below < zeros.size() && zeros[below] < one) ++below;
    while (not_above < zeros.size() && zeros[not_above] <= one) ++not_above;
    halves += below + not_above;
  }
  return static_cast<double>(halves) /
         (2 * static_cast<double>(zeros.size()) * static_cast<double>(ones.size()));
}

namespace {

/// Grows with the score: the bits of negative numbers are inverted.
size_t bin_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ordered >> 14;
}

}  // namespace

void ScoreBins::add(float score, bool one) {
  const size_t at = std::isnan(score) ? 2 * kBins : bin_of(score) + (one ? kBins : 0);
  counts_[at] += 1;
}

double ScoreBins::area() const {
  double zeros = 0, ones = 0, pairs = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    const double zero = counts_[bin], one = counts_[kBins + bin];
    pairs += one * (zeros + zero / 2);
    zeros += zero;
    ones += one;
  }
  return counts_[2 * kBins] > 0 || zeros == 0 || ones == 0 ? std::nan("") : pairs / (zeros * ones);
}

}  // namespace tutti::train
