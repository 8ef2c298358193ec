#include "tutti/data/open/verify.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tutti/base/numeric/sha256.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/format/sets/lattices.h"
#include "tutti/data/open/catalog.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

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
  EXPECT_NE(report.files[1].problem.find("expected sha256 ba7816bf"), std::string::npos);
  EXPECT_EQ(report.files[2].problem, "");
  EXPECT_EQ(report.files[2].sha256, "");
  EXPECT_EQ(report.files[2].xxhash64, report.files[0].xxhash64);
  EXPECT_NE(report.files[4].problem.find("found 3000 bytes"), std::string::npos);
  EXPECT_EQ(report.files[5].file.filename(), "test_batch.bin");
  std::filesystem::remove(scratch.path() / "test_batch.bin");
  EXPECT_NE(verify_dataset("cifar10", scratch.path()).files[5].problem.find("No such file"),
            std::string::npos);
  EXPECT_NE(report.to_text().find("2 records  per class 0 1 0 0 1"), std::string::npos);
  EXPECT_NE(report.to_text().find("BAD  "), std::string::npos);
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
  EXPECT_NE(report.to_text().find("compared with nothing"), std::string::npos);
  EXPECT_THROW(verify_dataset("svhn", scratch.path()), ConfigError);
}

// A user with sorted images needs no advice to sort them.
TEST(Verify, ADamagedImageIsToBeFetchedAgain) {
  const ScratchDirectory scratch;
  const KnownDataset& images = known_dataset("imagenet");
  EXPECT_NE(how_to_get(images, scratch.path()).find("sort images"), std::string::npos);
  std::filesystem::create_directories(scratch.path() / "train/cat");
  scratch.write("train/cat/tom.png", Bytes{1});
  EXPECT_NE(how_to_get(images, scratch.path()).find("fetch what is missing or damaged"),
            std::string::npos);
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
    std::string said;
    try {
      open_dataset({.name = "lattices", .dir = dir, .split = "test"});
    } catch (const IoError& error) {
      said = error.what();
    }
    const std::string command =
        "'tutti data generate lattices " + scratch.path().string() + " --force'";
    EXPECT_NE(said.find(command), std::string::npos) << said;
    EXPECT_EQ(said.find("data generate"), said.rfind("data generate")) << said;
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
  try {
    known_dataset("cifar");
    FAIL();
  } catch (const ConfigError& error) {
    std::string names;
    for (const KnownDataset& known : known_datasets())
      names += (names.empty() ? "" : ", ") + known.name;
    EXPECT_EQ(error.what(), "data set 'cifar' is not known; known are " + names);
    EXPECT_TRUE(names.starts_with("cifar10, "));
    EXPECT_TRUE(
        names.ends_with("mnist, fashion-mnist, lattices, cosmoflow, deepcam, imagenet, "
                        "neurons, cbed, stem, clicks, text, tokens, token-pairs, arrays"));
  }
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
  EXPECT_EQ(report.to_text().find("compared with nothing"), std::string::npos);
}

// Both sets have the same form and file names.
TEST(Verify, RealMnistIsNotFashionMnist) {
  const std::filesystem::path dir = std::filesystem::path(TUTTI_TEST_DATA) / "mnist";
  const VerifyReport report = verify_dataset("fashion-mnist", dir);
  for (const size_t labels : {1, 3})
    EXPECT_NE(report.files[labels].problem.find("of another data set"), std::string::npos);
  EXPECT_TRUE(verify_dataset("fashion-mnist", dir, 10).sound()) << "said to be another set";
}
#endif

}  // namespace
}  // namespace tutti::data
