#include "tutti/data/format/sets/idx.h"

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/field_statistics.h"
#include "tutti/data/open/open.h"
#include "tutti/data/open/verify.h"

namespace tutti::data {
namespace {

const Classes kTen = {.names = std::vector<std::string>(10, "class")};

TEST(Idx, ReadsPlainAndGzippedFiles) {
  const ScratchDirectory scratch;
  scratch.write("train-images-idx3-ubyte", idx(8, {5, 2, 3}, 30));
  scratch.write("train-labels-idx1-ubyte.gz", gzipped(idx(8, {5}, 5)));
  const auto set = open_idx(scratch.path(), true, kTen);
  ASSERT_EQ(set->size(), 5);
  EXPECT_EQ(field_named(*set, "image").shape, (Shape{1, 2, 3}));
  const auto [pixels, label] = read_image(*set, 3);
  EXPECT_EQ(label, 3);
  EXPECT_EQ(pixels, (Bytes{4, 5, 6, 0, 1, 2}));  // elements 18 to 23, modulo 7
}

// Kaggle's copy of MNIST uses this spelling.
TEST(Idx, ADotMayStandForTheDash) {
  const ScratchDirectory scratch;
  for (const std::string split : {"train", "t10k"}) {
    scratch.write(split + "-images.idx3-ubyte", idx(8, {5, 2, 3}, 30));
    scratch.write(split + "-labels.idx1-ubyte.gz", gzipped(idx(8, {5}, 5)));
  }
  std::filesystem::create_directory(scratch.path() / "train-images-idx3-ubyte");
  EXPECT_EQ(open_dataset({.name = "mnist", .dir = scratch.path()})->size(), 5);
  EXPECT_EQ(dataset_files({.name = "mnist", .dir = scratch.path()}).size(), 4u);
  EXPECT_TRUE(verify_dataset("mnist", scratch.path()).sound());
}

TEST(Idx, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_io_error([&] { read_idx(scratch.write("x", bytes), 3); }, parts);
  };
  refuse(idx(8, {5, 2, 3}, 29), {"/x", "5 x 2 x 3 = 30", "found 29"});
  refuse(idx(8, {5, 2, 3}, 31), {"/x: 1 bytes follow", "head -c 46 OLD > NEW"});
  refuse(idx(8, {5}, 5), {"/x", "header of 16 bytes"});
  refuse(idx(8, {30}, 30),
         {"/x", "expected IDX magic 0x00000803", "found 0x00000801", "exchanged"});
  refuse(idx(13, {5, 2, 3}, 30), {"found 0x00000d03", "its elements are no bytes"});  // floats
  refuse(idx(8, {5, 0, 3}, 0), {"extent 2 of 3 is 0"});
  refuse(idx(8, {~0u, ~0u, ~0u}, 30), {"corrupted"});  // the product exceeds 64 bits
}

TEST(Idx, FilesMustBelongTogether) {
  const ScratchDirectory scratch;
  expect_io_error([&] { open_idx(scratch.path(), false, kTen); },
                  {"t10k-images-idx3-ubyte", "No such file"});
  scratch.write("t10k-images-idx3-ubyte", idx(8, {5, 2, 3}, 30));
  scratch.write("t10k-labels-idx1-ubyte", idx(8, {4}, 4));
  expect_io_error([&] { open_idx(scratch.path(), false, kTen); }, {"5 images", "4 labels"});
  Bytes labels = idx(8, {5}, 5);
  labels.back() = 11;
  scratch.write("t10k-labels-idx1-ubyte", labels);
  expect_config_error([&] { open_idx(scratch.path(), false, kTen); },
                      {"t10k-labels-idx1-ubyte", "record 4", "label 11", "data.classes = 12"});
}

// EMNIST's letters: labels 1 to 26, in the files of MNIST's format.
TEST(Idx, AnyNumberOfClasses) {
  const ScratchDirectory scratch;
  Bytes labels = idx(8, {26}, 26);
  for (uint8_t i = 0; i < 26; ++i) labels[8u + i] = static_cast<uint8_t>(i + 1);
  scratch.write("train-images-idx3-ubyte", idx(8, {26, 2, 3}, 26 * 6));
  scratch.write("train-labels-idx1-ubyte", labels);
  const auto open = [&](int64_t classes, const std::string& key = "data.classes") {
    return open_dataset(
        {.name = "mnist", .dir = scratch.path(), .classes = {.count = classes, .key = key}});
  };
  const auto set = open(27);
  const std::vector<std::string>& names = field_named(*set, "label").class_names;
  ASSERT_EQ(names.size(), 27u);
  EXPECT_EQ(names[26], "26");
  expect_config_error([&] { open(26); },
                      {"train-labels-idx1-ubyte: record 25 has label 26",
                       "data.classes = 26 allows 0 to 25", "needs data.classes = 27"});
  expect_config_error([&] { open(0); }, {"record 9 has label 10", "set data.classes = 27"});
  expect_config_error([&] { open(2, "model.classes"); },
                      {"record 1 has label 2", "model.classes = 2"});
  const std::string message = message_of<ConfigError>([&] { open(0); });
  EXPECT_FALSE(has_text(message, "download"));  // another copy of MNIST would not help
  EXPECT_TRUE(verify_dataset("mnist", scratch.path(), 27).files[1].problem.empty());
  EXPECT_FALSE(verify_dataset("mnist", scratch.path()).files[1].problem.empty());
}

TEST(Idx, CompressedFilesAreInflatedAsFarAsTheirHeaderAnnounces) {
  const ScratchDirectory scratch;
  const auto read = [&](const Bytes& content) {
    return read_idx(scratch.write("x.gz", gzipped(content)), 3);
  };
  const auto refuse = [&](const Bytes& content, const std::vector<std::string>& parts) {
    expect_io_error([&] { read(content); }, parts);
  };
  EXPECT_EQ(read(idx(8, {5, 2, 3}, 30)).elements(), 30);
  refuse(idx(8, {5, 2, 3}, 29), {"/x.gz", "5 x 2 x 3 = 30", "found 29"});
  refuse(idx(8, {5, 2, 3}, 3'000'000),
         {"/x.gz: at least 65536 bytes follow", "gzip -dc OLD | head -c 46 > NEW"});
  // The header announces 2 TB, which are never allocated.
  refuse(idx(8, {2'000'000, 1000, 1000}, 30),
         {"/x.gz", "2000000 x 1000 x 1000", "holds less than"});
  refuse(Bytes(10), {"header of 16 bytes", "found 10"});
}

TEST(Idx, ALargeFileIsJudgedByItsHeader) {
  const ScratchDirectory scratch;
  const auto path = scratch.write("x", Bytes(16));
  std::filesystem::resize_file(path, int64_t{40} << 30);  // a sparse file takes no disk space
  expect_io_error([&] { read_idx(path, 3); }, {"zeros alone at its beginning"});
  scratch.write("side", idx(8, {1, 0x80000000u, 1}, 0));
  std::filesystem::resize_file(scratch.path() / "side", (int64_t{1} << 31) + 16);
  expect_io_error([&] { read_idx(scratch.path() / "side", 3); }, {"extent 2 of 3 is 2147483648"});
}

TEST(Idx, SplitsMustHaveOneSize) {
  const ScratchDirectory scratch;
  for (const std::string split : {"train", "t10k"}) {
    const uint32_t width = split == "train" ? 3 : 4;
    scratch.write(split + "-images-idx3-ubyte", idx(8, {5, 2, width}, 10 * width));
    scratch.write(split + "-labels-idx1-ubyte", idx(8, {5}, 5));
  }
  const auto train = open_dataset({.name = "mnist", .dir = scratch.path()});
  const auto test = open_dataset({.name = "mnist", .dir = scratch.path(), .split = "test"});
  check_same_fields(*train, *train, "test");
  expect_io_error([&] { check_same_fields(*train, *test, "test"); }, {"1x2x3", "1x2x4"});
  const VerifyReport report = verify_dataset("mnist", scratch.path());
  EXPECT_FALSE(report.sound());
  EXPECT_TRUE(
      has_text(report.files[2].problem, "images of 2x4 pixels, but the training images have 2x3"));
}

#ifdef TUTTI_TEST_DATA
class RealIdx : public testing::TestWithParam<std::string> {};

TEST_P(RealIdx, HasThePublishedSizeClassesAndStatistics) {
  const std::filesystem::path dir = std::filesystem::path(TUTTI_TEST_DATA) / GetParam();
  const auto train = open_dataset({.name = GetParam(), .dir = dir});
  const auto test = open_dataset({.name = GetParam(), .dir = dir, .split = "test"});
  EXPECT_EQ(train->size(), 60'000);
  EXPECT_EQ(test->size(), 10'000);
  EXPECT_EQ(field_named(*train, "image").shape, (Shape{1, 28, 28}));
  EXPECT_EQ(field_named(*train, "label").class_names.size(), 10u);
  EXPECT_EQ(read_image(*test, 0).label, GetParam() == "mnist" ? 7 : 9);  // a seven; an ankle boot
  const FieldStatistics found = field_statistics(*train, "image"),
                        expected = known_dataset(GetParam()).statistics;
  EXPECT_NEAR(found.mean[0], expected.mean[0], 6e-5);
  EXPECT_NEAR(found.deviation[0], expected.deviation[0], 6e-5);
}

INSTANTIATE_TEST_SUITE_P(Sets, RealIdx, testing::Values("mnist", "fashion-mnist"));
#endif

}  // namespace
}  // namespace tutti::data
