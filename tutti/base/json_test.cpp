#include "tutti/base/json.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Json, MembersKeepTheirOrder) {
  EXPECT_EQ(print_json(parse_json(R"({"z":1,"a":{"y":[true,null],"b":"x"}})")),
            R"({"z":1,"a":{"y":[true,null],"b":"x"}})");
}

TEST(Json, ARepeatedKeyOfTheOutermostObjectIsNamed) {
  try {
    parse_json(R"({"a":1,"b":{"c":1,"c":2},"a":3})");
    FAIL();
  } catch (const RepeatedKey& error) {
    EXPECT_EQ(error.key, "a");
    EXPECT_STREQ(error.what(), "'a' is named twice");
  }
  EXPECT_TRUE(json_or_null(R"({"a":1,"a":3})").is_null());
}

TEST(Json, MembersAreThoseOfTheObject) {
  const auto members = parse_members(R"({"z":[1,2],"a":{"y":null,"b":"x"}})");
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(print_json(members.at("z")), "[1,2]");
  EXPECT_EQ(members.at("a").at("b"), "x");
  EXPECT_THROW(parse_members(R"({"a":1,"a":3})"), RepeatedKey);
  EXPECT_THROW(parse_members("[1]"), IoError);
  EXPECT_THROW(parse_members(R"({"a":)"), Json::parse_error);
}

TEST(Json, NumbersAreThoseOfAnObjectThatHasNothingElse) {
  const std::map<std::string, int64_t> numbers = {{"a", -3}, {"z", 9007199254740993}};
  EXPECT_EQ(parse_numbers(R"({"z":9007199254740993,"a":-3})"), numbers);
  EXPECT_TRUE(parse_numbers("{}").empty());
  for (const char* other : {R"({"a":1.5})", R"({"a":"1"})", R"({"a":[1]})", R"({"a":{"b":1}})",
                            R"({"a":1e30})", R"({"a":1e999})", "[1]", "1"})
    EXPECT_THROW(parse_numbers(other), IoError) << other;
  EXPECT_THROW(parse_numbers(R"({"a":1,"a":3})"), RepeatedKey);
  EXPECT_THROW(parse_numbers(R"({"a":)"), Json::parse_error);
}

TEST(Json, WhatIsNoJsonThrowsOrIsNull) {
  EXPECT_THROW(parse_json(R"({"a":)"), Json::parse_error);
  EXPECT_TRUE(json_or_null(R"({"a":)").is_null());
  EXPECT_EQ(json_or_null("[1]").size(), 1u);
}

TEST(Json, BytesThatAreNoTextDoNotLoseTheRest) {
  EXPECT_EQ(print_json(Json{{"path", "a\xff"}}), "{\"path\":\"a\xEF\xBF\xBD\"}");
  EXPECT_EQ(as_utf8("a\xff"), "a\xEF\xBF\xBD");
  for (const char* text : {"", "a\n\"b\"", "\xC3\xA4", "true"}) EXPECT_EQ(as_utf8(text), text);
}

TEST(Json, WholeNumbersAreThoseOfTheirType) {
  const Json json = parse_json(R"({"a": 3, "b": -1, "c": 1.5, "d": 22222222222222222221,
                                   "e": [1, 2], "f": [1, 1e30], "g": 300, "h": true})");
  EXPECT_EQ(json_value<int64_t>(json["a"]), 3);
  EXPECT_EQ(json_value<uint64_t>(json["a"]), 3u);
  EXPECT_EQ(json_value<int>(json["b"]), -1);
  EXPECT_EQ(json_value<std::vector<int>>(json["e"]), (std::vector{1, 2}));
  EXPECT_EQ(json_value<double>(json["c"]), 1.5);
  EXPECT_TRUE(json_value<bool>(json["h"]));
  EXPECT_THROW(json_value<uint64_t>(json["b"]), IoError);
  EXPECT_THROW(json_value<int64_t>(json["c"]), IoError);
  EXPECT_THROW(json_value<int64_t>(json["d"]), IoError);
  EXPECT_THROW(json_value<std::vector<int64_t>>(json["f"]), IoError);
  EXPECT_THROW(json_value<uint8_t>(json["g"]), IoError);
  EXPECT_THROW(json_value<int64_t>(json["h"]), IoError);
  EXPECT_THROW(json_value<std::vector<int>>(json["a"]), Json::exception);
}

}  // namespace
}  // namespace tutti
