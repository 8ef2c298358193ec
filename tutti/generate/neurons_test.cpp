#include "tutti/generate/neurons.h"

#include <gtest/gtest.h>

#include <map>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

TEST(Tissue, IsAFunctionOfSeedAndIndex) {
  const TissueSpec spec{.side = 24, .radius = 4};
  const Tissue a = generate_tissue(spec, 3), b = generate_tissue(spec, 3);
  EXPECT_EQ(a.image, b.image);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_NE(a.image, generate_tissue(spec, 4).image);
  EXPECT_NE(a.image, generate_tissue({.side = 24, .radius = 4, .seed = 2}, 3).image);
}

TEST(Tissue, IsMostlyCellsWithDarkMembranesBetweenThem) {
  const Tissue tissue = generate_tissue({.side = 48, .radius = 6}, 0);
  std::map<uint32_t, int64_t> sizes;
  double inside = 0, between = 0;
  for (size_t v = 0; v < tissue.labels.size(); ++v) {
    ++sizes[tissue.labels[v]];
    (tissue.labels[v] != 0 ? inside : between) += tissue.image[v];
  }
  const auto voxels = static_cast<int64_t>(tissue.labels.size());
  EXPECT_GT(sizes.size(), 8u);
  EXPECT_LT(sizes[0], voxels * 6 / 10);
  EXPECT_GT(sizes[0], voxels / 20);
  EXPECT_GT(inside / static_cast<double>(voxels - sizes[0]),
            between / static_cast<double>(sizes[0]) + 25);
  // No voxels of different objects may touch.
  for (int64_t v = 0; v + 1 < voxels; ++v) {
    if (v % 48 == 47) continue;
    const uint32_t a = tissue.labels[static_cast<size_t>(v)],
                   b = tissue.labels[static_cast<size_t>(v + 1)];
    EXPECT_TRUE(a == b || a == 0 || b == 0) << v;
  }
}

TEST(Tissue, RefusesTubesThatDoNotFit) {
  EXPECT_THROW(generate_tissue({.side = 8}, 0), ConfigError);
  EXPECT_THROW(generate_tissue({.side = 24, .radius = 7}, 0), ConfigError);
}

}  // namespace
}  // namespace tutti::generate
