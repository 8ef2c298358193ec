#include <gtest/gtest.h>

#include "tutti/data/arrays/climate_values.h"
#include "tutti/data/format/array_checks.h"

namespace tutti::data {
namespace {

std::filesystem::path hdf5_example(const std::string& name) {
  return std::filesystem::path(TUTTI_SOURCE_DIR) / "tests/fuzz/corpus/hdf5" / name;
}

// run7/d; run7/up leads to the root, run7/own to run7; self and through, by another file, lead from
// the file to itself.
TEST(Hdf5, LinksBackToTheFileAndSpellingsAreFollowed) {
  const std::vector<int16_t> x = {0, 1, 2, 3, 4, 5};
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(hdf5_example("circle"), {.probe = probe});
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

// x goes 5 times along the unlimited dimension, the others less far: netCDF4-python gives all of
// them 5, with fill values at the end.
TEST(Hdf5, UnlimitedDimensionsAreAsLongAsTheLongestArray) {
  for (const bool probe : {true, false}) {
    const ArrayFile file = open_array_file(hdf5_example("short_records"), {.probe = probe});
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

}  // namespace
}  // namespace tutti::data
