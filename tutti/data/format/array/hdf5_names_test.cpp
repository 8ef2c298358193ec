#include <gtest/gtest.h>

#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/format/array/array_checks.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

// The array is run7/d; run7/up leads to the root, run7/own to run7; self and through, by another
// file, lead from the file to itself.
TEST(Hdf5, LinksBackToTheFileAndSpellingsAreFollowed) {
  const std::vector<int16_t> x = {0, 1, 2, 3, 4, 5};
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(corpus_file("hdf5/circle"), {.probe = probe});
    std::vector<std::string> names;
    for (const ArrayInfo& array : file.arrays()) names.push_back(array.name);
    EXPECT_EQ(names, (std::vector<std::string>{"run7/d", "self", "through"}));
    for (const char* name : {"run7/d", "self", "through", "/run7/d", "run7//d", "./run7/./d/",
                             "run7/up/run7/d", "run7/own/own/up/run7/up/self"}) {
      EXPECT_TRUE(file.holds(name)) << name;
      EXPECT_EQ(whole<int16_t>(file, name), x) << name;
    }
    EXPECT_FALSE(file.holds("run7/up/d"));
    expect_error<BadFile>([&] { file.find("run7/up/d"); }, {"'run7/up/d'", "run7/d i16 [6]"});
  }
}

// x has 5 entries along the unlimited dimension, the others fewer: netCDF4-python gives all of them
// 5, with fill values at the end.
TEST(Hdf5, UnlimitedDimensionsAreAsLongAsTheLongestArray) {
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(corpus_file("hdf5/short_records"), {.probe = probe});
    EXPECT_EQ(whole<float>(file, "x"), counted<float>(15));
    constexpr int16_t kFill = -32767;
    EXPECT_EQ(whole<int16_t>(file, "y"),
              (std::vector<int16_t>{7, 7, 7, 7, 7, 7, kFill, kFill, kFill, kFill, kFill, kFill,
                                    kFill, kFill, kFill}));
    EXPECT_EQ(slab_of<int16_t>(file, "y", {{1, 1}, {2, 2}}),
              (std::vector<int16_t>{7, 7, kFill, kFill}));
    EXPECT_EQ(slab_of<int16_t>(file, "y", {{0, 1}, {2, 1}}), (std::vector<int16_t>{7, 7}));
    EXPECT_EQ(slab_of<int16_t>(file, "y", {{3, 0}, {1, 2}}), (std::vector<int16_t>{kFill, kFill}));
    EXPECT_EQ(whole<int32_t>(file, "z"),
              (std::vector<int32_t>{1, 2, 3, -2147483647, -2147483647}));  // big endian
    EXPECT_EQ(whole<int16_t>(file, "g/w"), (std::vector<int16_t>{4, -9, -9, -9, -9}));
    for (const double value : whole<double>(file, "never"))
      EXPECT_TRUE(value_coding(file.arrays()[file.find("never")]).is_missing(value)) << value;
    file.verify();
  }
}

// t has 5 entries. NetCDF's library ends the others with its default fill values, also single
// bytes; a boolean has none. The second dimensions of loose_short and loose_long have no scale.
TEST(Hdf5, WithoutAStoredFillValueNetCdfsDefaultIsTaken) {
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(corpus_file("hdf5/no_fill_value"), {.probe = probe});
    constexpr int16_t kShort = -32767;
    constexpr int32_t kInt = -2147483647;
    constexpr uint64_t kUnsigned = 18446744073709551614u;
    constexpr int64_t kLong = -9223372036854775806;
    constexpr double kDouble = 9.969209968386869e36;
    EXPECT_EQ(whole<int16_t>(file, "a"), (std::vector<int16_t>{7, 7, kShort, kShort, kShort}));
    EXPECT_EQ(whole<int32_t>(file, "b"), (std::vector<int32_t>{1, 2, 3, kInt, kInt}));
    EXPECT_EQ(whole<int8_t>(file, "c"), (std::vector<int8_t>{5, -127, -127, -127, -127}));
    EXPECT_EQ(slab_of<uint64_t>(file, "d", {{0}, {2}}), (std::vector<uint64_t>{6, kUnsigned}));
    EXPECT_EQ(slab_of<int64_t>(file, "e", {{0}, {2}}), (std::vector<int64_t>{6, kLong}));
    EXPECT_EQ(slab_of<double>(file, "f", {{0}, {2}}), (std::vector<double>{1.5, kDouble}));
    expect_error<BadFile>([&] { file.find("flag"); },
                          {"'flag'", "extents are [2]", "have [5]", "NetCDF has none of bool"});
    EXPECT_EQ(file.arrays()[file.find("loose_short")].shape, (std::vector<int64_t>{5, 2}));
    EXPECT_EQ(file.arrays()[file.find("loose_long")].shape, (std::vector<int64_t>{5, 3}));
    EXPECT_EQ(file.arrays()[file.find("bare_short")].shape, (std::vector<int64_t>{1}));
    const auto is_missing = [&](const char* name, double value) {
      return value_coding(file.arrays()[file.find(name)]).is_missing(value);
    };
    EXPECT_TRUE(is_missing("d", static_cast<double>(kUnsigned)));
    EXPECT_TRUE(is_missing("e", static_cast<double>(kLong)));
    EXPECT_TRUE(is_missing("f", kDouble));
    EXPECT_TRUE(is_missing("a", kShort) && is_missing("b", kInt));
    EXPECT_FALSE(value_coding(file.arrays()[file.find("c")]).masks());
  }
}

}  // namespace
}  // namespace tutti::data
