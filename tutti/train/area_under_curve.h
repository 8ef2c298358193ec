#pragma once
// How well scores tell zeros from ones, exactly.

#include <vector>

namespace tutti {

/// The area under the receiver operating characteristic: the part of all pairs of a zero and a one
/// in which the one has the greater score; equal scores count half. Independent of the order of
/// both lists. NaN where one is empty or a score is NaN.
double area_under_curve(std::vector<float> zeros, std::vector<float> ones);

}  // namespace tutti
