#include "tutti/data/neurons/neuron_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/format/array/hdf5_arrays.h"

namespace tutti::data {
namespace {

/// Two objects and a gap between them along x; ids as files have them, neither small nor in order.
Volume halves(int64_t side) {
  Volume v{.name = "halves", .extents = {side, side, side}, .image = {}, .labels = {}};
  for (int64_t i = 0; i < side * side * side; ++i) {
    const int64_t x = i % side;
    v.labels.push_back(x < side / 2 ? 1 : x > side / 2 ? 2 : 0);
    v.image.push_back(static_cast<uint8_t>(i % 251));
  }
  return v;
}

/// Computes the part of a voxel by counting its whole box.
uint8_t part_by_counting(const Volume& v, const SeedRule& rule, const Voxels3& at) {
  const auto label = [&](int64_t z, int64_t y, int64_t x) {
    return v.labels[static_cast<size_t>((z * v.extents[1] + y) * v.extents[2] + x)];
  };
  const uint32_t own = label(at[0], at[1], at[2]);
  if (own == 0) return kNoSeed;
  int64_t same = 0, voxels = 0, size = 0;
  for (const uint32_t l : v.labels) size += l == own;
  if (size < rule.min_object) return kNoSeed;
  for (int64_t z = at[0] - rule.surroundings[0] / 2; z <= at[0] + rule.surroundings[0] / 2; ++z)
    for (int64_t y = at[1] - rule.surroundings[1] / 2; y <= at[1] + rule.surroundings[1] / 2; ++y)
      for (int64_t x = at[2] - rule.surroundings[2] / 2; x <= at[2] + rule.surroundings[2] / 2;
           ++x) {
        if (std::min({z, y, x}) < 0 || z >= v.extents[0] || y >= v.extents[1] || x >= v.extents[2])
          return kNoSeed;
        same += label(z, y, x) == own;
        ++voxels;
      }
  uint8_t part = 0;
  for (const double bound : rule.bounds)
    part = static_cast<uint8_t>(part +
                                (bound <= static_cast<double>(same) / static_cast<double>(voxels)));
  return part;
}

TEST(SeedParts, AreThoseOfCountingEachBox) {
  Volume v{.name = "noise", .extents = {9, 11, 12}, .image = {}, .labels = {}};
  Rng rng(1, Purpose::test, 1);
  for (int64_t i = 0; i < product(v.extents); ++i)
    v.labels.push_back(rng.below(5) == 0 ? rng.below(6) : static_cast<uint32_t>(i % 12 / 5));
  const SeedRule rule{
      .surroundings = {3, 5, 7}, .min_object = 30, .bounds = {0.1, 0.3, 0.5, 0.8}, .seed = 1};
  const std::vector<uint8_t> parts = seed_parts(v, rule);
  int64_t seeds = 0;
  for (int64_t i = 0; i < product(v.extents); ++i) {
    const Voxels3 at{i / 132, i / 12 % 11, i % 12};
    EXPECT_EQ(parts[static_cast<size_t>(i)], part_by_counting(v, rule, at)) << i;
    seeds += parts[static_cast<size_t>(i)] != kNoSeed;
  }
  EXPECT_GT(seeds, 100);
}

TEST(SeedPoints, ComeAsOftenFromEachPart) {
  const Volume v = halves(15);
  const SeedRule rule{.surroundings = {5, 5, 5}, .bounds = {0.5, 0.7, 0.9}, .seed = 1};
  const std::vector<uint8_t> parts = seed_parts(v, rule);
  const SeedPoints points(std::span(&v, 1), rule);
  std::vector<int> drawn(256);
  for (int64_t i = 0; i < 300; ++i) {
    const SeedPoint p = points[i];
    EXPECT_EQ(p, points[i]);
    ++drawn[parts[static_cast<size_t>((p.at[0] * 15 + p.at[1]) * 15 + p.at[2])]];
  }
  EXPECT_EQ(drawn[kNoSeed], 0);
  EXPECT_EQ(drawn[1], 100);  // fractions 0.6, 0.8 and 1; none is smaller
  EXPECT_EQ(drawn[2], 100);
  EXPECT_EQ(drawn[3], 100);
}

class NeuronFiles : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const Volume& v,
                              const std::vector<int64_t>& label_extents) {
    const std::vector<int64_t> extents(v.extents.begin(), v.extents.end());
    std::vector<int64_t> ids;
    for (const uint32_t l : v.labels) ids.push_back(l == 0 ? -1 : 70000 + 13 * int64_t{l});
    write_hdf5(scratch_.path() / name, {{"raw", ElementType::u8, extents, v.image.data()},
                                        {"labels", ElementType::i64, label_extents, ids.data()}});
    return scratch_.path() / name;
  }
  const ScratchDirectory scratch_;
};

TEST_F(NeuronFiles, GiveTheSurroundingsOfASeedAndTheMaskOfItsObject) {
  const Volume v = halves(15);
  const NeuronSet set({.files = {write("v.h5", v, {1, 15, 15, 15})},
                       .fov = {3, 5, 5},
                       .deltas = {1, 2, 1},
                       .partitions = {0.5},
                       .count = 40});
  ASSERT_EQ(set.size(), 40);
  const auto canvases = set.canvases();
  EXPECT_EQ(canvases->fields()[0].shape, (Shape{1, 5, 9, 7}));
  Sample narrow(set.fields()), wide(canvases->fields());
  for (int64_t i = 0; i < set.size(); ++i) {
    set.read(i, narrow);
    canvases->read(i, wide);
    const auto* image = static_cast<const uint8_t*>(narrow.at(0));
    const auto* label = static_cast<const uint8_t*>(narrow.at(1));
    const auto* seed = static_cast<const float*>(narrow.at(2));
    const auto* wide_image = static_cast<const uint8_t*>(wide.at(0));
    const auto* wide_label = static_cast<const uint8_t*>(wide.at(1));
    EXPECT_EQ(label[(1 * 5 + 2) * 5 + 2], 1);
    for (int64_t e = 0; e < 75; ++e) {
      const int64_t z = e / 25, y = e / 5 % 5, x = e % 5, at = ((z + 1) * 9 + y + 2) * 7 + x + 1;
      EXPECT_EQ(image[e], wide_image[at]);
      EXPECT_EQ(label[e], wide_label[at]);
      EXPECT_FLOAT_EQ(seed[e], e == 37 ? std::log(19.0f) : -std::log(19.0f));
    }
  }
}

TEST_F(NeuronFiles, RefuseWhatIsNoVolume) {
  const Volume v = halves(15);
  const auto refused = [&](const NeuronSetSpec& spec, const std::string& words) {
    EXPECT_TRUE(throws<Error>({words}, [&] { NeuronSet set(spec); })) << words;
  };
  NeuronSetSpec spec{
      .files = {write("v.h5", v, {15, 15, 15})}, .fov = {15, 15, 15}, .deltas = {1, 1, 1}};
  refused(spec, "no voxel to begin at");
  spec.fov = {3, 3, 3};
  spec.min_object = 100000;
  refused(spec, "min_object");
  spec.min_object = 1;
  spec.fields = {parse_field_line("image: from labels"), parse_field_line("label: from none")};
  refused(spec, "none");
  spec.fields = {parse_field_line("mask: from labels")};
  refused(spec, "mask");
  spec.fields = {parse_field_line("label: from labels axis 0")};
  refused(spec, "one array");
  spec.fields = {};
  spec.files = {write("turned.h5", v, {225, 15})};
  refused(spec, "three axes");
  spec.files = {write("other.h5", v, {5, 45, 15})};
  refused(spec, "[5, 45, 15]");
  std::vector<ArrayRef> packed = {{"raw", ElementType::u8, {15, 15, 15}, v.image.data()},
                                  {"labels", ElementType::u32, {15, 15, 15}, v.labels.data()}};
  packed[0].attributes = {{"scale_factor", {.numbers = {0.5}}}};
  spec.files = {scratch_.path() / "packed.h5"};
  write_hdf5(spec.files[0], packed);
  refused(spec, "packed by scale_factor");
}

}  // namespace
}  // namespace tutti::data
