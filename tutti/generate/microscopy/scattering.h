#pragma once
// Has the scattering of electrons of 30 to 1000 keV by atoms: lengths in Angstrom, energies in keV.

namespace tutti::generate {

/// Returns the scattering factor of a neutral atom in the first Born approximation, in Angstrom, by
/// Kirkland's fit; q = 1 / d = 2 sin(theta) / wavelength. CHECKs that crystals.h has the element.
double scattering_factor(int element, double q_squared);

/// A projected potential's Fourier coefficient in V Angstrom^2 is this times the scattering factor:
/// h^2 / (2 pi m e).
inline constexpr double kVoltsOfFactor = 47.87801;

/// Returns the relativistic wavelength in Angstrom.
double electron_wavelength(double kilovolts);

/// Returns the phase in radians that a projected potential of 1 V Angstrom adds to the wave.
double interaction_constant(double kilovolts);

}  // namespace tutti::generate
