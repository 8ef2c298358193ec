#pragma once
// Displaces the matter of a linear field: Lagrangian perturbation theory, augmented by spherical
// collapse (Kitaura & Hess 2013, MNRAS 435, L78, "augmented LPT").
//
// With delta the linear contrast today, D1 and D2 the growths, and 1/lap the inverse Laplacian:
//   large scales  psi_L = -D1 grad phi1 + D2 grad phi2,  lap phi1 = delta,
//                 lap phi2 = sum over pairs i > j of phi1_ii phi1_jj - phi1_ij^2
//   small scales  psi_S = grad 1/lap d,  d = 3 (sqrt(1 - 2/3 D1 delta) - 1), or -3 where the root
//                 is not real: the volume shrinks to a point
//   together      psi = K psi_L + (1 - K) psi_S, with K a Gaussian of rms `collapse_radius`
// With second order alone, particles cross each other's paths and fly on, so that in cells of 1
// Mpc/h a stronger field becomes smoother; the collapse keeps them together.

#include <array>
#include <vector>

#include "tutti/generate/cosmology/fourier_grid.h"

namespace tutti::generate {

class Displacement {
 public:
  struct Growth {
    float first = 1, second = -3.0f / 7;  ///< D1 and D2
  };

  /// `contrast` holds the modes of today's linear contrast (gaussian_field.h); a collapse radius of
  /// 0 uses second order on all scales. Lengths in cells. Keeps a reference to `grid`.
  Displacement(const FourierGrid& grid, float collapse_radius, GridField contrast);

  /// Fills psi_x, psi_y, psi_z with values in cells.
  void at(const Growth& growth, std::array<GridField, 3>& psi);

 private:
  void find_source();
  void find_shrinkage(float growth);

  const FourierGrid& grid_;
  GridField contrast_;             // modes of delta
  GridField source_;               // modes of lap phi2
  GridField shrinkage_;            // modes of d
  std::vector<float> long_range_;  // K by the square of the wave number
};

}  // namespace tutti::generate
