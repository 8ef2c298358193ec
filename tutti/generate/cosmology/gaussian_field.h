#pragma once
// Draws the Gaussian random field of a power spectrum, on a periodic grid.

#include "tutti/base/numeric/rng.h"
#include "tutti/generate/cosmology/fourier_grid.h"
#include "tutti/generate/cosmology/power_spectrum.h"

namespace tutti::generate {

/// Returns the modes of today's linear contrast, scaled such that FourierGrid::to_values gives the
/// contrast itself; mode 0 is 0. They are white noise, one normal per cell drawn from `rng`, times
/// sqrt(P(k) / cell^3) / side^3: <|mode|^2> = P(k) / box volume. `cell` in Mpc/h.
GridField gaussian_field(const FourierGrid& grid, double cell, const LinearPower& power, Rng& rng);

}  // namespace tutti::generate
