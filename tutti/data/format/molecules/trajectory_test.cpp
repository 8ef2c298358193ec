#include <gtest/gtest.h>

#include <cmath>

#include "tutti/base/expect_text.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/format/molecules/trajectory_files.h"
#include "tutti/data/format/open_array.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

using TrajectoryShape = std::vector<int64_t>;

ArrayFile open_bytes(const ScratchDirectory& scratch, const std::string& name, const Bytes& bytes) {
  return open_array_file(scratch.write(name, bytes));
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << i;
}

TEST(Trajectory, DcdInBothByteOrdersWithAndWithoutCell) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(4, 11);
  for (const bool big_endian : {false, true})
    for (const bool cell : {false, true})
      for (const int version : {24, 0}) {
        if (version == 0 && cell) continue;
        const ArrayFile file = open_bytes(
            scratch, "x.dcd",
            dcd_bytes(xyz, 11, {.big_endian = big_endian, .cell = cell, .version = version}));
        ASSERT_EQ(file.arrays().size(), 1u);
        EXPECT_EQ(file.arrays()[0].shape, (TrajectoryShape{4, 11, 3}));
        EXPECT_EQ(file.arrays()[0].type, ElementType::f32);
        EXPECT_EQ(whole<float>(file, "coordinates"), xyz);
        const auto part = slab_of<float>(file, "coordinates", {{2, 3, 1}, {1, 2, 2}});
        EXPECT_EQ(part, (std::vector<float>{xyz[76], xyz[77], xyz[79], xyz[80]}));
      }
}

// Covers lengths of 64 bits, a fourth dimension, fixed atoms, and any number of titles, also with a
// wrong length of their record.
TEST(Trajectory, DcdOfOddForms) {
  const ScratchDirectory scratch;
  auto xyz = chain_coordinates(4, 11);
  const std::vector<std::string> two = {"one", "two"};
  for (const bool big_endian : {false, true})
    for (const int marker : {4, 8})
      for (const bool cell : {false, true})
        for (const int dimensions : {3, 4})
          for (const DcdForm& titles :
               {DcdForm{}, DcdForm{.titles = two}, DcdForm{.titles = {}},
                DcdForm{.titles = two, .title_length = 84}, DcdForm{.title_length = 164},
                DcdForm{.titles = std::vector<std::string>(33)}}) {
            DcdForm form = titles;
            form.big_endian = big_endian, form.marker = marker;
            form.cell = cell, form.dimensions = dimensions;
            const ArrayFile file = open_bytes(scratch, "x.dcd", dcd_bytes(xyz, 11, form));
            ASSERT_EQ(file.arrays()[0].shape, (TrajectoryShape{4, 11, 3}));
            ASSERT_EQ(whole<float>(file, "coordinates"), xyz);
          }
  const std::vector<int32_t> free = {1, 4, 10};
  for (size_t f = 1; f < 4; ++f)
    for (size_t atom = 0; atom < 11; ++atom)
      if (std::ranges::find(free, static_cast<int32_t>(atom)) == free.end())
        std::copy_n(&xyz[3 * atom], 3, &xyz[33 * f + 3 * atom]);
  for (const int marker : {4, 8}) {
    const Bytes bytes = dcd_bytes(
        xyz, 11, {.free = free, .lengths = {50, 50, 50}, .angles = {90, 90, 90}, .marker = marker});
    const ArrayFile file = open_bytes(scratch, "fixed.dcd", bytes);
    EXPECT_EQ(whole<float>(file, "coordinates"), xyz);
    EXPECT_EQ(slab_of<float>(file, "coordinates_and_cell", {{3, 11, 0}, {1, 1, 1}})[0], 50);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t at = text.find(std::string("\x02\0\0\0\x05\0\0\0\x0b\0\0\0", 12));
    ASSERT_NE(at, text.npos);
    // The first free atom is number 12 of 11.
    expect_error<BadFile>([&] { open_bytes(scratch, "odd.dcd", changed(bytes, at, 12)); },
                          {"/odd.dcd", "atoms from 1 to 11", "found 12"});
  }
}

TEST(Trajectory, DcdSaysWhatIsRefused) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(2, 3);
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open_bytes(scratch, "x.dcd", bytes).verify(); }, parts);
  };
  const Bytes sound = dcd_bytes(xyz, 3);
  const size_t header = sound.size() - 2 * (56 + 3 * (8 + 12));
  refuse(sized(sound, sound.size() - 5),
         {"/x.dcd", "frame 1", fmt::format("truncate -s {}", header + 56 + 60)});
  refuse(sized(sound, header), {"/x.dcd", "expected a frame of 3 atoms", "found 0 bytes"});
  refuse(sized(sound, 50), {"/x.dcd", "truncated"});
  Bytes untitled = sound;
  untitled[92] = 80;  // the length of the titles: neither it nor their number fits
  untitled[96] = 7;
  untitled[180] = 81;
  refuse(untitled, {"/x.dcd", "expected titles", "a record of 80 bytes"});
  for (const Bytes& first : {sound, dcd_bytes(xyz, 3, {.announced = 2})}) {
    refuse(joined(first, dcd_bytes(chain_coordinates(1, 40), 40)),
           {"/x.dcd", "another DCD begins", "behind 2 frames",
            fmt::format("'head -c {}'", first.size()),
            fmt::format("'tail -c +{}'", first.size() + 1)});
  }
  for (const int marker : {4, 8}) {
    Bytes velocities = dcd_bytes(xyz, 3, {.marker = marker});
    const auto at = static_cast<size_t>(marker);
    velocities[at] = 'V', velocities[at + 1] = 'E', velocities[at + 2] = 'L';
    refuse(velocities, {"/x.dcd", "velocities"});
  }
  // The last record's length, and the atoms.
  refuse(changed(sound, sound.size() - 4, 13), {"/x.dcd", "frame 1", "3 atoms with a unit cell"});
  refuse(changed(sound, header - 8, 4), {"/x.dcd", "frame 0", "4 atoms"});
  auto lost = xyz;
  lost[9 + 4] = std::nanf("");
  refuse(dcd_bytes(lost, 3), {"/x.dcd", "frame 1", "atom 1", "nan", "leave"});
}

TEST(Trajectory, TrrInBothPrecisions) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(5, 13);
  for (const bool wide : {false, true})
    for (const bool velocities : {false, true}) {
      const ArrayFile file = open_bytes(
          scratch, "x.trr", trr_bytes(xyz, 13, {.wide = wide, .velocities = velocities}));
      EXPECT_EQ(file.arrays()[0].shape, (TrajectoryShape{5, 13, 3}));
      expect_near(whole<float>(file, "coordinates"), xyz, 2e-6f);
    }
}

TEST(Trajectory, TrrSaysWhatIsWrong) {
  const ScratchDirectory scratch;
  const Bytes sound = trr_bytes(chain_coordinates(3, 5), 5);
  const size_t each = sound.size() / 3;
  const auto refuse = [&](size_t at, int value, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open_bytes(scratch, "x.trr", changed(sound, at, value)).verify(); },
                          parts);
  };
  refuse(each + 3, 1, {"/x.trr", "frame 1", "does not begin"});
  refuse(each + 24 + 3, 1, {"/x.trr", "frame 1", "no known version"});
  refuse(each + 24 + 4 * 7 + 3, 1, {"/x.trr", "frame 1", "part of 1 bytes for 5 atoms"});
  refuse(each + 24 + 4 * 10 + 3, 6, {"/x.trr", "frame 1", "for 6 atoms"});
  refuse(24 + 4 * 7 + 3, 0, {"/x.trr", "frame 1"});  // no positions: another header follows
  expect_error<BadFile>([&] { open_bytes(scratch, "x.trr", sized(sound, 2 * each + 30)); },
                        {"/x.trr", "frame 2", fmt::format("truncate -s {}", 2 * each)});
}

TEST(Trajectory, XtcPackedAndPlain) {
  const ScratchDirectory scratch;
  for (const int64_t atoms : {1, 3, 9, 10, 11, 50, 3000})
    for (const int magic : {1995, 2023}) {
      const auto xyz = chain_coordinates(3, atoms);
      const ArrayFile file = open_bytes(scratch, "x.xtc", xtc_bytes(xyz, atoms, magic));
      EXPECT_EQ(file.arrays()[0].shape, (TrajectoryShape{3, atoms, 3}));
      expect_near(whole<float>(file, "coordinates"), xyz, atoms > 1000 ? 3e-4f : 1e-5f);
    }
}

TEST(Trajectory, XtcOfIntegersFarApartAndOfOneBit) {
  std::vector<std::array<int32_t, 3>> far(12, {1, 2, 3}), same(12, {-5, 7, 2'000'000'000});
  far[3] = {INT32_MAX / 2, INT32_MIN / 2, 0};
  for (const auto& atoms : {far, same}) {
    const XtcPacker packer(atoms);
    std::vector<int32_t> found(36);
    EXPECT_EQ(unpack_xtc(packer.packing, packer.bytes, found), "");
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], atoms[i / 3][i % 3]) << i;
    EXPECT_GT(packer.small_atoms, 5);
    const std::span<const uint8_t> bytes = packer.bytes;
    EXPECT_NE(unpack_xtc(packer.packing, bytes.first(bytes.size() / 2), found), "");
  }
}

TEST(Trajectory, XtcSaysWhatIsWrong) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(3, 20);
  const Bytes sound = xtc_bytes(xyz, 20), one = xtc_bytes(chain_coordinates(1, 20), 20);
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { open_bytes(scratch, "x.xtc", bytes).verify(); }, parts);
  };
  refuse(changed(sound, one.size() + 3, 1), {"/x.xtc", "frame 1", "expected 1995 or 2023"});
  refuse(changed(sound, 7, 21), {"/x.xtc", "frame 0", "has 21 atoms, and coordinates of 20"});
  refuse(changed(sound, 56, 0xff), {"/x.xtc", "frame 0", "precision"});
  refuse(changed(sound, 87, 80), {"/x.xtc", "frame 0", "small size 80"});
  refuse(changed(sound, 91, 2), {"/x.xtc", "frame 0", "2 bytes for 20 atoms"});
  refuse(sized(sound, one.size() + 40),
         {"/x.xtc", "frame 1", fmt::format("truncate -s {}", one.size())});
  refuse(joined(one, xtc_bytes(chain_coordinates(1, 12), 12)),
         {"/x.xtc", "frame 1", "12 atoms, and those before it have 20"});
  refuse(xtc_bytes({1, 2, std::nanf("")}, 1), {"/x.xtc", "frame 0", "atom 0", "nan"});
}

// A header that announces more than the file holds must be found before memory is allocated for it.
TEST(Trajectory, CountsBeyondTheFile) {
  const ScratchDirectory scratch;
  ByteWriter xtc;
  xtc.whole(1995).whole(INT32_MAX).zeros(44).whole(INT32_MAX).f32(1000).zeros(24).whole(20).whole(
      INT32_MAX);
  ByteWriter trr;
  trr.whole(1993).whole(13).whole(12).text("GMX_trn_file").zeros(28).whole(24'000'000).zeros(8);
  trr.whole(2'000'000).zeros(16);
  ByteWriter dcd(false);
  dcd.whole(84).text("CORD").zeros(80).whole(84).zeros(8).whole(4).whole(INT32_MAX).whole(4);
  for (const auto& [name, writer] :
       {std::pair("x.xtc", xtc), std::pair("x.trr", trr), std::pair("x.dcd", dcd)})
    expect_error<BadFile>([&] { open_bytes(scratch, name, writer.bytes()).verify(); }, {name});
}

TEST(Trajectory, FramesAreSamples) {
  const ScratchDirectory scratch;
  const auto xyz = chain_coordinates(6, 10);
  scratch.write("run.xtc", xtc_bytes(xyz, 10));
  scratch.write("again.xtc", xtc_bytes(xyz, 10));
  const auto set =
      open_dataset({.name = "arrays",
                    .dir = scratch.path(),
                    .arrays = {.train = {"*.xtc"}, .fields = {"positions: from coordinates"}}});
  ASSERT_EQ(set->size(), 12);
  EXPECT_EQ(set->fields()[0].to_string(), "f32 positions 10x3");
  for_each_sample(12, 4, [&](int64_t i) {
    const auto values = values_of<float>(*set, i, "positions");
    for (size_t k = 0; k < 30; ++k)
      EXPECT_NEAR(values[k], xyz[static_cast<size_t>(i % 6) * 30 + k], 1e-5f);
  });
}

#ifdef TUTTI_TEST_DATA
const std::filesystem::path kMolecules = std::filesystem::path(TUTTI_TEST_DATA) / "md";

std::vector<float> real_coordinates(const std::string& name, const TrajectoryShape& shape) {
  const ArrayFile file = open_array_file(kMolecules / name);
  EXPECT_EQ(file.arrays()[file.find("coordinates")].shape, shape) << name;
  std::vector<float> xyz = whole<float>(file, "coordinates");
  if (name.ends_with(".h5"))  // MDTraj's unit is the nanometre
    for (float& x : xyz) x *= 10;
  return xyz;
}

TEST(RealTrajectory, AlanineDipeptideInFiveFormats) {
  const TrajectoryShape shape = {501, 22, 3};
  const auto dcd = real_coordinates("alanine_dipeptide/frame0.dcd", shape);
  for (const std::string ending : {".xtc", ".trr", ".nc", ".h5"})
    expect_near(real_coordinates("alanine_dipeptide/frame0" + ending, shape), dcd, 0.0101f);
}

TEST(RealTrajectory, BptiInFiveFormats) {
  const TrajectoryShape shape = {100, 58, 3};
  const auto dcd = real_coordinates("bpti_ca/bpti_mini.dcd", shape);
  for (const std::string ending : {".trr", ".nc", ".h5"})
    expect_near(real_coordinates("bpti_ca/bpti_mini" + ending, shape), dcd, 5e-6f);
  expect_near(real_coordinates("bpti_ca/bpti_mini.xtc", shape), dcd, 0.0051f);
}

TEST(RealTrajectory, AnyFrameByItself) {
  for (const std::string name :
       {"mdcath_2hbaA00/2hbaA00_320_0.xtc", "myoglobin_heating/myo_noh_500.xtc",
        "dpdp_beta_peptide/DPDP.nc"}) {
    const ArrayFile file = open_array_file(kMolecules / name);
    const size_t array = file.find("coordinates");
    const ArrayInfo& info = file.arrays()[array];
    const auto all = whole<float>(file, "coordinates");
    for (const int64_t frame : {info.shape[0] - 1, int64_t{0}, info.shape[0] / 2}) {
      const auto one = slab_of<float>(file, "coordinates", Slab::rows(info, frame, 1));
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + frame * std::ssize(one)));
      // Consecutive atoms of a molecule are close: an error in the bits would show.
      int64_t far = 0;
      for (size_t i = 3; i < one.size(); i += 3)
        far +=
            std::hypot(one[i] - one[i - 3], one[i + 1] - one[i - 2], one[i + 2] - one[i - 1]) > 9;
      EXPECT_LE(far, 20) << name << ' ' << frame;
    }
    file.verify();
  }
}
#endif

}  // namespace
}  // namespace tutti::data
