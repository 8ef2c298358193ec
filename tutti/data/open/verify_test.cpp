#include "tutti/data/open/verify.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/sha256.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

TEST(Verify, ReportsEveryFileOfADirectory) {
  const ScratchDirectory scratch;
  Bytes batch(2 * 3073, 1);
  batch[3073] = 4;
  for (const auto* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                           "data_batch_4.bin", "test_batch.bin"})
    scratch.write(name, batch);
  scratch.write("data_batch_5.bin", Bytes(3000));
  scratch.write("list.sha256", sha256(batch) + "  data_batch_1.bin\n" + sha256(bytes_of("abc")) +
                                   " *data_batch_2.bin\n");
  const VerifyReport report = verify_dataset("cifar10", scratch.path());
  ASSERT_EQ(report.files.size(), 6u);
  EXPECT_FALSE(report.sound());
  EXPECT_EQ(report.files[0].problem, "");
  EXPECT_EQ(report.files[0].sha256, sha256(batch));
  EXPECT_EQ(report.files[0].bytes, 6146);
  EXPECT_EQ(report.files[0].records, 2);
  EXPECT_EQ(report.files[0].class_counts, (std::vector<int64_t>{0, 1, 0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(has_text(report.files[1].problem, "expected sha256 ba7816bf"));
  EXPECT_EQ(report.files[2].problem, "");
  EXPECT_EQ(report.files[2].sha256, "");
  EXPECT_EQ(report.files[2].xxhash64, report.files[0].xxhash64);
  EXPECT_TRUE(has_text(report.files[4].problem, "found 3000 bytes"));
  EXPECT_EQ(report.files[5].file.filename(), "test_batch.bin");
  std::filesystem::remove(scratch.path() / "test_batch.bin");
  EXPECT_TRUE(has_text(verify_dataset("cifar10", scratch.path()).files[5].problem, "No such file"));
  EXPECT_TRUE(has_text(report.to_text(), "2 records  per class 0 1 0 0 1"));
  EXPECT_TRUE(has_text(report.to_text(), "BAD  "));
}

TEST(Verify, LatticesAndUnknownNames) {
  const ScratchDirectory scratch;
  EXPECT_FALSE(verify_dataset("lattices", scratch.path()).sound());
  write_lattices(scratch.path() / "lattices-test.bin",
                 {.seed = 1, .first = kFirstTestLattice, .count = 12}, 1);
  const VerifyReport report = verify_dataset("lattices", scratch.path());
  EXPECT_TRUE(report.sound());
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].records, 12);
  EXPECT_TRUE(has_text(report.to_text(), "compared with nothing"));
  EXPECT_THROW(verify_dataset("svhn", scratch.path()), ConfigError);
}

// A user with sorted images needs no advice to sort them.
TEST(Verify, ADamagedImageIsToBeFetchedAgain) {
  const ScratchDirectory scratch;
  const KnownDataset& images = known_dataset("imagenet");
  EXPECT_TRUE(has_text(how_to_get(images, scratch.path()), "sort images"));
  std::filesystem::create_directories(scratch.path() / "train/cat");
  scratch.write("train/cat/tom.png", Bytes{1});
  EXPECT_TRUE(has_text(how_to_get(images, scratch.path()), "fetch what is missing or damaged"));
}

TEST(Verify, PipesAreRefusedAndNotWaitedFor) {
  const ScratchDirectory scratch;
  for (const auto* name : {"train-images-idx3-ubyte", "list.sha256", "test_batch.bin",
                           "batches.meta.txt", "lattices-train.bin"})
    ASSERT_EQ(::mkfifo((scratch.path() / name).c_str(), 0600), 0);
  for (const auto* name : {"mnist", "cifar10", "lattices"}) {
    EXPECT_FALSE(verify_dataset(name, scratch.path()).sound()) << name;
    EXPECT_THROW(open_dataset({.name = name, .dir = scratch.path()}), IoError) << name;
  }
  expect_io_error([&] { open_dataset({.name = "mnist", .dir = scratch.path()}); },
                  {"train-images-idx3-ubyte", "found a pipe"});
}

TEST(OpenDataset, OfADamagedFileTheCommandThatMakesItAgainIsSaidOnce) {
  const ScratchDirectory scratch;
  const auto file = scratch.path() / "lattices-test.bin";
  std::ofstream(file) << "cut";
  for (const auto& dir : {scratch.path(), file}) {
    const std::string message = message_of<IoError>(
        [&] { open_dataset({.name = "lattices", .dir = dir, .split = "test"}); });
    const std::string command =
        "'tutti data generate lattices " + scratch.path().string() + " --force'";
    EXPECT_TRUE(has_text(message, command));
    EXPECT_TRUE(has_once(message, "data generate"));
  }
}

TEST(OpenDataset, SaysWhatToDo) {
  const ScratchDirectory scratch;
  EXPECT_THROW(open_dataset({.name = "svhn", .dir = scratch.path()}), ConfigError);
  EXPECT_THROW(open_dataset({.name = "cifar10", .dir = scratch.path(), .split = "validation"}),
               ConfigError);
  EXPECT_THROW(open_dataset({.name = "cifar10"}), ConfigError);
  expect_io_error([&] { open_dataset({.name = "mnist", .dir = scratch.path() / "none"}); },
                  {"/none does not exist", "download"});
  expect_io_error([&] { open_dataset({.name = "cifar10", .dir = scratch.path()}); },
                  {"cifar10 (train)", "data_batch_1.bin", "www.cs.toronto.edu"});
  expect_io_error(
      [&] { open_dataset({.name = "lattices", .dir = scratch.path()}); },
      {"lattices-train.bin", "tutti data generate lattices " + scratch.path().string() + "',"});
  std::filesystem::create_symlink("loop", scratch.path() / "loop");
  expect_io_error([&] { open_dataset({.name = "mnist", .dir = scratch.path() / "loop"}); },
                  {"mnist (train)", "/loop cannot be reached", "symbolic links"});
  EXPECT_FALSE(verify_dataset("mnist", scratch.path() / "loop").sound());
  expect_io_error([&] { open_dataset({.name = "mnist", .dir = "absent/mnist"}); },
                  {"looked for " + (std::filesystem::current_path() / "absent/mnist").string()});
  std::string names;
  for (const KnownDataset& known : known_datasets())
    names += (names.empty() ? "" : ", ") + known.name;
  EXPECT_EQ(message_of<ConfigError>([&] { known_dataset("cifar"); }),
            "data set 'cifar' is not known; known are " + names);
  EXPECT_TRUE(names.starts_with("cifar10, "));
  EXPECT_TRUE(
      names.ends_with("mnist, fashion-mnist, lattices, cosmoflow, deepcam, imagenet, neurons, "
                      "cbed, stem, clicks, text, tokens, token-pairs, arrays"));
}

#ifdef TUTTI_TEST_DATA
TEST(Verify, RealMnistIsSoundAndBalanced) {
  const VerifyReport report =
      verify_dataset("mnist", std::filesystem::path(TUTTI_TEST_DATA) / "mnist");
  EXPECT_TRUE(report.sound()) << report.to_text();
  ASSERT_EQ(report.files.size(), 4u);
  EXPECT_EQ(report.files[1].class_counts,
            (std::vector<int64_t>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  EXPECT_TRUE(report.files[1].counts_as_published && report.files[3].counts_as_published);
  EXPECT_FALSE(has_text(report.to_text(), "compared with nothing"));
}

// Both sets have the same form and file names.
TEST(Verify, RealMnistIsNotFashionMnist) {
  const std::filesystem::path dir = std::filesystem::path(TUTTI_TEST_DATA) / "mnist";
  const VerifyReport report = verify_dataset("fashion-mnist", dir);
  for (const size_t labels : {1, 3})
    EXPECT_TRUE(has_text(report.files[labels].problem, "of another data set"));
  EXPECT_TRUE(verify_dataset("fashion-mnist", dir, 10).sound()) << "said to be another set";
}
#endif

}  // namespace
}  // namespace tutti::data
