#include <gtest/gtest.h>

#include "tutti/data/arrays/set_checks.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"

namespace tutti::data {
namespace {

/// The first record determines the shape. On a slow file system, reading it again would take
/// half of the time.
TEST(ArraySet, AFileOfOneRecordIsReadOnce) {
  const ScratchDirectory scratch;
  Paths files;
  for (int i = 0; i < 3; ++i) {
    files.push_back(scratch.path() / fmt::format("{}.rec", i));
    const std::vector<TfFeature> features = {
        {.name = "x",
         .kind = TfFeature::Kind::floats,
         .floats = std::vector<float>(100'000, static_cast<float>(i))}};
    write_tfrecords(files.back(), std::vector<Bytes>{example_record(features)}, false);
  }
  const auto set = set_of(files, {"x: from x"});
  const int64_t before = FileBytes::bytes_read();
  for (int64_t i : {1, 2}) EXPECT_EQ(values_of<float>(*set, i, "x")[0], static_cast<float>(i));
  EXPECT_LT(FileBytes::bytes_read() - before, 2 * 440'000);
  EXPECT_EQ(values_of<float>(*set, 1, "x")[99'999], 1.0f);  // again
}

TEST(ArraySet, RecordsOfAnyFeaturesPlainOrGzipped) {
  const ScratchDirectory scratch;
  const auto record = [](int i) {
    const float x = static_cast<float>(i);
    const Bytes raw = {static_cast<uint8_t>(i), 1, 2, 3};
    return example_record(std::vector<TfFeature>{
        {.name = "image", .kind = TfFeature::Kind::floats, .floats = {x, x, x, x}},
        {.name = "class", .kind = TfFeature::Kind::integers, .integers = {i % 10}},
        {.name = "raw", .kind = TfFeature::Kind::bytes, .bytes = {raw}}});
  };
  const std::vector<std::string> lines = {"image: from image as 1 2 2",
                                          "label: from class classes 10", "raw: from raw as i16 2",
                                          "small: from class as u8"};
  for (const bool gzip : {false, true}) {
    Paths files;
    int made = 0;
    for (const int count : {3, 1, 2}) {
      std::vector<std::vector<uint8_t>> records;
      for (int i = 0; i < count; ++i) records.push_back(record(made++));
      files.push_back(scratch.path() / fmt::format("{}{}.rec", gzip, count));
      write_tfrecords(files.back(), records, gzip);
    }
    const auto set = set_of(files, lines);
    ASSERT_EQ(set->size(), 6);
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(values_of<float>(*set, i, "image"), std::vector<float>(4, static_cast<float>(i)));
      EXPECT_EQ(values_of<int64_t>(*set, i, "label"), std::vector<int64_t>{i});
      EXPECT_EQ(values_of<int16_t>(*set, i, "raw"),
                (std::vector<int16_t>{static_cast<int16_t>(256 + i), 770}));
      EXPECT_EQ(values_of<uint8_t>(*set, i, "small")[0], i);
    }
    expect_config_error([&] { set_of(files, {"x: from none"}); },
                        {"record 0", "image, class, raw"});
    expect_config_error([&] { set_of(files, {"x: from raw"}); }, {"4 bytes", "'as'"});
    expect_config_error([&] { set_of(files, {"x: from image as 3"}); }, {"4 elements", "as 3"});
    expect_config_error([&] { set_of(files, {"x: from image axis 0"}); },
                        {"TFRecords", "leave it"});
    expect_config_error([&] { set_of(files, {"x: from image, raw"}); }, {"stacks", "HDF5 or .npz"});
    expect_config_error([&] { set_of(files, {"x: from image missing 1"}); },
                        {"'missing'", "numpy.nan_to_num"});
    const Bytes bytes = read_all(files[0]);
    const auto bad = scratch.write("bad.rec", flipped(bytes, bytes.size() - 20));
    expect_error<BadFile>([&] { values_of<float>(*set_of({bad}, lines), 2, "image"); },
                          {"bad.rec"});
  }
}

}  // namespace
}  // namespace tutti::data
