#pragma once
// Scanning transmission images in the annular dark field (HAADF): what a fine probe scatters far
// out, position by position. Any number of samples, each a pure function of (seed, index) on one
// build.
//
// Model: incoherent imaging (Pennycook and Jesson 1990): atoms as blobs of Z^1.7 as wide as their
// thermal motion, seen through the probe's intensity, with Poisson noise, over a background that
// is not even. What is left out: channelling, the crystal's depth, drift of the scan.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/generate/microscopy/multislice.h"

namespace tutti::data {

struct StemSpec {
  int side = 64;       ///< of an image
  double pixel = 0.2;  ///< Angstrom; of an image up to a tenth more or less
  double kilovolts = 200;
  double convergence = 22;  ///< half the cone's angle, mrad
  double dose = 60;         ///< electrons in the brightest pixel, of an image a fifth of it to all
  std::string crystal{};    ///< of crystals_named(); empty: all, each class as often
  uint64_t seed = 1;
};

inline constexpr int64_t kFirstTestStem = int64_t{1} << 40;
/// Classes of the mask.
inline constexpr int kStemClasses = 2;

struct StemSample {
  std::vector<float>
      image{};  ///< [side][side]: electrons over those of the brightest pixel, about 1
  /// The same without noise and background, at focus: 1 where it is brightest.
  std::vector<float> clean{};
  /// 1 within 0.55 Angstrom of a column of atoms that is at least 0.15 times as strong as the
  /// strongest in the image, else 0.
  std::vector<uint8_t> columns{};
  CrystalClass kind{};
};

/// Calls may run on several threads.
class StemGenerator {
 public:
  explicit StemGenerator(const StemSpec& spec);  ///< ConfigError
  StemSample sample(int64_t index) const;

 private:
  StemSpec spec_;
  std::vector<std::vector<const Crystal*>> classes_;
};

/// The columns of a crystal in the box with their strengths, each as often as cells are: atoms
/// above one another add up.
std::vector<PlacedAtom> columns_in_box(const Crystal& crystal, const CrystalPose& pose, double box);
/// Their image through the lens, in the units of their strengths; [side][side] of the grid with the
/// origin at index 0.
std::vector<float> incoherent_image(const WaveGrid& grid, std::span<const PlacedAtom> columns,
                                    double b_factor, const ProbeLens& lens);

}  // namespace tutti::data
