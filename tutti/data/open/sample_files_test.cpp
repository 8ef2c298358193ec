#include "tutti/data/open/sample_files.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/base/expect_text.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"
#include "tutti/data/open/verify.h"
#include "tutti/generate/sample_sets.h"

namespace tutti::data {
namespace {

std::vector<uint8_t> volume_record(int side, std::vector<float> y, std::string name = "x") {
  std::vector<uint8_t> bytes(static_cast<size_t>(side * side * side * 4 * 2));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 100);
  const std::vector<TfFeature> features = {
      {.name = std::move(name), .kind = TfFeature::Kind::bytes, .bytes = {bytes}},
      {.name = "y", .kind = TfFeature::Kind::floats, .floats = std::move(y)}};
  return example_record(features);
}

void write_volume(const std::filesystem::path& path, const std::vector<std::vector<uint8_t>>& all,
                  bool gzip = false) {
  std::filesystem::create_directories(path.parent_path());
  write_tfrecords(path, all, gzip);
}

const std::vector<float> kY = {0.5f, -1, 0, 1};

TEST(SampleFiles, ReadsCosmoFlowsRecordsPlainAndGzipped) {
  const ScratchDirectory scratch;
  write_volume(scratch.path() / "train/b.tfrecord", {volume_record(2, {0, 0, 0, 0})});
  write_volume(scratch.path() / "train/a.tfrecord.gz", {volume_record(2, kY)}, true);
  const auto set = open_dataset({.name = "cosmoflow", .dir = scratch.path()});
  ASSERT_EQ(set->size(), 2);
  EXPECT_EQ(field_named(*set, "x").shape, (Shape{2, 2, 2, 4})) << "the side is the first file's";
  EXPECT_EQ(values_of<int16_t>(*set, 0, "x")[1], 2 + 3 * 256);
  EXPECT_EQ(values_of<float>(*set, 0, "y")[0], 0.5f);
}

TEST(SampleFiles, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  const std::filesystem::path file = scratch.path() / "train/b.tfrecord";
  const auto read_last = [&] {
    const auto set = open_dataset({.name = "cosmoflow", .dir = scratch.path()});
    values_of<int16_t>(*set, set->size() - 1, "x");
  };
  expect_io_error(read_last, {"cosmoflow (train)", "train", "data generate cosmoflow"});
  write_volume(scratch.path() / "train/a.tfrecord", {volume_record(2, kY)});
  write_volume(file, {volume_record(3, kY)});
  expect_io_error(read_last, {"b.tfrecord", "x 3x3x3x4", "x 2x2x2x4"});
  write_volume(file, {volume_record(2, {1, 2})});
  expect_io_error(read_last, {"b.tfrecord", "'y' has 2 elements", "as 4"});
  write_volume(file, {volume_record(2, {1, 2, NAN, 4})});
  expect_io_error(read_last, {"b.tfrecord", "record 0", "[2]", "nan"});
  write_volume(file, {volume_record(2, kY, "z")});
  expect_io_error(read_last, {"b.tfrecord", "no feature 'x', only: z, y"});
  write_volume(file, {volume_record(2, kY), volume_record(2, kY)});
  expect_io_error(read_last, {"b.tfrecord", "more than one record"});
  write_volume(file, {});
  expect_io_error(read_last, {"b.tfrecord"});
  write_volume(file, {volume_record(2, kY)});
  scratch.write("train/b.tfrecord", flipped(read_all(file), 40));
  expect_io_error(read_last, {"b.tfrecord"});
  std::filesystem::remove(scratch.path() / "train/a.tfrecord");
  write_volume(file, {volume_record(0, kY)});
  expect_config_error(read_last, {"b.tfrecord", "'x' has 0 elements"});
}

TEST(SampleFiles, GeneratedSetsAreReadBackWhateverTheThreads) {
  const ScratchDirectory scratch;
  const generate::VolumeSpec spec{.side = 8, .seed = 3};
  generate::write_cosmoflow(scratch.path() / "one", spec, {.train = 3, .test = 1}, 1);
  generate::write_cosmoflow(scratch.path() / "two", spec, {.train = 3, .test = 1}, 2);
  for (const char* file : {"train/univ_00000002.tfrecord", "validation/univ_00000000.tfrecord"})
    EXPECT_EQ(read_all(scratch.path() / "one" / file), read_all(scratch.path() / "two" / file));
  EXPECT_EQ(
      open_dataset({.name = "cosmoflow", .dir = scratch.path() / "one", .split = "validation"})
          ->size(),
      1);
  // A test set needs only another folder.
  const DatasetSpec test{.name = "cosmoflow", .dir = scratch.path() / "one", .split = "test"};
  EXPECT_FALSE(has_split(test));
  EXPECT_THROW(open_dataset(test), ConfigError);
  std::filesystem::create_directory(test.dir / "test");
  std::filesystem::copy_file(test.dir / "train/univ_00000002.tfrecord",
                             test.dir / "test/univ_00000000.tfrecord");
  EXPECT_EQ(open_dataset(test)->size(), 1);

  generate::write_deepcam(scratch.path() / "maps", {.grid = {.rows = 12, .columns = 18}, .seed = 3},
                          {.train = 2, .test = 1}, 2);
  const auto maps = open_dataset({.name = "deepcam", .dir = scratch.path() / "maps"});
  ASSERT_EQ(maps->size(), 2);
  const Field& data = field_named(*maps, "data");
  EXPECT_EQ(data.shape, (Shape{12, 18, 16}));
  EXPECT_EQ(field_named(*maps, "labels").class_names.size(), 3u);
  ASSERT_EQ(data.statistics.least.size(), 16u);
  for (int64_t i = 0; i < 2; ++i) {
    const auto x = values_of<float>(*maps, i, "data");
    for (size_t e = 0; e < 12 * 18 * 16; ++e) {
      ASSERT_GE(x[e], data.statistics.least[e % 16]);
      ASSERT_LE(x[e], data.statistics.greatest[e % 16]);
    }
  }
}

/// Old samples would otherwise be taken for samples of the new set.
TEST(SampleFiles, AGeneratedSetReplacesTheWholeOneBefore) {
  const ScratchDirectory scratch;
  generate::write_cosmoflow(scratch.path(), {.side = 4, .seed = 1}, {.train = 5, .test = 2}, 2);
  scratch.write("train/notes.txt", Bytes{'a'});
  scratch.write("train/.partial/univ_00000009.tfrecord", Bytes{'a'});
  generate::write_cosmoflow(scratch.path(), {.side = 4, .seed = 2}, {.train = 2, .test = 0}, 2);
  const auto train = open_dataset({.name = "cosmoflow", .dir = scratch.path()});
  EXPECT_EQ(train->size(), 2);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "validation"));
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "train/notes.txt"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "train/.partial"));
}

TEST(SampleFiles, VerifyReadsEveryFile) {
  const ScratchDirectory scratch;
  generate::write_cosmoflow(scratch.path(), {.side = 4, .seed = 3}, {.train = 2, .test = 1}, 1);
  EXPECT_TRUE(verify_dataset("cosmoflow", scratch.path()).sound());
  EXPECT_EQ(verify_dataset("cosmoflow", scratch.path()).files.size(), 3u);
  const Bytes bytes = read_all(scratch.path() / "train/univ_00000001.tfrecord");
  scratch.write("train/univ_00000001.tfrecord", sized(bytes, bytes.size() - 1));
  const VerifyReport report = verify_dataset("cosmoflow", scratch.path());
  EXPECT_EQ(report.files[0].problem, "");
  EXPECT_TRUE(has_text(report.files[1].problem, "univ_00000001"));
  EXPECT_FALSE(verify_dataset("deepcam", scratch.path()).sound());
}

TEST(SampleFiles, AMaskWithAnUnknownClassIsRefused) {
  const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch.path() / "train");
  const std::vector<float> x(2 * 3 * 16, 1.0f), low(16, 0.0f), high(16, 2.0f);
  std::vector<int64_t> labels(6, 2);
  const auto write = [&] {
    write_hdf5(scratch.path() / "train/a.h5",
               {{"climate/data", ElementType::f32, {2, 3, 16}, x.data()},
                {"climate/labels_0", ElementType::i64, {2, 3}, labels.data()}});
  };
  write_hdf5(scratch.path() / "stats.h5",
             {{"climate/minval", ElementType::f32, {16}, low.data()},
              {"climate/maxval", ElementType::f32, {16}, high.data()}});
  const auto read = [&] {
    const auto set = open_dataset({.name = "deepcam", .dir = scratch.path()});
    values_of<int64_t>(*set, 0, "labels");
  };
  write();
  EXPECT_NO_THROW(read());
  labels[4] = 3;
  write();
  expect_config_error(read, {"a.h5", "[1, 1]", "is 3", "0 to 2"});
}

TEST(SampleFiles, AVolumeThatDoesNotFitItsCountsIsNamed) {
  const ScratchDirectory scratch;
  const auto write = [&] {  // no cell gathers the particles of 64 cells
    generate::write_cosmoflow(scratch.path(), {.side = 64, .cell = 1, .seed = 1, .particles = 8},
                              {.train = 1, .test = 0}, 1);
  };
  const std::string text = message_of<ConfigError>(write);
  EXPECT_TRUE(
      text.starts_with("volume 0 of seed 1, with --particles 8 and --cell 1: a cell holds "))
      << text;
  EXPECT_TRUE(has_text(text, "No set is made"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "train"));
  // A failure leaves the previous set in place.
  generate::write_cosmoflow(scratch.path(), {.side = 4, .seed = 1}, {.train = 2, .test = 1}, 1);
  EXPECT_THROW(write(), ConfigError);
  EXPECT_EQ(open_dataset({.name = "cosmoflow", .dir = scratch.path()})->size(), 2);
}

}  // namespace
}  // namespace tutti::data
