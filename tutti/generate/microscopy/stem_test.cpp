#include "tutti/generate/microscopy/stem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

TEST(Stem, IsAFunctionOfSeedAndIndex) {
  const StemGenerator generator({.side = 32});
  EXPECT_EQ(generator.sample(5).image, StemGenerator({.side = 32}).sample(5).image);
  EXPECT_NE(generator.sample(5).image, generator.sample(6).image);
  EXPECT_NE(generator.sample(5).image, StemGenerator({.side = 32, .seed = 2}).sample(5).image);
  std::set<CrystalClass> kinds;
  for (int64_t i = 0; i < 100; ++i) kinds.insert(generator.sample(i).kind);
  EXPECT_EQ(kinds.size(), 10u);
}

/// A column is as strong as the sum of its atoms' Z^1.7, if columns are far apart.
TEST(Stem, ColumnsAreAsBrightAsTheirAtoms) {
  const Crystal& perovskite = *crystals_named("SrTiO3").front();
  const WaveGrid grid(240, 8 * perovskite.a);  // 30 positions a cell
  const std::vector<PlacedAtom> columns = columns_in_box(perovskite, {}, grid.box());
  EXPECT_EQ(columns.size(), 8u * 8 * 4);
  const std::vector<float> image =
      incoherent_image(grid, columns, 0, {.kilovolts = 300, .convergence = 0.03});
  const auto at = [&](int x, int y) {
    return static_cast<double>(image[static_cast<size_t>(y * 240 + x)]);
  };
  const double strontium = at(0, 0), titanium = at(15, 15), oxygen = at(15, 0);
  EXPECT_NEAR(titanium / strontium, (std::pow(22, 1.7) + std::pow(8, 1.7)) / std::pow(38, 1.7),
              0.03);
  EXPECT_LT(oxygen, 0.2 * strontium);
  EXPECT_GT(oxygen, at(8, 3));
}

/// The mask has a disk at each visible column, where the image is bright.
TEST(Stem, TheMaskIsWhereTheColumnsAre) {
  const StemGenerator generator({.side = 64, .crystal = "Au"});
  for (int64_t i = 0; i < 5; ++i) {
    const StemSample made = generator.sample(i);
    double inside = 0, outside = 0, disk = 0;
    for (size_t p = 0; p < made.clean.size(); ++p) {
      (made.columns[p] ? inside : outside) += static_cast<double>(made.clean[p]);
      disk += made.columns[p];
    }
    const double pixels = static_cast<double>(made.clean.size());
    EXPECT_GT(inside / disk, 3 * outside / (pixels - disk));
    // Each column has a quarter of the cell's face.
    EXPECT_NEAR(disk / pixels, std::numbers::pi * 0.55 * 0.55 / (4.0782 * 4.0782 / 4), 0.03);
    EXPECT_EQ(*std::ranges::max_element(made.clean), 1);
  }
}

TEST(Stem, GrapheneHasDefects) {
  const StemGenerator generator({.side = 48, .dose = 0, .crystal = "graphene"});
  int doped = 0;
  for (int64_t i = 0; i < 40; ++i) {
    // Carbon is a quarter as bright as silicon: few pixels are near the maximum then.
    const StemSample made = generator.sample(i);
    doped += std::ranges::count_if(made.clean, [](float x) { return x > 0.5f; }) < 60;
  }
  EXPECT_GT(doped, 8);
  EXPECT_LT(doped, 32);
}

TEST(Stem, RefusesWhatDoesNotFit) {
  EXPECT_THROW(StemGenerator({.crystal = "unobtainium"}), ConfigError);
  EXPECT_THROW(StemGenerator({.side = 33}), ConfigError);
  EXPECT_THROW(StemGenerator({.pixel = 2, .convergence = 90}), ConfigError);
}

}  // namespace
}  // namespace tutti::generate
