#include "tutti/generate/cosmology/power_spectrum.h"

#include <cmath>
#include <numbers>

namespace tutti::generate {
namespace {

constexpr double kBaryons = 0.0224;               // omega_b h^2, Planck 2018
constexpr double kCmbTemperature = 2.7255 / 2.7;  // theta of Eisenstein & Hu

// Returns Omega_m at a redshift in a flat universe.
double matter_share(double omega_m, double redshift) {
  const double matter = omega_m * std::pow(1 + redshift, 3);
  return matter / (matter + 1 - omega_m);
}

// Returns Carroll, Press & Turner's g: growth relative to a universe with only matter.
double growth_suppression(double omega) {
  const double lambda = 1 - omega;
  return 2.5 * omega / (std::pow(omega, 4.0 / 7) - lambda + (1 + omega / 2) * (1 + lambda / 70));
}

}  // namespace

LinearPower::LinearPower(const Cosmology& cosmology) : cosmology_(cosmology) {
  const double matter = cosmology.omega_m * cosmology.h * cosmology.h, share = kBaryons / matter;
  sound_horizon_ = 44.5 * std::log(9.83 / matter) / std::sqrt(1 + 10 * std::pow(kBaryons, 0.75));
  alpha_ =
      1 - 0.328 * std::log(431 * matter) * share + 0.38 * std::log(22.3 * matter) * share * share;
  amplitude_ = cosmology.sigma_8 * cosmology.sigma_8 / variance_in_spheres(*this, 8);
}

double LinearPower::transfer(double k) const {
  const double h = cosmology_.h;
  const double shape = cosmology_.omega_m * h *
                       (alpha_ + (1 - alpha_) / (1 + std::pow(0.43 * k * h * sound_horizon_, 4)));
  const double q = k * kCmbTemperature * kCmbTemperature / shape;
  const double l = std::log(2 * std::numbers::e + 1.8 * q), c = 14.2 + 731 / (1 + 62.5 * q);
  return l / (l + c * q * q);
}

double LinearPower::operator()(double k) const {
  const double t = transfer(k);
  return amplitude_ * std::pow(k, cosmology_.n_s) * t * t;
}

double variance_in_spheres(const LinearPower& power, double radius) {
  // Eight decades around 1 / radius. Outside them the integrand vanishes: k^3 P falls as k^(3 +
  // n_s) below and W^2 as k^-4 above.
  constexpr int kSteps = 2048;
  const double low = std::log(1e-5 / radius), step = std::log(1e8) / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double k = std::exp(low + (i + 0.5) * step), x = k * radius;
    // Uses the series where the difference would cancel.
    const double w = x < 0.01 ? 1 - x * x / 10 : 3 * (std::sin(x) - x * std::cos(x)) / (x * x * x);
    sum += k * k * k * power(k) * w * w;
  }
  return sum * step / (2 * std::numbers::pi * std::numbers::pi);
}

double linear_growth(double omega_m, double redshift) {
  return growth_suppression(matter_share(omega_m, redshift)) /
         (growth_suppression(omega_m) * (1 + redshift));
}

double second_order_growth(double omega_m, double redshift) {
  const double growth = linear_growth(omega_m, redshift);
  return -3.0 / 7 * growth * growth * std::pow(matter_share(omega_m, redshift), -1.0 / 143);
}

}  // namespace tutti::generate
