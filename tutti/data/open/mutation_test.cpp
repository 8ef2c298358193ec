// Damages small files of every format at random from fixed seeds: opening them must end in a typed
// error or in a set that can be read from end to end, never in a crash or another exception.

#include <gtest/gtest.h>

#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/array/hdf5_arrays.h"
#include "tutti/data/format/sets/cifar.h"
#include "tutti/data/format/sets/idx.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/format/sets/tf_example.h"
#include "tutti/data/format/sets/tfrecord.h"
#include "tutti/data/open/open.h"
#include "tutti/data/open/verify.h"

namespace tutti::data {
namespace {

/// Makes one to four changes: a bit, a byte, a number of the header, a cut, a longer end, a doubled
/// part.
Bytes damaged(Bytes bytes, Rng& rng) {
  const auto place = [&](size_t below) {
    return below == 0 ? 0 : rng.below(static_cast<uint32_t>(below));
  };
  for (uint32_t changes = 1 + rng.below(4); changes > 0; --changes) {
    const size_t head = std::min<size_t>(bytes.size(), 64);  // where most damage shows
    const size_t at = place(rng.below(2) ? head : bytes.size());
    switch (bytes.empty() ? 4 : rng.below(6)) {
      case 0: bytes[at] ^= static_cast<uint8_t>(1u << rng.below(8)); break;
      case 1: bytes[at] = static_cast<uint8_t>(rng.below(256)); break;
      case 2:
        for (size_t i = at; i < std::min(at + 4, bytes.size()); ++i)
          bytes[i] = rng.below(2) ? 0xff : 0x7f;
        break;
      case 3: bytes.resize(place(bytes.size())); break;
      case 4:
        bytes.resize(bytes.size() + 1 + rng.below(40), static_cast<uint8_t>(rng.below(256)));
        break;
      default:
        const Bytes part(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end());
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
  }
  return bytes;
}

struct Outcomes {
  int opened = 0, refused = 0;
};

/// Opens, reads every image, and counts the outcome; any other exception fails the test.
void try_open(const DatasetSpec& spec, Outcomes& outcomes) {
  try {
    const auto set = open_dataset(spec);
    const size_t classes = field_named(*set, "label").class_names.size();
    for (int64_t i = 0; i < set->size(); ++i)
      ASSERT_LT(static_cast<size_t>(read_image(*set, i).label), classes);
    ++outcomes.opened;
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find('/'), std::string::npos) << error.what();
    ++outcomes.refused;
  } catch (const ConfigError& error) {
    EXPECT_TRUE(has_text(error.what(), "has label"));
    ++outcomes.refused;
  }
}

TEST(Mutation, IdxFiles) {
  const ScratchDirectory scratch;
  const Bytes images = idx(8, {12, 5, 4}, 240), labels = idx(8, {12}, 12);
  Outcomes outcomes;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, Purpose::test, 1);
    const bool hit_images = rng.below(2) == 0;
    scratch.write("train-images-idx3-ubyte", hit_images ? damaged(images, rng) : images);
    scratch.write("train-labels-idx1-ubyte", hit_images ? labels : damaged(labels, rng));
    try_open({.name = "mnist", .dir = scratch.path()}, outcomes);
  }
  EXPECT_GT(outcomes.opened, 100);
  EXPECT_GT(outcomes.refused, 1000);
}

TEST(Mutation, GzippedIdxFiles) {
  const ScratchDirectory scratch;
  const Bytes images = idx(8, {12, 5, 4}, 240);
  scratch.write("train-labels-idx1-ubyte", idx(8, {12}, 12));
  Outcomes outcomes;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, Purpose::test, 2);
    const bool inside = rng.below(2) == 0;  // a sound stream of damaged content, or the reverse
    const Bytes packed = gzipped(inside ? damaged(images, rng) : images);
    scratch.write("train-images-idx3-ubyte.gz", inside ? packed : damaged(packed, rng));
    try_open({.name = "mnist", .dir = scratch.path()}, outcomes);
  }
  EXPECT_GT(outcomes.opened, 100);
  EXPECT_GT(outcomes.refused, 1000);
}

TEST(Mutation, CifarAndLatticesFiles) {
  const ScratchDirectory scratch;
  Bytes cifar(3 * kCifarRecordBytes, 7);
  write_lattices(scratch.path() / "sound.bin", {.seed = 1, .first = 0, .count = 2}, 1);
  const Bytes lattices = read_all(scratch.path() / "sound.bin");
  Outcomes outcomes;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed, Purpose::test, 3);
    try_open({.name = "cifar10", .dir = scratch.write("cifar.bin", damaged(cifar, rng))}, outcomes);
    try_open({.name = "lattices", .dir = scratch.write("lattices.bin", damaged(lattices, rng))},
             outcomes);
  }
  EXPECT_GT(outcomes.opened, 100);
  EXPECT_GT(outcomes.refused, 1000);
}

/// Opens the file as a data set and reads every sample.
void try_arrays(const ScratchDirectory& scratch, const std::string& name, const Bytes& bytes,
                const std::vector<std::string>& fields, Outcomes& outcomes) {
  scratch.write(name, bytes);
  try {
    const auto set = open_dataset(
        {.name = "arrays", .dir = scratch.path(), .arrays = {.train = {name}, .fields = fields}});
    Sample sample(set->fields());
    for (int64_t i = 0; i < std::min<int64_t>(set->size(), 100); ++i) set->read(i, sample);
    ++outcomes.opened;
  } catch (const IoError& error) {
    EXPECT_TRUE(has_text(error.what(), name));
    ++outcomes.refused;
  } catch (const ConfigError& error) {  // it no longer fits the lines
    EXPECT_TRUE(has_text(error.what(), name));
    ++outcomes.refused;
  }
}

TEST(Mutation, ArrayAndRecordFilesAsDataSets) {
  const ScratchDirectory scratch;
  std::vector<float> x(4 * 6, 1.5f);
  const std::vector<int64_t> y = {0, 1, 2, 1};
  const std::vector<ArrayRef> arrays = {{"x", ElementType::f32, {4, 2, 3}, x.data()},
                                        {"y", ElementType::i64, {4}, y.data()}};
  write_hdf5(scratch.path() / "sound", arrays);
  const Bytes hdf5 = read_all(scratch.path() / "sound");
  write_npy_array(scratch.path() / "sound", arrays[0]);
  const Bytes npy = read_all(scratch.path() / "sound");
  std::vector<std::vector<uint8_t>> records;
  for (int i = 0; i < 4; ++i) {
    TfFeature a{.name = "x", .kind = TfFeature::Kind::floats},
        b{.name = "y", .kind = TfFeature::Kind::integers};
    a.floats = {1, 2, 3};
    b.integers = {i % 3};
    records.push_back(example_record(std::vector<TfFeature>{a, b}));
  }
  write_tfrecords(scratch.path() / "sound", records);
  const Bytes plain = read_all(scratch.path() / "sound");
  const std::vector<std::string> fields = {"x: from x", "y: from y classes 3"};
  Outcomes outcomes;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed, Purpose::test, 5);
    if (seed % 4 == 0) try_arrays(scratch, "a.h5", damaged(hdf5, rng), fields, outcomes);
    try_arrays(scratch, "a.npy", damaged(npy, rng), {"x: from array"}, outcomes);
    try_arrays(scratch, "a.tfrecord", damaged(plain, rng), fields, outcomes);
    try_arrays(scratch, "a.tfrecord.gz", damaged(gzipped(plain), rng), fields, outcomes);
  }
  EXPECT_GT(outcomes.opened, 50);
  EXPECT_GT(outcomes.refused, 500);
}

TEST(Mutation, VerifyReportsAndDoesNotThrow) {
  const ScratchDirectory scratch;
  const Bytes images = idx(8, {12, 5, 4}, 240), labels = idx(8, {12}, 12);
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, Purpose::test, 4);
    scratch.write("train-images-idx3-ubyte", damaged(images, rng));
    scratch.write("train-labels-idx1-ubyte", damaged(labels, rng));
    scratch.write("t10k-images-idx3-ubyte.gz", damaged(gzipped(images), rng));
    scratch.write("t10k-labels-idx1-ubyte.gz", gzipped(damaged(labels, rng)));
    scratch.write("list.sha256", damaged(Bytes(200, 'a'), rng));
    EXPECT_EQ(verify_dataset("mnist", scratch.path()).files.size(), 4u);
  }
}

}  // namespace
}  // namespace tutti::data
