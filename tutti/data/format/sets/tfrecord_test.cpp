#include "tutti/data/format/sets/tfrecord.h"

#include <gtest/gtest.h>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/sets/tf_example.h"

namespace tutti::data {
namespace {

std::vector<Bytes> records_of(const std::filesystem::path& path) {
  TfRecordReader reader(path);
  std::vector<Bytes> records;
  for (Bytes record; reader.next(record);) records.push_back(record);
  return records;
}

TEST(TfRecord, PlainAndGzippedFilesRoundTrip) {
  const ScratchDirectory scratch;
  // One record of 35615 = 0x8b1f bytes, so that the plain file begins as a gzip file does.
  const std::vector<Bytes> records = {Bytes(35615, 1), {}, {1, 2, 3}, Bytes(3'000'000, 7)};
  for (const bool gzip : {false, true}) {
    const auto path = scratch.path() / (gzip ? "z" : "x");
    write_tfrecords(path, records, gzip);
    EXPECT_EQ(records_of(path), records);
  }
  const FileBytes file = FileBytes::open(scratch.path() / "x");
  const auto places = tfrecord_places(file);
  ASSERT_EQ(places.size(), records.size());
  Bytes record;
  read_tfrecord(file, places[2], 2, record);
  EXPECT_EQ(record, records[2]);
  expect_error<BadFile>([&] { tfrecord_places(FileBytes::open(scratch.path() / "z")); },
                        {"/z", "gunzip"});
  scratch.write("empty", Bytes());
  EXPECT_TRUE(records_of(scratch.path() / "empty").empty());
}

TEST(TfRecord, ErrorsNameFileRecordAndChecksum) {
  const ScratchDirectory scratch;
  write_tfrecords(scratch.path() / "x", std::vector<Bytes>{{1, 2, 3}, {4, 5, 6}});
  const Bytes sound = read_all(scratch.path() / "x");
  const auto refuse = [&](const Bytes& bytes, const std::vector<std::string>& parts) {
    expect_error<BadFile>([&] { records_of(scratch.write("x", bytes)); }, parts);
  };
  refuse(flipped(sound, 19 + 12), {"/x: record 1", "checksum", "of its 3 bytes"});
  refuse(flipped(sound, 19), {"/x: record 1", "of its length 2"});
  for (ptrdiff_t end = 20; end < 38; ++end) {
    const Bytes cut(sound.begin(), sound.begin() + end);
    refuse(cut, {"/x: record 1"});
    refuse(gzipped(cut), {"/x: record 1"});
  }
}

TEST(TfRecord, ZerosBehindTheLastRecordAndZlibAreNamed) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "x";
  write_tfrecords(path, std::vector<Bytes>{{1, 2, 3}, {4, 5, 6}});
  const Bytes sound = read_all(path);
  Bytes longer = sound;
  for (const size_t zeros : {7, 64}) {
    longer.resize(sound.size() + zeros);
    const std::vector<std::string> messages = {"/x: zeros alone follow record 1, from byte 38"};
    expect_error<BadFile>([&] { records_of(scratch.write("x", longer)); }, messages);
    expect_error<BadFile>([&] { open_tfrecords(path); }, {messages[0], "'head -c 38 OLD > NEW'"});
    expect_error<BadFile>([&] { records_of(scratch.write("x", gzipped(longer))); },
                          {messages[0], "'gzip -dc OLD | head -c 38 > NEW'"});
  }
  longer.back() = 1;
  expect_error<BadFile>([&] { records_of(scratch.write("x", longer)); },
                        {"/x: record 2", "of its length 0"});
  Bytes packed(compressBound(sound.size()));
  uLongf bytes = packed.size();
  for (const int level : {1, 6, 9}) {
    bytes = packed.size();
    ASSERT_EQ(compress2(packed.data(), &bytes, sound.data(), sound.size(), level), Z_OK);
    scratch.write("x", Bytes(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(bytes)));
    for (const bool whole : {true, false})
      expect_error<BadFile>(
          [&] {
            if (whole) open_tfrecords(path);
            records_of(path);
          },
          {"/x: expected TFRecords", "a zlib stream", "zlib.decompress"});
  }
}

TEST(TfExample, OfOneNameTheLastFeatureHolds) {
  std::vector<TfFeature> features(3);
  features[0] = {.name = "x", .kind = TfFeature::Kind::floats, .floats = {1, 2}};
  features[1] = {.name = "y", .kind = TfFeature::Kind::floats, .floats = {3}};
  features[2] = {.name = "x", .kind = TfFeature::Kind::integers, .integers = {4}};
  const Bytes record = example_record(features);
  const auto found = parse_example(record, "f");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(find_feature(found, "x", TfFeature::Kind::integers, 1, "f").integers[0], 4);
  // The same must hold for many features, with and without a second one of a name.
  for (const int names : {31, 32, 33, 40})
    for (const bool twice : {false, true}) {
      features.assign(static_cast<size_t>(names), {.kind = TfFeature::Kind::integers});
      for (size_t i = 0; i < features.size(); ++i) {
        features[i].name = fmt::format("x{}", i);
        features[i].integers = {static_cast<int64_t>(i)};
      }
      if (twice) features.push_back(features[3]), features.back().integers = {99};
      const Bytes many = example_record(features);
      const auto kept = parse_example(many, "f");
      ASSERT_EQ(kept.size(), static_cast<size_t>(names));
      EXPECT_EQ(find_feature(kept, "x3", TfFeature::Kind::integers, 1, "f").integers[0],
                twice ? 99 : 3);
    }
}

TEST(TfExample, FeaturesRoundTrip) {
  const Bytes x = {1, 0, 2, 0}, second = {9};
  std::vector<TfFeature> features(4);
  features[0] = {.name = "x", .kind = TfFeature::Kind::bytes, .bytes = {x, second}};
  features[1] = {.name = "y", .kind = TfFeature::Kind::floats, .floats = {1.5f, -2, 3, 4}};
  features[2] = {
      .name = "id", .kind = TfFeature::Kind::integers, .integers = {-1, 0, 300, INT64_MIN}};
  features[3] = {.name = "none"};
  const Bytes record = example_record(features);
  const auto found = parse_example(record, "f: record 0");
  ASSERT_EQ(found.size(), 4u);
  const TfFeature& bytes = find_feature(found, "x", TfFeature::Kind::bytes, 2, "f");
  EXPECT_TRUE(std::ranges::equal(bytes.bytes[0], x));
  EXPECT_EQ(find_feature(found, "y", TfFeature::Kind::floats, 4, "f").floats, features[1].floats);
  EXPECT_EQ(find_feature(found, "id", TfFeature::Kind::integers, -1, "f").integers,
            features[2].integers);
  EXPECT_EQ(found[3].kind, TfFeature::Kind::none);
  expect_error<BadFile>([&] { find_feature(found, "z", TfFeature::Kind::bytes, 1, "f: record 0"); },
                        {"f: record 0", "'z'", "'x', 'y', 'id', 'none'"});
  expect_error<BadFile>([&] { find_feature(found, "y", TfFeature::Kind::floats, 3, "f"); },
                        {"'y' with 3 floats", "found 4 floats"});
}

TEST(TfExample, UnpackedListsAsOlderWritersHaveThem) {
  // { 1: { 1: { 1: "f", 2: { 2: { 1: 1.0, 1: 2.0 } } }, 1: { 1: "i", 2: { 3: { 1: 5, 1: 300 } } } }
  // }
  const Bytes record = {10, 35, 10, 17, 10, 1, 'f', 18, 12, 18, 10, 13, 0, 0, 128, 63, 13, 0, 0,
                        0,  64, 10, 14, 10, 1, 'i', 18, 9,  26, 7,  8,  5, 8, 172, 2,  8,  0};
  const auto found = parse_example({record.data(), record.size()}, "f");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].floats, (std::vector<float>{1, 2}));
  EXPECT_EQ(found[1].integers, (std::vector<int64_t>{5, 300, 0}));
  for (size_t end = 1; end < record.size(); ++end) {
    const std::span<const uint8_t> cut(record.data(), end);
    expect_error<BadFile>([&] { parse_example(cut, "f: record 3"); },
                          {"f: record 3", "expected a tf.Example"});
  }
}

TEST(TfExample, DamagedRecordsEndInErrorsOnly) {
  const Bytes x(20, 3);
  std::vector<TfFeature> features(2);
  features[0] = {.name = "x", .kind = TfFeature::Kind::bytes, .bytes = {x}};
  features[1] = {.name = "y", .kind = TfFeature::Kind::floats, .floats = {1.5f, -2, 3, 4}};
  const Bytes sound = example_record(features);
  int parsed = 0, refused = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Rng rng(seed, Purpose::test, 7);
    Bytes bytes = sound;
    bytes[rng.below(static_cast<uint32_t>(bytes.size()))] = static_cast<uint8_t>(rng.below(256));
    try {
      parse_example(bytes, "f");
      ++parsed;
    } catch (const BadFile&) {
      ++refused;
    }
  }
  EXPECT_GT(parsed, 500);
  EXPECT_GT(refused, 500);
}

#ifdef TUTTI_TEST_DATA
TEST(RealTfRecord, MnistAndTheGzippedTaxiData) {
  const std::filesystem::path folder = std::filesystem::path(TUTTI_TEST_DATA) / "tfrecord";
  const auto digits = records_of(folder / "mnist.tfrecord");
  ASSERT_EQ(digits.size(), 1000u);
  for (const Bytes& record : digits) {
    const auto features = parse_example(record, "mnist");
    EXPECT_GE(
        find_feature(features, "image_floats", TfFeature::Kind::floats, 784, "mnist").floats[0],
        -0.5f);
    const auto& label =
        find_feature(features, "image_class", TfFeature::Kind::integers, 1, "mnist");
    EXPECT_LT(label.integers[0], 10);
  }
  const auto rides = records_of(folder / "chicago_taxi_unlabelled_data_tfrecord-00000-of-00012.gz");
  EXPECT_EQ(rides.size(), 205u);
  for (const Bytes& record : rides) EXPECT_GT(parse_example(record, "taxi").size(), 10u);
  EXPECT_EQ(records_of(folder / "events.out.tfevents.1711623945.ADMIN-20230220W").size(), 1u);
}
#endif

}  // namespace
}  // namespace tutti::data
