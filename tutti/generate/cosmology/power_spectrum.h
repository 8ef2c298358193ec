#pragma once
// Has the linear theory of structure: the strength of the matter's fluctuations at each wavelength
// today, and their growth. Lengths in Mpc/h, wave numbers in h/Mpc.

#include "tutti/generate/cosmology/cosmology.h"

namespace tutti::generate {

/// The linear power spectrum today, P(k) = A k^n_s T(k)^2: T is the transfer function of Eisenstein
/// & Hu 1998 (ApJ 496, 605), equations 26 and 28 to 31, which keeps the baryons' damping and leaves
/// out their wiggles; A makes the variance in spheres of 8 Mpc/h sigma_8^2.
class LinearPower {
 public:
  explicit LinearPower(const Cosmology& cosmology);

  /// Returns P(k) in (Mpc/h)^3, k > 0.
  double operator()(double k) const;

  /// Returns T(k); 1 on the largest scales.
  double transfer(double k) const;

 private:
  Cosmology cosmology_;
  double sound_horizon_;  // Mpc
  double alpha_;          // baryons' suppression of the effective shape
  double amplitude_ = 1;
};

/// Returns the variance of the contrast in spheres of `radius` Mpc/h: integral of k^3 P(k) / (2
/// pi^2) W(k radius)^2 over log k, with W(x) = 3 (sin x - x cos x) / x^3.
double variance_in_spheres(const LinearPower& power, double radius);

/// Returns D1, the growth of linear fluctuations, 1 today: Carroll, Press & Turner 1992 (ARA&A 30,
/// 499), equation 29, for a flat universe.
double linear_growth(double omega_m, double redshift);

/// Returns D2 = -3/7 D1^2 Omega_m(z)^(-1/143), the growth of second-order displacements (Bouchet et
/// al. 1995, A&A 296, 575).
double second_order_growth(double omega_m, double redshift);

}  // namespace tutti::generate
