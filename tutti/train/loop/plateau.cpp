#include "tutti/train/loop/plateau.h"

#include <algorithm>
#include <utility>

namespace tutti::train {
namespace {

constexpr const char *kPlateau = "plateau", *kPlateauFactor = "plateau.factor";

}  // namespace

bool Plateau::add(double value) {
  patience_.add(value);
  if (patience_.waited() < limit_) return false;
  patience_.begin_again();
  const double lower = std::max(factor_ * gamma_, std::min(factor_, least_));
  return lower < std::exchange(factor_, lower);
}

void Plateau::save(std::map<std::string, double>& metrics) const {
  patience_.save(kPlateau, metrics);
  metrics[kPlateauFactor] = factor_;
}

void Plateau::restore(const std::map<std::string, double>& metrics) {
  patience_.restore(kPlateau, metrics);
  const auto factor = metrics.find(kPlateauFactor);
  if (factor != metrics.end()) factor_ = factor->second;
}

}  // namespace tutti::train
