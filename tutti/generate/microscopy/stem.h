#pragma once
// Generates scanning transmission images in the annular dark field (HAADF): the intensity that a
// fine probe scatters to large angles at each position. Any number of samples, each a pure
// function of (seed, index) on one build.
//
// Model: incoherent imaging (Pennycook and Jesson 1990): atoms are blobs of Z^1.7 as wide as their
// thermal motion, convolved with the probe's intensity, with Poisson noise, over an uneven
// background. It leaves out channelling, the crystal's depth, and drift of the scan.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/generate/microscopy/multislice.h"

namespace tutti::generate {

struct StemSpec {
  int side = 64;       ///< pixels of an image's side
  double pixel = 0.2;  ///< Angstrom; varies by up to a tenth between images
  double kilovolts = 200;
  double convergence = 22;  ///< half the cone's angle, mrad
  double dose = 60;         ///< electrons in the brightest pixel, from a fifth to all of it
  std::string crystal{};    ///< see crystals_named(); empty: all, classes equally often
  uint64_t seed = 1;
};

inline constexpr int64_t kFirstTestStem = int64_t{1} << 40;
/// Classes of the mask.
inline constexpr int kStemClasses = 2;

struct StemSample {
  std::vector<float>
      image{};  ///< [side][side]: electrons relative to the brightest pixel's, about 1
  /// The same without noise and background, in focus: 1 in the brightest pixel.
  std::vector<float> clean{};
  /// 1 within 0.55 Angstrom of an atom column with at least 0.15 times the strength of the
  /// strongest in the image, else 0.
  std::vector<uint8_t> columns{};
  CrystalClass kind{};
};

/// Several threads may call it.
class StemGenerator {
 public:
  explicit StemGenerator(const StemSpec& spec);  ///< ConfigError
  StemSample sample(int64_t index) const;

 private:
  StemSpec spec_;
  std::vector<std::vector<const Crystal*>> classes_;
};

/// Returns the columns of a crystal in the box with their strengths, once per cell: atoms above one
/// another add up.
std::vector<PlacedAtom> columns_in_box(const Crystal& crystal, const CrystalPose& pose, double box);
/// Returns their image through the lens, in the units of their strengths; [side][side] of the grid
/// with the origin at index 0.
std::vector<float> incoherent_image(const WaveGrid& grid, std::span<const PlacedAtom> columns,
                                    double b_factor, const ProbeLens& lens);

}  // namespace tutti::generate
