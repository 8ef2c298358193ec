#include "tutti/data/format/row_writer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/data/format/array_file.h"

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
