#include "tutti/data/format/array/unit_cell.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tutti/base/scratch_directory.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/molecules/trajectory_files.h"
#include "tutti/data/format/open_array.h"
#include "tutti/data/transform/derived_field.h"

namespace tutti::data {
namespace {

/// Returns the shortest of all vectors within three cells in each direction.
double by_search(const UnitCell& cell, const std::array<float, 3>& d) {
  double shortest = INFINITY;
  for (int i = -3; i <= 3; ++i)
    for (int j = -3; j <= 3; ++j)
      for (int k = -3; k <= 3; ++k) {
        double squares = 0;
        for (size_t axis = 0; axis < 3; ++axis) {
          const double x = double{d[axis]} + i * double{cell[axis]} + j * double{cell[3 + axis]} +
                           k * double{cell[6 + axis]};
          squares += x * x;
        }
        shortest = std::min(shortest, squares);
      }
  return std::sqrt(shortest);
}

TEST(UnitCell, TheNearestImageIsExactUpToItsReach) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> place(-40, 40);
  const std::vector<UnitCell> cells = {
      unit_cell_of({30, 20, 25}, {90, 90, 90}),
      unit_cell_of({30, 30, 30}, {60, 60, 90}),                    // a rhombic dodecahedron
      unit_cell_of({30, 30, 30}, {109.4712, 109.4712, 109.4712}),  // a truncated octahedron
      unit_cell_of({20, 40, 30}, {75, 100, 65})};
  int near = 0;
  for (const UnitCell& cell : cells) {
    ASSERT_TRUE(is_sound_cell(cell));
    for (int n = 0; n < 3000; ++n) {
      const std::array<float, 3> d = {place(random), place(random), place(random)};
      std::array<float, 3> image = d;
      nearest_image(cell, image.data());
      const double found = std::hypot(image[0], image[1], image[2]), wanted = by_search(cell, d);
      const double reach = double{greatest_reach(cell)};
      if (wanted < reach - 1e-4) {
        ASSERT_NEAR(found, wanted, 1e-4) << d[0] << ' ' << d[1] << ' ' << d[2];
        ++near;
      } else {
        ASSERT_GT(found, reach - 2e-4);
      }
    }
  }
  EXPECT_GT(near, 2000);
}

TEST(UnitCell, LengthsAndAnglesAreThoseOfTheVectors) {
  const UnitCell cell = unit_cell_of({20, 40, 30}, {75, 100, 65});
  const auto length = [&](size_t row) {
    return std::hypot(cell[3 * row], cell[3 * row + 1], cell[3 * row + 2]);
  };
  const auto degrees = [&](size_t p, size_t q) {
    float product = 0;
    for (size_t i = 0; i < 3; ++i) product += cell[3 * p + i] * cell[3 * q + i];
    return std::acos(product / (length(p) * length(q))) * 57.29577951f;
  };
  EXPECT_NEAR(length(0), 20, 1e-4);
  EXPECT_NEAR(length(1), 40, 1e-4);
  EXPECT_NEAR(length(2), 30, 1e-4);
  EXPECT_NEAR(degrees(1, 2), 75, 1e-3);
  EXPECT_NEAR(degrees(0, 2), 100, 1e-3);
  EXPECT_NEAR(degrees(0, 1), 65, 1e-3);
  EXPECT_TRUE(is_no_cell({}));
  EXPECT_FALSE(is_sound_cell({}));
  EXPECT_FALSE(is_sound_cell({1, 1, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_FALSE(is_sound_cell(unit_cell_of({1, 1, 1}, {10, 10, 170})));  // no such angles exist
}

/// A chain that was wrapped into its cell atom by atom has the contacts of the unwrapped chain.
TEST(UnitCell, ContactsOfAWrappedTrajectoryAreThoseOfTheWholeOne) {
  constexpr int64_t kAtoms = 24, kFrames = 3;
  const UnitCell cell = unit_cell_of({22, 19, 25}, {80, 70, 60});
  const std::vector<float> whole = chain_coordinates(kFrames, kAtoms);
  std::vector<float> wrapped = whole;
  for (size_t at = 0; at < wrapped.size(); at += 3)
    for (int axis = 2; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      const float times = std::floor(wrapped[at + a] / cell[4 * a]);
      for (size_t i = 0; i <= a; ++i) wrapped[at + i] -= times * cell[3 * a + i];
    }
  const ScratchDirectory scratch;
  const std::vector<std::filesystem::path> files = {
      scratch.write("run.xtc", xtc_bytes(wrapped, kAtoms, 1995, cell)),
      scratch.write("run.trr", trr_bytes(wrapped, kAtoms, {.cell = cell})),
      scratch.write("wide.trr", trr_bytes(wrapped, kAtoms, {.wide = true, .cell = cell})),
      scratch.write("degrees.dcd",
                    dcd_bytes(wrapped, kAtoms, {.lengths = {22, 19, 25}, .angles = {80, 70, 60}})),
      scratch.write("cosines.dcd", dcd_bytes(wrapped, kAtoms,
                                             {.big_endian = true,
                                              .lengths = {22, 19, 25},
                                              .angles = {0.17364818, 0.34202014, 0.5}}))};
  for (const auto& path : files) {
    const ArrayFile file = open_array_file(path);
    const size_t periodic = file.find("coordinates_and_cell"), plain = file.find("coordinates");
    const ArrayInfo& info = file.arrays()[periodic];
    ASSERT_EQ(info.shape, (std::vector<int64_t>{kFrames, kAtoms + 3, 3})) << path;
    const auto field = [](int64_t points) {
      return Field{.name = "x", .element = ElementType::f32, .shape = {points, 3}};
    };
    const DerivedField images(field(kAtoms + 3), parse_steps("x: periodic, contacts 8").derivation);
    const DerivedField straight(field(kAtoms), parse_steps("x: contacts 8").derivation);
    EXPECT_EQ(images.field().shape, (Shape{1, kAtoms, kAtoms}));
    int other = 0;
    for (int64_t f = 0; f < kFrames; ++f) {
      std::vector<float> stored(3 * (kAtoms + 3)), atoms(3 * kAtoms), memory, wanted, torn;
      file.read(periodic, Slab::rows(info, f, 1), stored.data());
      file.read(plain, Slab::rows(file.arrays()[plain], f, 1), atoms.data());
      for (size_t i = 0; i < 9; ++i) ASSERT_NEAR(stored[3 * kAtoms + i], cell[i], 1e-4) << path;
      const float* map = images.make(stored.data(), memory);
      const float* truth = straight.make(whole.data() + f * 3 * kAtoms, wanted);
      const float* without = straight.make(atoms.data(), torn);
      for (size_t i = 0; i < kAtoms * kAtoms; ++i) {
        // Images of the chain's far ends may also touch, so only the true contacts are checked.
        if (truth[i] == 1) {
          ASSERT_EQ(map[i], 1) << path << " frame " << f << " pair " << i;
        }
        other += without[i] != truth[i];
      }
    }
    EXPECT_GT(other, 0) << "the chain was not torn";
  }
}

struct StoredDcdCell {
  std::array<double, 6> numbers;  // in the order of the file
  int version = 24;
  std::string title = "made for a test";
};

/// Returns a file with one atom, and these unit cells frame by frame.
ArrayFile file_of_cells(const ScratchDirectory& scratch, const StoredDcdCell& stored) {
  return open_array_file(scratch.write(
      "x.dcd",
      dcd_bytes({1, 2, 3}, 1,
                {.version = stored.version, .matrix = stored.numbers, .titles = {stored.title}})));
}

/// The same cell as each program writes it, and numbers of undetermined form.
TEST(UnitCell, DcdCellsInThreeForms) {
  const ScratchDirectory scratch;
  struct Case {
    StoredDcdCell stored;
    std::array<double, 3> lengths, degrees;
  };
  const std::array<double, 6> leaning = {29.99587634,   1e-15,  30,
                                         -0.4973960456, -1e-15, 29.99587634},
                              octahedron = {38.49001795,  -7.698003573, 38.49001795,
                                            -7.698003573, -7.698003573, 38.49001795},
                              hexagon = {28.97777479, -7.764571353, 28.97777479, 2e-15, 2e-15, 50},
                              dodecahedron = {48.09698831,  13.5299025, 46.19397663,
                                              -1.903011687, 13.5299025, 48.09698831};
  const double third = 1.0 / 3, wide = 109.4712206;
  const std::array<double, 6> cosines = {30, 0, 30, -0.0331552, 0, 30};
  const std::vector<Case> cases = {
      {{leaning, 40}, {30, 30, 30}, {90, 91.9, 90}},
      {{leaning, 22}, {30, 30, 30}, {90, 91.9, 90}},
      {{leaning, 24, "* DATE: 6/ 3/96 CREATED BY USER: me"}, {30, 30, 30}, {90, 91.9, 90}},
      {{leaning, 24, "Cpptraj generated dcd file."}, {30, 30, 30}, {90, 91.9, 90}},
      {{cosines, 24, "REMARKS CREATED BY NAMD"}, {30, 30, 30}, {90, 91.9, 90}},
      {{cosines, 21}, {30, 30, 30}, {90, 91.9, 90}},
      {{cosines, 24, ""}, {30, 30, 30}, {90, 91.9, 90}},
      {{{30, 90, 30, 91.9, 90, 30}}, {30, 30, 30}, {90, 91.9, 90}},
      {{{30, 90, 30, 91.9, 90, 30}, 40}, {30, 30, 30}, {90, 91.9, 90}},
      {{octahedron, 47}, {40, 40, 40}, {wide, wide, wide}},
      {{octahedron}, {40, 40, 40}, {wide, wide, wide}},
      {{{40, -third, 40, -third, -third, 40}}, {40, 40, 40}, {wide, wide, wide}},
      {{{40, wide, 40, wide, wide, 40}}, {40, 40, 40}, {wide, wide, wide}},
      {{hexagon, 35}, {30, 30, 50}, {90, 90, 120}},
      {{{30, -0.5, 30, 0, 0, 50}}, {30, 30, 50}, {90, 90, 120}},
      {{{30, 120, 30, 90, 90, 50}}, {30, 30, 50}, {90, 90, 120}},
      {{dodecahedron, 36}, {50, 50, 50}, {60, 90, 60}},
      {{{50, 0.5, 50, 0, 0.5, 50}}, {50, 50, 50}, {60, 90, 60}},
      {{{21.01200942, 5.181110794, 18.22265145, 3.956204117, 1.446051539, 24.64259288}, 41},
       {22, 19, 25},
       {80, 70, 60}},
      {{{500, 90, 500, 90, 90, 500}}, {500, 500, 500}, {90, 90, 90}},
      {{{100, 90, 100, 90, 90, 100}, 27}, {100, 100, 100}, {90, 90, 90}},
      {{{30, 0, 20, 0, 0, 25}, 24}, {30, 20, 25}, {90, 90, 90}},
      {{{30, 0, 20, 1e-16, 0, 25}, 39}, {30, 20, 25}, {90, 90, 90}}};
  for (const Case& one : cases) {
    const std::string message =
        fmt::format("{} version {}", fmt::join(one.stored.numbers, " "), one.stored.version);
    const ArrayFile file = file_of_cells(scratch, one.stored);
    const auto found = whole<float>(file, "coordinates_and_cell");
    const UnitCell cell = unit_cell_of(one.lengths, one.degrees);
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(found[3 + i], cell[i], 3e-4) << message;
    // Atom and cell are rotated together.
    EXPECT_NEAR(std::hypot(found[0], found[1], found[2]), std::sqrt(14), 1e-5) << message;
    EXPECT_EQ(file.arrays().size(), 2u) << message;
  }
}

/// A matrix has the axes of the coordinates: an atom along its third row lies along c.
TEST(UnitCell, CoordinatesAreTurnedWithAMatrix) {
  const ScratchDirectory scratch;
  const std::array<double, 6> matrix = {21.01200942, 5.181110794, 18.22265145,
                                        3.956204117, 1.446051539, 24.64259288};
  const std::vector<float> third = {3.956204117f, 1.446051539f, 24.64259288f};
  const ArrayFile file = open_array_file(
      scratch.write("x.dcd", dcd_bytes(third, 1, {.version = 41, .matrix = matrix})));
  const auto found = whole<float>(file, "coordinates_and_cell");
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[i], found[9 + i], 1e-5);
  EXPECT_EQ(whole<float>(file, "coordinates"), third);
}

TEST(UnitCell, DcdCellsThatNothingDecidesAreAskedFor) {
  const ScratchDirectory scratch;
  const StoredDcdCell open{{30, 0.02, 31, -0.4973960456, 0.01, 32}};
  const ArrayFile file = file_of_cells(scratch, open);
  expect_error<BadFile>(
      [&] { file.find("coordinates_and_cell"); },
      {"x.dcd", "frame 0", "cosines", "matrix", "version 24", "made for a test", "data.fields",
       "'from coordinates_and_cell_cosines'", "'from coordinates_and_cell_matrix'"});
  file.verify();
  const auto cosines = whole<float>(file, "coordinates_and_cell_cosines");
  EXPECT_NEAR(cosines[9], -0.4973960456 * 32, 1e-4);
  const auto matrix = whole<float>(file, "coordinates_and_cell_matrix");
  EXPECT_NEAR(matrix[3], std::hypot(30, 0.02, 0.4973960456), 1e-4);
  // The angles of an octahedron as cosines contradict a version that writes the matrix.
  const double third = 1.0 / 3;
  const ArrayFile contrary = file_of_cells(scratch, {{40, -third, 40, -third, -third, 40}, 40});
  expect_error<BadFile>([&] { contrary.find("coordinates_and_cell"); }, {"version 40"});
}

TEST(UnitCell, WhatMakesNoSenseIsRefused) {
  const Field field{.name = "x", .element = ElementType::f32, .shape = {5, 3}};
  std::vector<float> points(15, 0.0f), memory;
  const DerivedField images(field, parse_steps("x: periodic, contacts 8").derivation);
  const auto make = [&] { return images.make(points.data(), memory); };
  expect_error<BadFile>(make, {"'periodic'", "coordinates_and_cell"});
  points[6] = points[10] = points[14] = 15;
  expect_error<BadFile>(make, {"contacts 8", "15 15 15"});
  points[6] = points[10] = points[14] = 17;
  EXPECT_EQ(make()[1], 1);
  for (const char* text : {"x: periodic", "x: select CA of p.pdb, periodic, contacts 8",
                           "x: periodic 3, contacts 8", "x: periodic, periodic, contacts 8"})
    expect_config_error([&] { derived_field(field, parse_steps(text).derivation); }, {"periodic"});
  // An invalid stored cell is an error of the file, but only when it is requested.
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(1, 12);
  const ArrayFile file = open_array_file(scratch.write(
      "odd.dcd", dcd_bytes(xyz, 12, {.lengths = {20, 20, 20}, .angles = {0, 90, 200}})));
  expect_error<BadFile>([&] { file.find("coordinates_and_cell"); },
                        {"odd.dcd", "frame 0", "unit cell"});
  file.verify();
  EXPECT_EQ(whole<float>(file, "coordinates"), xyz);
  // Without a cell in the first frame there is no such array.
  EXPECT_EQ(open_array_file(scratch.write("none.xtc", xtc_bytes(xyz, 12))).arrays().size(), 1u);
}

}  // namespace
}  // namespace tutti::data
