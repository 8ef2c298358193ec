#include "tutti/data/arrays/array_set.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <numeric>

#include "tutti/data/arrays/npy_folders.h"
#include "tutti/data/arrays/set_checks.h"
#include "tutti/data/format/array/npy_arrays.h"
#include "tutti/data/subset.h"

namespace tutti::data {
namespace {

std::filesystem::path images_file(const ScratchDirectory& scratch, const std::string& name,
                                  int64_t count, int first) {
  const auto images = rising<float>(count * 6, first * 6);
  std::vector<int64_t> labels(static_cast<size_t>(count));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = (first + static_cast<int64_t>(i)) % 3;
  write_hdf5(scratch.path() / name,
             {array_ref("images", {count, 2, 3}, images), array_ref("labels", {count}, labels)});
  return scratch.path() / name;
}

TEST(ArraySet, TheFirstAxisCountsTheSamplesOfFilesOfAnySize) {
  const ScratchDirectory scratch;
  const Paths files = {images_file(scratch, "a.h5", 4, 0), images_file(scratch, "b.h5", 1, 4),
                       images_file(scratch, "c.h5", 3, 5)};
  const auto set = set_of(files, {"image: from images as 1 2 3", "label: from labels classes 3"});
  ASSERT_EQ(set->size(), 8);
  EXPECT_EQ(field_named(*set, "image").shape, (Shape{1, 2, 3}));
  EXPECT_EQ(field_named(*set, "label").shape.rank(), 0);
  for (const int64_t i : {7, 0, 4, 3, 5}) {
    EXPECT_EQ(values_of<float>(*set, i, "image"), rising<float>(6, static_cast<int>(i) * 6));
    EXPECT_EQ(values_of<int64_t>(*set, i, "label"), std::vector<int64_t>{i % 3});
  }
}

TEST(ArraySet, EachFileIsOneSampleWhereNothingCounts) {
  const ScratchDirectory scratch;
  Paths files;
  for (int i = 0; i < 3; ++i) {
    const auto x = rising<int16_t>(24, i);
    const std::vector<float> y = {static_cast<float>(i), 1};
    files.push_back(scratch.path() / fmt::format("{}.h5", i));
    write_hdf5(files.back(), {array_ref("x", {2, 3, 4}, x), array_ref("y", {2}, y)});
  }
  // x and y have the same first extent, and y has one axis: by default, it has one number a sample.
  EXPECT_EQ(set_of(files, {"x: from x", "y: from y"})->size(), 6);
  const auto set = set_of(files, {"x: from x whole", "y: from y whole"});
  ASSERT_EQ(set->size(), 3);
  EXPECT_EQ(values_of<int16_t>(*set, 2, "x"), rising<int16_t>(24, 2));
  EXPECT_EQ(values_of<float>(*set, 2, "y"), (std::vector<float>{2, 1}));
  EXPECT_EQ(set_of(files, {"x: from x"})->size(), 3) << "all files look the same";
  EXPECT_EQ(set_of({files[0]}, {"x: from x"})->size(), 2) << "one file";
}

TEST(ArraySet, FilesOfAsManySamplesEachAreCountedByTheirFirstAxis) {
  const ScratchDirectory scratch;
  Paths files, maps;
  for (int i = 0; i < 3; ++i) {
    const auto x = rising<float>(6 * 4 * 4, i), y = rising<float>(6 * 3, i);
    files.push_back(scratch.path() / fmt::format("shard{}.h5", i));
    write_hdf5(files.back(), {array_ref("field", {6, 4, 4}, x), array_ref("params", {6, 3}, y)});
    maps.push_back(scratch.path() / fmt::format("map{}.h5", i));
    write_hdf5(maps.back(), {array_ref("map", {6, 4, 4}, x), array_ref("mask", {6, 4, 4}, x)});
  }
  EXPECT_EQ(set_of(files, {"x: from field", "y: from params"})->size(), 18);
  EXPECT_EQ(set_of(files, {"x: from field as 96", "y: from params"})->size(), 3);
  EXPECT_EQ(set_of(files, {"x: from field as 1 4 4"})->size(), 18);
  EXPECT_EQ(set_of(maps, {"x: from map", "y: from mask"})->size(), 3) << "a map and its mask";
  // A single file would be counted, so the training files decide.
  const auto validation = open_array_set({.files = {maps[2]},
                                          .fields = parse_field_lines({"x: from map"}),
                                          .key = "data.validation_files",
                                          .settled_by = {maps[0], maps[1]}});
  EXPECT_EQ(validation->size(), 1);
  // For inputs without their targets, all lines of the training files decide.
  const auto inputs = [&](const std::vector<FieldLine>& all) {
    return open_array_set({.files = {files[0], files[1]},
                           .fields = parse_field_lines({"x: from field"}),
                           .key = "--input",
                           .settled_by = {files[2]},
                           .settled_with = all});
  };
  const auto counted = inputs(parse_field_lines({"x: from field", "y: from params"}));
  ASSERT_EQ(counted->size(), 12);
  EXPECT_EQ(counted->place(7).file, 1u);
  EXPECT_EQ(counted->place(7).sample, 1);
  EXPECT_EQ(inputs(parse_field_lines({"x: from field whole", "y: from params"}))->size(), 2);
}

TEST(ArraySet, NpyFilesOfAFolderAreFieldsWhereTheLinesNameThem) {
  const ScratchDirectory scratch;
  const auto x = rising<float>(4 * 2 * 3);
  const auto y = rising<uint8_t>(4);
  write_npy_array(scratch.path() / "x.npy", array_ref("", {4, 2, 3}, x));
  write_npy_array(scratch.path() / "y.npy", array_ref("", {4}, y));
  const Paths files = {scratch.path() / "x.npy", scratch.path() / "y.npy"};
  const auto lines = parse_field_lines({"image: from x", "label: from y classes 4"});
  EXPECT_TRUE(look_like_fields(files));
  const auto joined = npy_folders(files, lines);
  ASSERT_EQ(joined, Paths{scratch.path()});
  const auto set = open_array_set({.files = joined, .fields = lines, .key = "data.train_files"});
  ASSERT_EQ(set->size(), 4);
  EXPECT_EQ(values_of<float>(*set, 1, "image"), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(values_of<uint8_t>(*set, 3, "label"), std::vector<uint8_t>{3});
  EXPECT_EQ(npy_folders(files, parse_field_lines({"image: from array"})), files);
}

TEST(ArraySet, AnyAxisCountsAndOthersAreTheSameForAllSamples) {
  const ScratchDirectory scratch;
  const auto x = rising<float>(2 * 5 * 3);
  const auto land = rising<uint8_t>(4);
  const auto file = scratch.path() / "a.h5";
  write_hdf5(file, {array_ref("x", {2, 5, 3}, x), array_ref("land", {4}, land)});
  const auto set = set_of({file}, {"x: from x axis 1", "land: from land"});
  ASSERT_EQ(set->size(), 5);
  EXPECT_EQ(values_of<float>(*set, 3, "x"), (std::vector<float>{9, 10, 11, 24, 25, 26}));
  EXPECT_EQ(values_of<uint8_t>(*set, 3, "land"), land);
}

TEST(ArraySet, BoxesAreCutIntoBlocksAndOnlyTheirChunksAreRead) {
  const ScratchDirectory scratch;
  constexpr int64_t kSide = 8;
  const auto full = rising<int16_t>(kSide * kSide * kSide * 2);
  Paths files;
  for (int i = 0; i < 2; ++i) {
    files.push_back(scratch.path() / fmt::format("{}.h5", i));
    write_hdf5(files.back(), {array_ref("full", {kSide, kSide, kSide, 2}, full)},
               {.chunk = {4, 4, 4, 2}, .deflate = 1});
  }
  const auto set = set_of(files, {"x: from full cut 4 4 4"});
  ASSERT_EQ(set->size(), 16);
  EXPECT_EQ(field_named(*set, "x").shape, (Shape{4, 4, 4, 2}));
  for (const int64_t block : {0, 5, 7, 15}) {
    const int64_t b = block % 8, z = b / 4 * 4, y = b / 2 % 2 * 4, first = b % 2 * 4;
    std::vector<int16_t> expected;
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j)
        for (int64_t k = 0; k < 8; ++k)
          expected.push_back(
              full[static_cast<size_t>((((z + i) * kSide + y + j) * kSide + first) * 2 + k)]);
    EXPECT_EQ(values_of<int16_t>(*set, block, "x"), expected) << block;
  }
  const int64_t before = FileBytes::bytes_read();
  values_of<int16_t>(*set, 3, "x");
  EXPECT_LE(FileBytes::bytes_read() - before, 4 * 4 * 4 * 2 * 2 + 64) << "one chunk of eight";
  expect_config_error([&] { set_of(files, {"x: from full cut 3 4 4"}); },
                      {"0.h5", "axis 0 has 8 elements", "divide by 3"});
}

TEST(ArraySet, OtherFieldsAreRepeatedForEachBlock) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "box.h5";
  const auto full = rising<int16_t>(4 * 4 * 4);
  const std::vector<float> parameters = {1, 2, 3, 4};
  write_hdf5(file, {array_ref("full", {4, 4, 4}, full), array_ref("unitPar", {4}, parameters)});
  const auto set = set_of({file}, {"x: from full cut 2 2 2 as 1 2 2 2", "y: from unitPar"});
  ASSERT_EQ(set->size(), 8);
  EXPECT_EQ(values_of<int16_t>(*set, 7, "x"),
            (std::vector<int16_t>{42, 43, 46, 47, 58, 59, 62, 63}));
  EXPECT_EQ(values_of<float>(*set, 7, "y"), parameters);
}

TEST(ArraySet, AChunkOfManySamplesIsReadOnce) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  const auto x = rising<float>(64 * 1000);
  write_hdf5(file, {array_ref("x", {64, 1000}, x)},
             {.chunk = {32, 1000}, .deflate = 1, .shuffle = true});
  const auto set = set_of({file}, {"x: from x"});
  const int64_t before = FileBytes::bytes_read();
  for (int64_t i = 0; i < 64; ++i)
    EXPECT_EQ(values_of<float>(*set, i, "x"), rising<float>(1000, static_cast<int>(i) * 1000));
  EXPECT_LE(FileBytes::bytes_read() - before,
            static_cast<int64_t>(std::filesystem::file_size(file)));
}

TEST(ArraySet, SamplesInMemoryAreShownNotCopied) {
  const ScratchDirectory scratch;
  ZipBytes zip;
  Bytes content(6 * 8);
  std::iota(content.begin(), content.end(), uint8_t{0});
  zip.add("x.npy", npy_bytes("|u1", false, "(6, 8)", content), true);
  const auto set = set_of({scratch.write("a.npz", zip.bytes())}, {"x: from x"});
  Sample sample(set->fields());
  set->read(2, sample);
  const auto* two = static_cast<const uint8_t*>(sample.at(0));
  set->read(3, sample);
  EXPECT_EQ(static_cast<const uint8_t*>(sample.at(0)), two + 8) << "neighbours in one memory";
  EXPECT_EQ(*two, 16);
}

/// Reads rows [first, last) of a sample's axis `axis` into memory that held -1.
std::vector<float> rows_of(const Dataset& set, int64_t index, const FieldRows& rows) {
  Sample sample(set.fields());
  auto* x = static_cast<float*>(sample.own(0));
  std::fill_n(x, set.fields()[0].elements(), -1.0f);
  set.read_rows(index, sample, std::vector<FieldRows>{rows});
  return {x, x + set.fields()[0].elements()};
}

TEST(ArraySet, RanksThatShareASampleReadTheirRowsAlone) {
  const ScratchDirectory scratch;
  constexpr int64_t kChannels = 2, kRows = 64, kColumns = 512;
  const auto x = rising<float>(2 * kChannels * kRows * kColumns);
  const auto plain = scratch.path() / "a.npy", chunked = scratch.path() / "a.h5";
  write_npy_array(plain, array_ref("", {2, kChannels, kRows, kColumns}, x));
  write_hdf5(chunked, {array_ref("array", {2, kChannels, kRows, kColumns}, x)},
             {.chunk = {1, 1, 8, kColumns}, .deflate = 1, .shuffle = true});
  std::vector<float> expected(kChannels * kRows * kColumns, -1);
  for (int64_t c = 0; c < kChannels; ++c)
    for (int64_t i = 16 * kColumns; i < 32 * kColumns; ++i) {
      const int64_t at = c * kRows * kColumns + i;
      expected[static_cast<size_t>(at)] = x[static_cast<size_t>(kChannels * kRows * kColumns + at)];
    }
  for (const auto& file : {plain, chunked}) {
    const auto set = set_of({file}, {"x: from array"});
    const int64_t before = FileBytes::bytes_read();
    EXPECT_EQ(rows_of(*set, 1, {.axis = 1, .first = 16, .last = 32}), expected) << file;
    EXPECT_LE(FileBytes::bytes_read() - before, kChannels * 16 * kColumns * 4) << file;
    EXPECT_EQ(rows_of(*set, 1, {}), values_of<float>(*set, 1, "x"));
    // The rows lie in too many pieces, so everything is read.
    EXPECT_EQ(rows_of(*set, 0, {.axis = 2, .first = 1, .last = 2}), values_of<float>(*set, 0, "x"));
    EXPECT_EQ(rows_of(*set, 0, {.axis = 0, .first = 1, .last = 1})[0], -1) << "nothing wanted";
  }
}

TEST(ArraySet, FilesThatDoNotBelongTogether) {
  const ScratchDirectory scratch;
  const Paths good = {images_file(scratch, "a.h5", 4, 0), images_file(scratch, "b.h5", 2, 0)};
  const std::vector<std::string> lines = {"image: from images", "label: from labels classes 3"};
  const auto other = scratch.path() / "c.h5";
  const auto wide = rising<double>(2 * 6);
  const auto narrow = rising<float>(2 * 6);
  const std::vector<int64_t> labels = {0, 3};
  const auto with_c = [&](const std::vector<ArrayRef>& arrays) {
    write_hdf5(other, arrays);
    return set_of({good[0], good[1], other}, lines);
  };
  const auto refuse = [&](const std::vector<ArrayRef>& arrays,
                          const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { with_c(arrays); }, parts);
  };
  refuse({array_ref("images", {2, 2, 3}, wide), array_ref("labels", {2}, labels)},
         {"c.h5", "f64 image 2x3", "a.h5", "f32 image 2x3"});
  refuse({array_ref("images", {2, 2, 3}, narrow)}, {"c.h5", "'labels'", "images f32 [2, 2, 3]"});
  refuse({array_ref("images", {2, 2, 3}, narrow), array_ref("labels", {1}, labels)},
         {"c.h5", "'label' has 1 samples", "'image' has 2"});
  const auto set =
      with_c({array_ref("images", {2, 2, 3}, narrow), array_ref("labels", {2}, labels)});
  expect_config_error([&] { values_of<int64_t>(*set, 7, "label"); },
                      {"c.h5, sample 1: the value of 'label' is 3", "0 to 2"});
  expect_config_error([&] { set_of(good, {"x: from none"}); }, {"a.h5", "'none'"});
  expect_config_error([&] { set_of(good, {"x: from images as 7"}); }, {"a.h5", "as 7"});
}

TEST(ArraySet, DamagedFilesAndPipesAreErrors) {
  const ScratchDirectory scratch;
  const Bytes sound = read_all(images_file(scratch, "a.h5", 4, 0));
  const auto cut = scratch.write("cut.h5", sized(sound, sound.size() / 2));
  const std::vector<std::string> lines = {"image: from images"};
  expect_io_error([&] { set_of({cut}, lines); }, {"cut.h5"});
  const auto pipe = scratch.path() / "pipe.h5";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_io_error([&] { set_of({pipe}, lines); }, {"pipe.h5", "found a pipe"});

  const auto shrinks = scratch.path() / "s.npy";
  const auto x = rising<float>(4 * 100000);
  write_npy_array(shrinks, array_ref("", {4, 100000}, x));
  const auto set = set_of({shrinks}, {"x: from array"});
  std::filesystem::resize_file(shrinks, 1000);
  expect_io_error([&] { values_of<float>(*set, 3, "x"); }, {"s.npy", "shortened"});
}

// Two arrays of 64 and 60 rows are one sample; the message about too few samples says why.
TEST(ArraySet, FirstAxesThatDifferAreNamed) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "a.h5";
  const auto x = rising<float>(64 * 3), y = rising<float>(60);
  write_hdf5(file, {array_ref("x", {64, 3}, x), array_ref("y", {60}, y)});
  expect_config_error(
      [&] {
        cut_validation(set_of({file}, {"x: from x", "y: from y"}), 0, 1);
      },
      {"takes 0 of the 1 training sample (each file is one sample, since first axes "
       "differ: x has 64, y has 60"});
}

}  // namespace
}  // namespace tutti::data
