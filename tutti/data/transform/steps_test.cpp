#include "tutti/data/transform/steps.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

TEST(Steps, SayPlacementThenValues) {
  const FieldSteps steps = parse_steps(
      " image :permute 2 0 1,crop 24 32 pad 4, flip y x,  divide 255, normalise mean 0.5 1 2 "
      "std 1 2 4, clip -3 3");
  EXPECT_EQ(steps.field, "image");
  EXPECT_EQ(steps.placement.permute, (std::vector<int>{2, 0, 1}));
  EXPECT_TRUE(steps.placement.crops);
  EXPECT_EQ(steps.placement.extents, (std::vector<int64_t>{24, 32}));
  EXPECT_EQ(steps.placement.pad, 4);
  EXPECT_EQ(steps.placement.flip, 0b11);
  ASSERT_EQ(steps.values.size(), 3u);
  EXPECT_EQ(steps.values[0].kind, ValueStep::Kind::divide);
  EXPECT_EQ(steps.values[1].first, (std::vector<float>{0.5f, 1, 2}));
  EXPECT_EQ(steps.values[1].second, (std::vector<float>{1, 2, 4}));
  EXPECT_EQ(steps.values[2].second, (std::vector<float>{3}));
  EXPECT_TRUE(parse_steps("label:").values.empty());
}

TEST(Steps, WhatCannotBeUnderstoodIsNamed) {
  const auto refused = [](const std::string& text, const std::string& why) {
    try {
      parse_steps(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      const std::string found = error.what();
      EXPECT_NE(found.find(why), std::string::npos) << found;
      EXPECT_NE(found.find("data.transforms"), std::string::npos) << found;
    }
  };
  refused("divide 255", "a field, a colon and steps");
  refused(": divide 255", "a field, a colon and steps");
  refused("image: devide 255", "'devide 255' is not known; known are permute");
  refused("image: divide", "wants 1 number");
  refused("image: divide x", "'x' where a number");
  refused("image: divide 0", "by zero");
  refused("image: divide nan", "'nan' where a number");
  refused("image: clip 2 1", "wrong order");
  refused("image: divide 255, flip x", "must stand before");
  refused("image: flip w", "'w' where an axis");
  refused("image: flip", "names no axis");
  refused("image: flip x, flip y", "twice");
  refused("image: flip x, permute 1 0", "must be the first");
  refused("image: permute 1 1", "each axis once");
  refused("image: crop 0", "whole number of 1");
  refused("image: crop pad", "one number after 'pad'");
  refused("image: crop 1 2 3 4", "more than three");
  refused("image: symmetries x z", "x y or x y z");
  refused("image: normalise 0.5 0.5", "mean A ... std B");
  refused("image: normalise mean 1 std 1 2", "as many numbers");
  refused("image: normalise mean 1 std 0", "not positive");
  refused("image: min-max min 1 max 1", "not above");
}

}  // namespace
}  // namespace tutti::data
