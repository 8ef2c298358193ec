#include "tutti/data/arrays/field_line.h"

#include <gtest/gtest.h>

#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

using Names = std::vector<std::string>;

TEST(FieldLine, SaysArraysPlacesAndTypes) {
  const FieldLine image = parse_field_line("image: from images");
  EXPECT_EQ(image.field, "image");
  EXPECT_EQ(image.arrays, Names{"images"});
  EXPECT_EQ(image.place, FieldLine::Place::unset);

  const FieldLine stacked = parse_field_line("data:from TMQ,U850 , V850 axis 1 missing -1.5");
  EXPECT_EQ(stacked.arrays, (Names{"TMQ", "U850", "V850"}));
  EXPECT_EQ(stacked.place, FieldLine::Place::axis);
  EXPECT_EQ(stacked.axis, 1);
  EXPECT_EQ(stacked.missing, -1.5);

  const FieldLine box = parse_field_line("x: from full cut 128 128 64 as i16 4 ? ?");
  EXPECT_EQ(box.place, FieldLine::Place::cut);
  EXPECT_EQ(box.cut, (std::vector<int64_t>{128, 128, 64}));
  EXPECT_EQ(box.type, ElementType::i16);
  EXPECT_EQ(box.shape, (std::vector<int64_t>{4, FieldLine::kAnyExtent, FieldLine::kAnyExtent}));

  EXPECT_EQ(parse_field_line("m: from a/b whole classes 3").class_names, (Names{"0", "1", "2"}));
  const FieldLine named = parse_field_line("m: from 'a: b, c' classes sea, 'dry land'");
  EXPECT_EQ(named.arrays, Names{"a: b, c"});
  EXPECT_EQ(named.class_names, (Names{"sea", "dry land"}));
  EXPECT_EQ(parse_field_line("x: from 'axis' as 3").arrays, Names{"axis"});
}

TEST(FieldLine, NamesTheTextAndTheWord) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"image", "'from' must come first"},
      {": from x", "'from' must come first"},
      {"a b: from x", "'from' must come first"},
      {"x: images", "'from' must come first"},
      {"x: from", "an array's name"},
      {"x: from a,", "a comma"},
      {"x: from ,a", "a comma stands"},
      {"x: from a,,b", "a comma stands"},
      {"x: from 'a", "not closed"},
      {"x: from ''", "no name"},
      {"x: from a b", "'b' is not known"},
      {"x: from a axis", "a number behind 'axis'"},
      {"x: from a axis -1", "'-1'"},
      {"x: from a axis 1.5", "'1.5'"},
      {"x: from a axis 0 whole", "once"},
      {"x: from a cut", "extents of a block"},
      {"x: from a cut 0", "'0'"},
      {"x: from a cut 1 1 1 1 1 1", "5 axes at most"},
      {"x: from a as", "wants a type"},
      {"x: from a as f31", "'f31'"},
      {"x: from a as u8 3 as u8", "twice"},
      {"x: from a classes", "number of classes"},
      {"x: from a classes 1", "'1'"},
      {"x: from a classes 99999999999999999999", "'99999999999999999999'"},
      {"x: from a classes sea", "at least two names"},
      {"x: from a, b classes 2", "one array"},
      {"x: from a missing nan", "'nan'"},
  };
  for (const auto& [text, part] : wrong)
    expect_config_error([&] { parse_field_line(text); }, {"data.fields", text, part});
  expect_config_error([] { parse_field_lines({"x: from a", "x: from b"}); }, {"there already"});
}

}  // namespace
}  // namespace tutti::data
