#include "tutti/data/format/array/row_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/format/open_array.h"

namespace tutti::data {
namespace {

const RowArray kRows{
    .name = "prediction", .shape = {7, 3, 2}, .dimensions = {"sample", "class", "x"}};

TEST(RowWriter, EachFormIsReadBackAsItWasWrittenInPieces) {
  const ScratchDirectory scratch;
  std::vector<float> values(7 * 6);
  std::iota(values.begin(), values.end(), 0.5f);
  for (const char* name : {"p.npy", "p.h5", "p.nc"}) {
    const auto path = scratch.path() / name;
    {
      const auto writer = open_row_writer(path, kRows, "--output");
      writer->append(values.data(), 4);
      writer->append(values.data() + 4 * 6, 3);
      EXPECT_FALSE(std::filesystem::exists(path)) << name;
      writer->close();
    }
    const ArrayFile file = open_array_file(path);
    const size_t at = file.find(std::string(name) == "p.npy" ? "array" : "prediction");
    const ArrayInfo& info = file.arrays()[at];
    EXPECT_EQ(info.shape, kRows.shape) << name;
    if (std::string(name) == "p.nc") {
      EXPECT_EQ(info.dimensions, kRows.dimensions);
    }
    std::vector<float> read(values.size());
    file.read(at, Slab::all(info), read.data());
    EXPECT_EQ(read, values) << name;
  }
}

// Attributes and columns describe the rows: in the file, or beside a .npy, which has no place for
// them.
TEST(RowWriter, KeepsAttributesAndColumns) {
  const ScratchDirectory scratch;
  RowArray rows = kRows;
  rows.shape = {3, 1};
  rows.dimensions = {"sample", "output"};
  rows.attributes = {{"units", {.text = "\u00b5m"}}, {"step", {.numbers = {40}}}};
  rows.columns = {{.name = "index", .meaning = "number", .numbers = {2, 5, 1'000'000'000'000}},
                  {.name = "file", .words = {"a.h5", "b", ""}}};
  const std::vector<float> values = {0.5f, 1, 2};
  for (const char* name : {"p.npy", "p.h5", "p.nc"}) {
    const auto writer = open_row_writer(scratch.path() / name, rows, "--output");
    writer->append(values.data(), 3);
    writer->close();
  }
  for (const char* name : {"p.h5", "p.nc"}) {
    const ArrayFile file = open_array_file(scratch.path() / name);
    const ArrayInfo& info = file.arrays()[file.find("prediction")];
    EXPECT_EQ(info.attributes.at("units").text, "\u00b5m");
    EXPECT_EQ(info.attributes.at("step").numbers, (std::vector<double>{40}));
    const size_t at = file.find("index");
    EXPECT_EQ(file.arrays()[at].attributes.at("long_name").text, "number");
    if (std::string(name) == "p.nc") {
      EXPECT_EQ(file.arrays()[at].dimensions, (std::vector<std::string>{"sample"}));
    }
    std::vector<int64_t> index(3);
    file.read(at, Slab::all(file.arrays()[at]), index.data());
    EXPECT_EQ(index, rows.columns[0].numbers);
    EXPECT_TRUE(std::ranges::any_of(file.arrays(), [](const auto& a) { return a.name == "file"; }));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "p.npy.json.part"));
  std::ifstream beside(scratch.path() / "p.npy.json");
  const Json described = parse_json(beside);
  EXPECT_EQ(described.at("attributes").at("units"), "\u00b5m");
  EXPECT_EQ(described.at("index"), Json(rows.columns[0].numbers));
  EXPECT_EQ(described.at("file").at(1), "b");
}

TEST(RowWriter, WhatIsSaidOfAnArrayComesBehindIt) {
  const ScratchDirectory scratch;
  RowArray rows = kRows;
  rows.shape = {1};
  rows.dimensions = {"sample"};
  rows.attributes = {{"units", {.text = "K"}}};
  std::filesystem::create_directories(scratch.path() / "p.npy/occupied");
  const float value = 1;
  {
    const auto writer = open_row_writer(scratch.path() / "p.npy", rows, "--output");
    writer->append(&value, 1);
    EXPECT_THROW(writer->close(), IoError);
  }
  for (const char* name : {"p.npy.json", "p.npy.json.part", "p.npy.part"})
    EXPECT_FALSE(std::filesystem::exists(scratch.path() / name)) << name;
}

TEST(RowWriter, WhatIsNotClosedLeavesNothing) {
  const ScratchDirectory scratch;
  for (const char* name : {"p.npy", "p.h5"}) {
    const std::vector<float> row(6);
    open_row_writer(scratch.path() / name, kRows, "--output")->append(row.data(), 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  EXPECT_THROW(open_row_writer(scratch.path() / "p.csv", kRows, "--output"), ConfigError);
  for (const char* name : {"no/p.npy", "no/p.h5"})
    EXPECT_THROW(open_row_writer(scratch.path() / name, kRows, "--output"), IoError) << name;
}

}  // namespace
}  // namespace tutti::data
