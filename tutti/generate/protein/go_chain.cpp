#include "tutti/generate/protein/go_chain.h"

#include <cmath>

namespace tutti::generate {
namespace {

constexpr double kBondStrength = 20, kAngleStrength = 2;
constexpr double kTurnStrength = 1, kVolume = kBond * kBond * kBond;
constexpr double kContactEnergy = 1.6;  // native structure, per residue
constexpr double kBead = 4;             // Angstrom
constexpr double kReach2 = 49;          // (4/7)^12 is 0.001
constexpr int kClosest = 3;             // along the chain, for pairs with excluded volume

Place from_to(const Place& a, const Place& b) { return {b[0] - a[0], b[1] - a[1], b[2] - a[2]}; }
double dot(const Place& a, const Place& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Place cross(const Place& a, const Place& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
void add_scaled(Place& a, double factor, const Place& b) {
  for (size_t k = 0; k < 3; ++k) a[k] += factor * b[k];
}

/// For four consecutive places: the volume that their bonds span, positive for a right turn.
struct Turn {
  Place first, last, middle;  ///< gradient by each bond
  double volume;

  explicit Turn(const Place* r) {
    const Place b1 = from_to(r[0], r[1]), b2 = from_to(r[1], r[2]), b3 = from_to(r[2], r[3]);
    first = cross(b2, b3);
    middle = cross(b3, b1);
    last = cross(b1, b2);
    volume = dot(b1, first);
  }
  void add_gradient(double factor, Place* g) const {
    add_scaled(g[0], -factor, first);
    add_scaled(g[1], factor, first);
    add_scaled(g[1], -factor, middle);
    add_scaled(g[2], factor, middle);
    add_scaled(g[2], -factor, last);
    add_scaled(g[3], factor, last);
  }
};

/// Pulls two beads together by `pull` times their distance.
void pull_together(Place& a, Place& b, const Place& d, double pull) {
  add_scaled(a, pull, d);
  add_scaled(b, -pull, d);
}

}  // namespace

GoChain::GoChain(std::vector<Place> native)
    : places_(std::move(native)), velocities_(places_.size()), forces_(places_.size()),
      pairs_(native_pairs(places_)) {
  const size_t count = places_.size();
  for (size_t apart : {1, 2})
    for (size_t i = 0; i + apart < count; ++i) {
      const Place d = from_to(places_[i], places_[i + apart]);
      springs_.push_back(
          {i, i + apart, std::sqrt(dot(d, d)), apart == 1 ? kBondStrength : kAngleStrength});
    }
  for (size_t i = 0; i + 3 < count; ++i) turns_.push_back(Turn(&places_[i]).volume);
  size_t next = 0;  // pairs_ are in the order of this loop
  for (size_t i = 0; i < count; ++i)
    for (size_t j = i + kClosest; j < count; ++j)
      if (next < pairs_.size() && pairs_[next].first == static_cast<int64_t>(i) &&
          pairs_[next].second == static_cast<int64_t>(j))
        ++next;
      else
        others_.emplace_back(i, j);
  energy(places_, forces_);
}

double GoChain::energy(const std::vector<Place>& places, std::vector<Place>& forces) const {
  double sum = 0;
  forces.assign(places.size(), Place{});
  for (const Spring& spring : springs_) {
    const Place d = from_to(places[spring.first], places[spring.second]);
    const double r = std::sqrt(dot(d, d)), longer = r - spring.length;
    sum += spring.strength * longer * longer;
    pull_together(forces[spring.first], forces[spring.second], d, 2 * spring.strength * longer / r);
  }
  for (size_t i = 0; i < turns_.size(); ++i) {
    const Turn now(&places[i]);
    const double more = (now.volume - turns_[i]) / kVolume;
    sum += kTurnStrength * more * more;
    now.add_gradient(-2 * kTurnStrength * more / kVolume, &forces[i]);
  }
  const double strength =
      kContactEnergy * static_cast<double>(places.size()) / static_cast<double>(pairs_.size());
  for (const NativePair& pair : pairs_) {
    const auto i = static_cast<size_t>(pair.first), j = static_cast<size_t>(pair.second);
    const Place d = from_to(places[i], places[j]);
    const double inverse = 1 / dot(d, d), q = pair.distance * pair.distance * inverse;
    const double q5 = q * q * q * q * q;
    sum += strength * (5 * q - 6) * q5;
    pull_together(forces[i], forces[j], d, -60 * strength * (q - 1) * q5 * inverse);
  }
  for (const auto& [i, j] : others_) {
    const Place d = from_to(places[i], places[j]);
    const double r2 = dot(d, d);
    if (r2 >= kReach2) continue;
    const double q = kBead * kBead / r2, q3 = q * q * q;
    sum += q3 * q3;
    pull_together(forces[i], forces[j], d, -12 * q3 * q3 / r2);
  }
  return sum;
}

void GoChain::step(double temperature, Rng& rng) {
  constexpr double kKept = 1 - kFriction * kStep;  // e^-x to first order; `width` fits it exactly
  const double width = std::sqrt(12 * temperature * (1 - kKept * kKept));
  for (size_t i = 0; i < places_.size(); ++i)
    for (size_t k = 0; k < 3; ++k) {
      double& v = velocities_[i][k];
      v += kStep / 2 * forces_[i][k];
      places_[i][k] += kStep / 2 * v;
      v = kKept * v + width * (rng.next_u32() * 0x1p-32 - 0.5);
      places_[i][k] += kStep / 2 * v;
    }
  energy(places_, forces_);
  for (size_t i = 0; i < places_.size(); ++i) add_scaled(velocities_[i], kStep / 2, forces_[i]);
}

}  // namespace tutti::generate
