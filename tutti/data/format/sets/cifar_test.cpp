#include "tutti/data/format/sets/cifar.h"

#include <gtest/gtest.h>

#include <array>

#include "tutti/base/numeric/rng.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/field_statistics.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

Bytes random_records(int count, uint64_t seed) {
  Rng rng(seed, Purpose::test, 0);
  Bytes bytes;
  for (int i = 0; i < count; ++i) {
    bytes.push_back(static_cast<uint8_t>(rng.below(10)));
    for (int j = 0; j < 3072; ++j) bytes.push_back(static_cast<uint8_t>(rng.next_u32()));
  }
  return bytes;
}

std::unique_ptr<StoredImages> open_part(const std::filesystem::path& place, bool train) {
  return open_images(known_dataset("cifar10"), place, train);
}

void expect_record(const Dataset& set, int64_t index, const uint8_t* record) {
  const auto [pixels, label] = read_image(set, index);
  EXPECT_EQ(label, record[0]) << index;
  EXPECT_EQ(pixels, Bytes(record + 1, record + kCifarRecordBytes)) << index;
}

TEST(Cifar, DirectoryIsTheFiveBatchesInOrder) {
  const ScratchDirectory scratch;
  Bytes all;
  for (int i = 1; i <= 5; ++i) {
    const Bytes batch = random_records(i, static_cast<uint64_t>(i));  // files of different lengths
    scratch.write("data_batch_" + std::to_string(i) + ".bin", batch);
    all = joined(all, batch);
  }
  scratch.write("test_batch.bin", random_records(7, 6));
  const auto train = open_part(scratch.path(), true);
  ASSERT_EQ(train->size(), 15);
  EXPECT_EQ(field_named(*train, "image").shape, (Shape{3, 32, 32}));
  ASSERT_EQ(field_named(*train, "label").class_names.size(), 10u);
  EXPECT_EQ(field_named(*train, "label").class_names[3], "cat");
  for (int64_t i = 0; i < 15; ++i) expect_record(*train, i, all.data() + i * kCifarRecordBytes);
  EXPECT_EQ(open_part(scratch.path(), false)->size(), 7);
  EXPECT_EQ(open_part(scratch.path() / "data_batch_4.bin", false)->size(), 4);
}

TEST(Cifar, ClassNamesComeFromTheMetaFile) {
  const ScratchDirectory scratch;
  scratch.write("test_batch.bin", random_records(1, 1));
  scratch.write("batches.meta.txt", "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(field_named(*open_part(scratch.path(), false), "label").class_names,
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  scratch.write("batches.meta.txt", "a\nb\n");
  expect_io_error([&] { open_part(scratch.path(), false); },
                  {"batches.meta.txt", "10 class names", "found 2"});
}

/// A record has the class of 20, the class of 100, and then the pixels.
TEST(Cifar, HundredClassesOrTwenty) {
  const ScratchDirectory scratch;
  const auto records = [](const std::vector<std::array<uint8_t, 2>>& labels, uint64_t seed) {
    Bytes bytes;
    for (const auto& label : labels) {
      const Bytes one = random_records(1, seed++);
      bytes.insert(bytes.end(), label.begin(), label.end());
      bytes.insert(bytes.end(), one.begin() + 1, one.end());
    }
    return bytes;
  };
  const Bytes train = records({{11, 19}, {15, 29}, {4, 0}}, 1);
  scratch.write("train.bin", train);
  scratch.write("test.bin", records({{10, 49}, {1, 33}}, 9));
  const auto open = [&](const char* name, bool is_train) {
    return open_images(known_dataset(name), scratch.path(), is_train);
  };
  const auto fine = open("cifar100", true), coarse = open("cifar100-coarse", true);
  ASSERT_EQ(fine->size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    const uint8_t* const record = train.data() + i * (kCifarRecordBytes + 1);
    const auto [pixels, label] = read_image(*fine, i);
    EXPECT_EQ(label, record[1]);
    EXPECT_EQ(pixels, Bytes(record + 2, record + 1 + kCifarRecordBytes));
    EXPECT_EQ(read_image(*coarse, i).label, record[0]);
    EXPECT_EQ(read_image(*coarse, i).pixels, pixels);
  }
  EXPECT_EQ(open("cifar100", false)->size(), 2);
  const auto names = [](const Dataset& set) { return field_named(set, "label").class_names; };
  ASSERT_EQ(names(*fine).size(), 100u);
  EXPECT_EQ(names(*fine)[19], "cattle");
  EXPECT_EQ(names(*fine)[99], "worm");
  ASSERT_EQ(names(*coarse).size(), 20u);
  EXPECT_EQ(names(*coarse)[11], "large_omnivores_and_herbivores");
  scratch.write("coarse_label_names.txt", "fish\n");
  expect_io_error([&] { open("cifar100-coarse", true); },
                  {"coarse_label_names.txt", "20 class names", "found 1"});
  scratch.write("test.bin", records({{1, 100}}, 1));
  expect_config_error([&] { open("cifar100", false); }, {"test.bin", "record 0", "label 100"});
  scratch.write("test.bin", random_records(1, 1));
  expect_io_error([&] { open("cifar100", false); }, {"test.bin", "3074", "CIFAR-100's"});
}

TEST(Cifar, NamesTheFileAndWhatIsWrong) {
  const ScratchDirectory scratch;
  expect_io_error([&] { open_part(scratch.path(), true); }, {"data_batch_1.bin", "No such file"});
  Bytes bytes = random_records(3, 1);
  expect_io_error([&] { open_cifar_file(scratch.write("x.bin", sized(bytes, 9218))); },
                  {"x.bin", "3073", "found 9218 bytes", "truncated"});
  expect_io_error([&] { open_cifar_file(scratch.write("x.bin", Bytes{})); },
                  {"x.bin", "found 0 bytes"});
  bytes[2 * kCifarRecordBytes] = 10;
  expect_config_error([&] { open_cifar_file(scratch.write("x.bin", bytes)); },
                      {"x.bin", "record 2", "label 10", "0 to 9"});
  EXPECT_EQ(field_named(open_cifar_file(scratch.write("x.bin", bytes), {.count = 11}), "label")
                .class_names.size(),
            11u);
}

#ifdef TUTTI_TEST_DATA
TEST(Cifar, ReadsRealRecords) {
  const std::filesystem::path sample = std::filesystem::path(TUTTI_TEST_DATA) / "cifar10/sample";
  const StoredImages train = open_cifar_file(sample / "data_batch_1_first256.bin");
  ASSERT_EQ(train.size(), 256);
  const Bytes bytes = read_all(sample / "data_batch_1_first256.bin");
  std::vector<int> labels;
  for (int64_t i = 0; i < 8; ++i) labels.push_back(read_image(train, i).label);
  // The well-known frog, truck, truck, deer, ...
  EXPECT_EQ(labels, (std::vector<int>{6, 9, 9, 4, 1, 1, 2, 7}));
  for (const int64_t i : {0, 100, 255})
    expect_record(train, i, bytes.data() + i * kCifarRecordBytes);
  EXPECT_EQ(open_cifar_file(sample / "test_batch_first128.bin").size(), 128);
  // They are near those of the whole set, in the right order.
  const FieldStatistics statistics = field_statistics(train, "image");
  EXPECT_NEAR(statistics.mean[0], 0.4914, 0.02);
  EXPECT_NEAR(statistics.mean[2], 0.4465, 0.02);
  EXPECT_GT(statistics.mean[0], statistics.mean[2] + 0.02);
}
#endif

}  // namespace
}  // namespace tutti::data
