#include "tutti/generate/protein/native_fold.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

constexpr double kRise = 1.5, kRadius = 2.3, kTurn = 100 * std::numbers::pi / 180;
constexpr double kBetweenAxes = 8.5;
constexpr int64_t kLoop = 3, kHelix = 12;

Place minus(const Place& a, const Place& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double squared(const Place& a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }

/// Returns the place of helix h on a strip of triangles, where its next two are its neighbours.
Place axis_of(int64_t h) {
  return {kBetweenAxes / 2 * static_cast<double>(h),
          h % 2 == 0 ? 0 : kBetweenAxes * std::numbers::sqrt3 / 2, 0};
}

/// Returns helices and loops before relaxation.
std::vector<Place> unrelaxed_fold(int64_t residues) {
  const int64_t helices = std::max<int64_t>(2, (residues + kLoop) / (kHelix + kLoop));
  const int64_t in_helices = residues - (helices - 1) * kLoop;
  std::vector<Place> places;
  double z = 0;
  for (int64_t h = 0; h < helices; ++h) {
    const int64_t length = in_helices / helices + (h < in_helices % helices);
    const double up = h % 2 == 0 ? 1 : -1;
    const Place axis = axis_of(h), next = axis_of(h + 1);
    for (int64_t i = 0; i < length; ++i) {
      if (i > 0) z += up * kRise;
      // Right-handed in both directions.
      const double phase = up * kTurn * static_cast<double>(i);
      places.push_back(
          {axis[0] + kRadius * std::cos(phase), axis[1] + kRadius * std::sin(phase), z});
    }
    if (h + 1 == helices) break;
    for (int64_t i = 1; i <= kLoop; ++i) {
      const double t = static_cast<double>(i) / (kLoop + 1);
      places.push_back({axis[0] + t * (next[0] - axis[0]), axis[1] + t * (next[1] - axis[1]),
                        z + up * 5 * std::sin(std::numbers::pi * t)});
    }
  }
  return places;
}

/// Moves both ends so that their distance approaches `wanted`.
void draw_to(Place& a, Place& b, double wanted) {
  const Place d = minus(b, a);
  const double distance = std::sqrt(std::max(squared(d), 1e-6));
  const double share = 0.25 * (distance - wanted) / distance;
  for (size_t k = 0; k < 3; ++k) {
    a[k] += share * d[k];
    b[k] -= share * d[k];
  }
}

}  // namespace

std::vector<Place> native_fold(int64_t residues) {
  CHECK(residues >= kFewestResidues, "{} residues are no bundle of helices", residues);
  std::vector<Place> places = unrelaxed_fold(residues);
  for (int round = 0; round < 400; ++round)
    for (size_t i = 0; i < places.size(); ++i) {
      if (i + 1 < places.size()) draw_to(places[i], places[i + 1], kBond);
      for (size_t j = i + 2; j < places.size(); ++j) {
        const double nearest = j == i + 2 ? 5.2 : 4.8;
        if (squared(minus(places[j], places[i])) < nearest * nearest)
          draw_to(places[i], places[j], nearest);
      }
    }
  for (Place& place : places)
    for (double& x : place) x = std::round(1000 * x) / 1000;
  return places;
}

std::vector<NativePair> native_pairs(const std::vector<Place>& native) {
  std::vector<NativePair> pairs;
  for (size_t i = 0; i < native.size(); ++i)
    for (size_t j = i + 4; j < native.size(); ++j) {
      const double distance = std::sqrt(squared(minus(native[j], native[i])));
      if (distance <= kContact)
        pairs.push_back({static_cast<int64_t>(i), static_cast<int64_t>(j), distance});
    }
  return pairs;
}

double native_fraction(const std::vector<NativePair>& pairs, const std::vector<Place>& places) {
  int64_t held = 0;
  for (const NativePair& pair : pairs) {
    const double reach = 1.2 * pair.distance;
    held += squared(minus(places[static_cast<size_t>(pair.second)],
                          places[static_cast<size_t>(pair.first)])) <= reach * reach;
  }
  return pairs.empty() ? 0 : static_cast<double>(held) / static_cast<double>(pairs.size());
}

}  // namespace tutti::generate
