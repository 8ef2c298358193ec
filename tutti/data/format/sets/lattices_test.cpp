#include "tutti/data/format/sets/lattices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "tutti/data/file_checks.h"
#include "tutti/data/format/sets/lattices_file.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/field_statistics.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

constexpr size_t kPixels = kLatticeSide * kLatticeSide;

Bytes records(const LatticeSpec& spec, int threads) {
  Bytes bytes(static_cast<size_t>(spec.count * kLatticeRecordBytes));
  generate_lattices(spec, threads, bytes.data());
  return bytes;
}

// Finds the class by the shape of the reduced cell (Lagrange and Gauss): ratio b/a and cosine of
// the angle, both after strain.
Bravais nearest_class(const LatticeCell& cell) {
  std::array<double, 2> a{cell.a1[0], cell.a1[1]}, b{cell.a2[0], cell.a2[1]};
  const auto dot = [](const auto& u, const auto& v) { return u[0] * v[0] + u[1] * v[1]; };
  for (;;) {
    if (dot(a, a) > dot(b, b)) std::swap(a, b);
    const double n = std::round(dot(a, b) / dot(a, a));
    if (n == 0) break;
    b = {b[0] - n * a[0], b[1] - n * a[1]};
  }
  const double ratio = std::sqrt(dot(b, b) / dot(a, a)),
               cosine = std::abs(dot(a, b)) / std::sqrt(dot(a, a) * dot(b, b));
  if (ratio > 1.12) return cosine < 0.09 ? Bravais::rectangular : Bravais::oblique;
  if (cosine < 0.11) return Bravais::square;
  return cosine < 0.42 ? Bravais::centred_rectangular : Bravais::hexagonal;
}

TEST(Lattices, StrainNeverMakesOneClassLookLikeAnother) {
  for (int64_t i = 0; i < 20'000; ++i)
    ASSERT_EQ(nearest_class(lattice_cell(3, i)), static_cast<Bravais>(i % 5)) << i;
}

TEST(Lattices, DensityOfAtomsIsTheSameForAllClasses) {
  std::array<double, 5> area{};
  for (int64_t i = 0; i < 5000; ++i) {
    const LatticeCell cell = lattice_cell(3, i);
    area[static_cast<size_t>(cell.lattice)] +=
        std::abs(cell.a1[0] * cell.a2[1] - cell.a1[1] * cell.a2[0]) / 1000;
  }
  for (const double a : area) EXPECT_NEAR(a, 68.6, 2);  // the mean square of 7 to 9.5
}

// Returns |structure factor|^2 per pixel at the spatial frequency g (cycles per pixel).
double power(const uint8_t* pixels, double mean, double gx, double gy) {
  std::complex<double> sum = 0;
  for (int y = 0; y < kLatticeSide; ++y)
    for (int x = 0; x < kLatticeSide; ++x)
      sum += (pixels[y * kLatticeSide + x] - mean) *
             std::polar(1.0, -2 * std::numbers::pi * (gx * x + gy * y));
  return std::norm(sum) / kPixels;
}

TEST(Lattices, ImagesShowTheLatticeOfTheirCell) {
  double on = 0, off = 0;
  for (int64_t i = 0; i < 50; ++i) {
    Bytes pixels(kPixels);
    uint8_t label = 0;
    generate_lattice(3, i, pixels.data(), &label);
    EXPECT_EQ(label, i % 5);
    double mean = 0;
    for (const uint8_t x : pixels) mean += x / double{kPixels};
    const LatticeCell cell = lattice_cell(3, i);
    const double area = cell.a1[0] * cell.a2[1] - cell.a1[1] * cell.a2[0];
    const double g[2] = {cell.a2[1] / area, -cell.a2[0] / area};  // g . a1 = 1, g . a2 = 0
    on += power(pixels.data(), mean, g[0], g[1]);
    off += power(pixels.data(), mean, 1.5 * g[0], 1.5 * g[1]);  // half way to the next reflection
  }
  EXPECT_GT(on, 50 * off);
}

TEST(Lattices, AreAPureFunctionOfSeedAndIndex) {
  const Bytes all = records({.seed = 4, .first = 0, .count = 200}, 1);
  EXPECT_EQ(records({.seed = 4, .first = 0, .count = 200}, 3), all);
  EXPECT_EQ(records({.seed = 4, .first = 150, .count = 50}, 2),
            Bytes(all.begin() + 150 * kLatticeRecordBytes, all.end()));
  EXPECT_NE(records({.seed = 5, .first = 0, .count = 200}, 1), all);
  const auto set = lattices_in_memory({.seed = 4, .first = 100, .count = 100}, 2);
  const auto [pixels, label] = read_image(*set, 7);
  EXPECT_EQ(label, all[107 * kLatticeRecordBytes]);
  EXPECT_EQ(pixels, Bytes(all.begin() + 107 * kLatticeRecordBytes + 1,
                          all.begin() + 108 * kLatticeRecordBytes));
}

TEST(Lattices, AreNotLinearlySeparable) {  // nearest class mean, the simplest linear classifier,
                                           // stays near the chance of 20 %
  const Bytes train = records({.seed = 1, .count = 2000}, 1),
              test = records({.seed = 1, .first = kFirstTestLattice, .count = 500}, 1);
  std::vector<std::array<double, kPixels>> means(5);
  for (size_t i = 0; i < 2000; ++i)
    for (size_t j = 0; j < kPixels; ++j)
      means[train[i * kLatticeRecordBytes]][j] += train[i * kLatticeRecordBytes + 1 + j] / 400.0;
  int right = 0;
  for (size_t i = 0; i < 500; ++i) {
    std::array<double, 5> distance{};
    for (size_t c = 0; c < 5; ++c)
      for (size_t j = 0; j < kPixels; ++j)
        distance[c] += std::pow(test[i * kLatticeRecordBytes + 1 + j] - means[c][j], 2);
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() ==
             test[i * kLatticeRecordBytes];
  }
  EXPECT_LT(right, 150);
}

TEST(Lattices, CatalogNormalisationIsThatOfTheImages) {
  const FieldStatistics found = field_statistics(*lattices_in_memory({.seed = 9, .count = 4000}, 1),
                                                 "image"),
                        expected = known_dataset("lattices").statistics;
  EXPECT_NEAR(found.mean[0], expected.mean[0], 0.005);
  EXPECT_NEAR(found.deviation[0], expected.deviation[0], 0.005);
}

TEST(LatticesFile, HoldsTheGeneratedImagesWhereverTheyAreOpened) {
  const ScratchDirectory scratch;
  const LatticeSpec spec{.seed = 4, .first = 10, .count = 60};
  write_lattices(scratch.path() / "lattices-train.bin", spec, 2);
  EXPECT_EQ(read_lattices_header(scratch.path() / "lattices-train.bin"), spec);
  const Bytes file = read_all(scratch.path() / "lattices-train.bin"), expected = records(spec, 1);
  EXPECT_EQ(Bytes(file.begin() + 64, file.end()), expected);
  const auto set = open_dataset({.name = "lattices", .dir = scratch.path()});
  ASSERT_EQ(set->size(), 60);
  EXPECT_EQ(field_named(*set, "label").class_names.at(2), "centred rectangular");
  EXPECT_EQ(read_image(*set, 59).pixels, Bytes(expected.end() - kPixels, expected.end()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1)
      << "the temporary name is gone";
}

TEST(LatticesFile, AnUnfinishedFileLeavesNothing) {
  const ScratchDirectory scratch;
  {
    LatticesWriter writer(scratch.path() / "x.bin", {.seed = 1, .count = 10});
    writer.append(records({.seed = 1, .count = 5}, 1));
    EXPECT_THROW(writer.finish(), InternalError);
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  expect_io_error(
      [&] { write_lattices(scratch.path() / "none" / "x.bin", {.seed = 1, .count = 1}, 1); },
      {"none/x.bin", "No such file"});
}

TEST(LatticesFile, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  write_lattices(scratch.path() / "good.bin", {.seed = 4, .count = 5}, 1);
  const Bytes good = read_all(scratch.path() / "good.bin");
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_io_error([&] { open_lattices_file(scratch.write("x.bin", bytes)); }, parts);
  };
  refuse(flipped(good, 0), {"x.bin", "expected the magic TUTTILAT"});
  refuse(flipped(good, 8, 2), {"version 3"});
  refuse(flipped(good, 32), {"announces 4 images"});
  refuse(flipped(good, 40), {"found 65x64"});
  refuse(flipped(good, good.size() - 1), {"corrupted", "checksum", "make it anew"});
  refuse(flipped(good, 60), {"checksum"});
  refuse(sized(good, good.size() - 1), {"truncated", "found 20484 bytes"});
  refuse(Bytes(10), {"truncated", "header of 64"});
}

TEST(OpenDataset, GeneratesLatticesWithoutADirectory) {
  const auto train = open_dataset({.name = "lattices", .seed = 4, .count = 30, .threads = 2});
  const auto test = open_dataset({.name = "lattices", .split = "test", .seed = 4, .count = 30});
  EXPECT_EQ(train->size(), 30);
  EXPECT_NE(read_image(*train, 0).pixels, read_image(*test, 0).pixels)
      << "train and test must not share images";
  EXPECT_THROW(open_dataset({.name = "lattices", .count = -1}), ConfigError);
  // With images made when they are read, the set is the same.
  const auto few =
      open_dataset({.name = "lattices", .seed = 4, .count = 1 << 16, .when_read = true});
  EXPECT_EQ(few->size(), 1 << 16);
  EXPECT_EQ(few->fields()[0].to_string(), train->fields()[0].to_string());
  EXPECT_EQ(few->fields()[0].statistics.mean, train->fields()[0].statistics.mean);
  for (const int64_t i : {29, 3}) {
    EXPECT_EQ(read_image(*few, i).pixels, read_image(*train, i).pixels) << i;
    EXPECT_EQ(read_image(*few, i).label, read_image(*train, i).label) << i;
  }
  EXPECT_THROW(
      open_dataset(
          {.name = "lattices", .classes = {.count = 3}, .count = 1 << 16, .when_read = true}),
      ConfigError);
  EXPECT_THROW(open_dataset({.name = "lattices", .count = 1LL << 55, .when_read = true}),
               ConfigError);
}

}  // namespace
}  // namespace tutti::data
