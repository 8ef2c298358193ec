#pragma once
// Simulates lattices: atomic-resolution microscopy images of the five two-dimensional Bravais
// lattices. Any number of images, each a pure function of (seed, index) on one build; the label is
// index % 5, so classes are balanced.
//
// Model, with one pixel = 0.35 angstrom and all ranges uniform and drawn per image:
//   cell          a primitive cell of unit area: square; hexagonal; rectangular with b/a 1.2 to
//                 1.5; centred rectangular with b/a 1.25 to 1.45 (far from 1, which is square, and
//                 sqrt 3, which is hexagonal); oblique with b/a 1.2 to 1.4 and an angle of 75 to 80
//                 degrees (far from right, rhombic and centred)
//   scale         sqrt(cell area) 7 to 9.5 pixels (2.5 to 3.3 angstrom): the same for all classes,
//                 so that neither the density of atoms nor the brightness tells them apart
//   orientation   rotation 0 to 360 degrees, mirrored or not, any origin
//   strain        symmetric, each of xx, yy, xy within 1.5 %: changes lengths by less than the gap
//                 between any two classes
//   displacement  every column shifted by a normal of 0.15 to 0.55 pixels rms per axis (0.05 to
//                 0.19 angstrom: thermal and static disorder)
//   vacancies     every column missing with a probability of 0 to 10 %
//   probe         a Gaussian spot of sigma 1.3 to 1.9 pixels (FWHM 1.1 to 1.6 angstrom), the probe
//                 with the source size
//   background    0.1 to 0.4 of a column's peak (the support film)
//   dose          4 to 20 electrons at a column's peak, Poisson counts per pixel
//   gain          such that background + peak reads 160 of 255; brighter pixels saturate
// A linear classifier stays near chance (every class is seen in all positions and orientations); a
// small ResNet separates them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

enum class Bravais : int32_t { oblique, rectangular, centred_rectangular, square, hexagonal };

inline constexpr int kLatticeClasses = 5;
inline constexpr int kLatticeSide = 64;  ///< pixels; images are 1 x 64 x 64
inline constexpr int64_t kLatticeRecordBytes = 1 + kLatticeSide * kLatticeSide;  ///< label, pixels
/// Index of the first image of a test set. Training sets start at 0, so no image is in both.
inline constexpr int64_t kFirstTestLattice = int64_t{1} << 40;

const std::vector<std::string>& lattice_names();

/// Images first, first + 1, ..., first + count - 1 of a seed.
struct LatticeSpec {
  uint64_t seed = 1;
  int64_t first = 0;
  int64_t count = 0;
  bool operator==(const LatticeSpec&) const = default;
};

/// The geometry of an image: primitive vectors in pixels (x, y), rotated and strained.
struct LatticeCell {
  Bravais lattice = Bravais::square;
  double a1[2] = {0, 0};
  double a2[2] = {0, 0};
};
LatticeCell lattice_cell(uint64_t seed, int64_t index);

/// Generates one image: kLatticeSide * kLatticeSide bytes and its label.
void generate_lattice(uint64_t seed, int64_t index, uint8_t* pixels, uint8_t* label);

/// Generates all records of `spec` (kLatticeRecordBytes each) on `threads` threads; the bytes do
/// not depend on `threads`. Takes about 0.3 ms per image.
void generate_lattices(const LatticeSpec& spec, int threads, uint8_t* records);

/// Returns the set, held in memory (4 KiB an image). ConfigError if it does not fit, or if `limit`
/// allows too few classes.
std::unique_ptr<StoredImages> lattices_in_memory(const LatticeSpec& spec, int threads,
                                                 const ClassLimit& limit = {});

/// Returns the same set, but makes each image when it is read: for readers of few images.
/// ConfigError as above.
std::unique_ptr<Dataset> lattices_when_read(const LatticeSpec& spec, const ClassLimit& limit = {},
                                            const FieldStatistics& statistics = {});

/// Writes the set to a file (format/lattices_file.h), block by block, so it may be larger than
/// memory.
void write_lattices(const std::filesystem::path& path, const LatticeSpec& spec, int threads);

}  // namespace tutti::data
