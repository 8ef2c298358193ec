#include "tutti/cli/infer/picture.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti::cli {
namespace {

Sheet waves(int64_t height, int64_t width) {
  Sheet sheet{.height = height, .width = width, .values = {}};
  for (int64_t i = 0; i < height * width; ++i)
    sheet.values.push_back(std::sin(static_cast<float>(i) / 100));
  return sheet;
}

TEST(Picture, SeriesAreCurvesOfOneSize) {
  for (const int64_t length : {1, 2, 30, 4000, 100'000}) {
    const Panel panels[] = {{.sheet = waves(1, length)}, {.sheet = waves(1, length)}};
    const Picture picture = side_by_side(panels);
    EXPECT_EQ(picture.width(), 806) << length;
    EXPECT_EQ(picture.height(), 200) << length;
  }
  Panel gaps{.sheet = waves(1, 50)};
  gaps.sheet.values[3] = NAN;
  gaps.sheet.values[9] = INFINITY;
  EXPECT_EQ(side_by_side(std::span(&gaps, 1)).width(), 400);
  const Panel mixed[] = {{.sheet = waves(50, 40)}, {.sheet = waves(1, 4000)}};
  EXPECT_EQ(side_by_side(mixed).width(), 4 * 40 + 6 + 400);
}

TEST(Picture, FlatSheetsAreNotEnlargedWithoutEnd) {
  const Panel small{.sheet = waves(20, 30)}, flat{.sheet = waves(2, 4000)};
  EXPECT_EQ(side_by_side(std::span(&small, 1)).width(), 300);
  EXPECT_EQ(side_by_side(std::span(&flat, 1)).width(), 4000);
}

}  // namespace
}  // namespace tutti::cli
