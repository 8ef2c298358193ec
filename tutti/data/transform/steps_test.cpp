#include "tutti/data/transform/steps.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

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

TEST(Steps, SayWhatIsDerivedFirst) {
  const FieldSteps steps = parse_steps("x: select CA of a/p.pdb, contacts 8.5, symmetries x y");
  EXPECT_EQ(steps.derivation.selection, "CA");
  EXPECT_EQ(steps.derivation.topology, "a/p.pdb");
  EXPECT_EQ(parse_steps("x: select CA of 'a b, it''s/p.pdb', contacts 8").derivation.topology,
            "a b, it's/p.pdb");
  EXPECT_EQ(parse_steps("x: select CA of o'n.pdb, contacts 8").derivation.topology, "o'n.pdb");
  const auto placed = [](const std::string& path) { return "/it's, here/" + path; };
  const std::string whole = with_topology("x: select CA of p.pdb, contacts 8.5", placed);
  EXPECT_EQ(whole, "x: select CA of '/it''s, here/p.pdb', contacts 8.5");
  EXPECT_EQ(parse_steps(whole).derivation.topology, "/it's, here/p.pdb");
  EXPECT_EQ(with_topology("x: contacts 8.5, flip x", placed), "x: contacts 8.5, flip x");
  EXPECT_EQ(steps.derivation.radius, 8.5f);
  EXPECT_EQ(steps.placement.symmetries, 0b11);
  EXPECT_TRUE(parse_steps("x: divide 2").derivation.is_identity());
}

TEST(Steps, WhatCannotBeUnderstoodIsNamed) {
  const auto refused = [](const std::string& text, const std::string& why) {
    EXPECT_TRUE(throws<ConfigError>({why, "data.transforms"}, [&] { parse_steps(text); })) << text;
  };
  refused("divide 255", "a field, a colon and steps");
  refused(": divide 255", "a field, a colon and steps");
  refused("image: devide 255",
          "'devide 255' is not known, did you mean 'divide'?; known are resized-crop, periodic, "
          "select, contacts, permute");
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
  refused("x: select CA", "'select CA of protein.pdb'");
  refused("x: select CA from p.pdb", "'select CA of protein.pdb'");
  refused("x: select CA of my protein.pdb", "blanks");
  refused("x: select CA of p.pdb, select CB of p.pdb", "and once");
  refused("x: contacts 8, select CA of p.pdb", "must stand before contacts");
  refused("x: contacts", "one distance above 0");
  refused("x: contacts -8", "one distance above 0");
  refused("x: contacts 8, contacts 8", "twice");
  refused("x: flip x, contacts 8", "must stand before");
  refused("x: select CA of p.pdb, periodic, contacts 8", "must be the first");
  refused("x: periodic 30 30 30, contacts 8", "wants nothing behind it");
  refused("x: divide 2, select CA of p.pdb", "must stand before");
}

}  // namespace
}  // namespace tutti::data
