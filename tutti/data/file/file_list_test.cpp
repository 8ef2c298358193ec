#include "tutti/data/file/file_list.h"

#include <gtest/gtest.h>

#include "tutti/data/file_checks.h"

namespace tutti::data {
namespace {

std::vector<std::string> listed(const ScratchDirectory& scratch,
                                const std::vector<std::string>& entries) {
  std::vector<std::string> names;
  for (const auto& file : listed_files(entries, scratch.path(), "data.train_files"))
    names.push_back(file.lexically_relative(scratch.path()).string());
  return names;
}

TEST(FileList, FilesFoldersAndPatterns) {
  const ScratchDirectory scratch;
  for (const char* folder : {"a", "b", "a/deep", "empty"})
    std::filesystem::create_directories(scratch.path() / folder);
  for (const char* file :
       {"a/2.h5", "a/1.npz", "a/.hidden.h5", "a/readme.txt", "b/1.h5", "a/deep/1.h5", "x[1].npy"})
    scratch.write(file, Bytes{1});
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed(scratch, {"b/1.h5", "a"}), (Names{"b/1.h5", "a/1.npz", "a/2.h5"}));
  EXPECT_EQ(listed(scratch, {"*/*.h5"}), (Names{"a/2.h5", "b/1.h5"}));
  EXPECT_EQ(listed(scratch, {"a/[!2]*"}), (Names{"a/1.npz", "a/readme.txt"}));
  EXPECT_EQ(listed(scratch, {"x[1].npy"}), Names{"x[1].npy"}) << "a file of that very name";
  EXPECT_EQ(listed_files({(scratch.path() / "?" / "1.h5").string()}, "elsewhere", "k").size(), 1u);

  expect_io_error([&] { listed(scratch, {"c.h5"}); },
                  {"data.train_files", "c.h5", "does not exist", "has no 'c.h5'"});
  expect_io_error([&] { listed(scratch, {"*.h5"}); }, {"no file fits the pattern", "*.h5"});
  expect_io_error([&] { listed(scratch, {"empty"}); }, {"empty", "holds no files"});
  std::filesystem::create_symlink("round.h5", scratch.path() / "round.h5");
  expect_io_error([&] { listed(scratch, {"round.h5"}); },
                  {"round.h5: cannot be looked at: ", "lead round in a circle"});
  std::filesystem::create_symlink("nowhere", scratch.path() / "dangling");
  for (const char* name : {"dangling", "dangling/a.h5"})
    expect_io_error([&] { listed(scratch, {name}); },
                    {"/dangling is a symbolic link to 'nowhere', which is not there"});
  expect_config_error([&] { listed(scratch, {}); }, {"names no file"});
  expect_config_error([&] { listed(scratch, {"a", "a/*.h5"}); }, {"2.h5 twice"});
}

// Remedies must be possible: `data inspect` takes no patterns, and class folders of files other
// than images occur.
TEST(FileList, AFolderWithoutArraysLeadsOn) {
  const ScratchDirectory scratch;
  for (const char* folder : {"text", "classes/a", "classes/b"})
    std::filesystem::create_directories(scratch.path() / folder);
  scratch.write("text/story.txt", Bytes(100, 'a'));
  for (const char* file : {"classes/a/0.tif", "classes/b/1.tif"}) scratch.write(file, Bytes{1});
  const std::string text = (scratch.path() / "text").string();
  expect_io_error([&] { listed(scratch, {"text"}); },
                  {"'story.txt' is text: name the files", text + "/*.txt\""});
  expect_io_error([&] { listed_files({"."}, text, text); },
                  {"'story.txt' is text: name the file, " + text + "/story.txt"});
  expect_io_error([&] { listed(scratch, {"classes"}); },
                  {"its folders a, b hold .tif files", "JPEG and PNG", "classes/*/*.tif\""});
}

// Brackets in the folder are part of its name.
TEST(FileList, OnlyEntriesArePatterns) {
  const ScratchDirectory scratch;
  const std::filesystem::path folder = scratch.path() / "exp[1]*";
  std::filesystem::create_directories(folder / "in[2]");
  scratch.write("exp[1]*/a.npz", Bytes{1});
  scratch.write("exp[1]*/in[2]/b.npz", Bytes{1});
  const auto names = [&](const std::string& entry, const std::filesystem::path& from) {
    std::vector<std::string> found;
    for (const auto& file : listed_files({entry}, from, "k"))
      found.push_back(file.lexically_relative(folder).string());
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("*.npz", folder), Names{"a.npz"});
  EXPECT_EQ(names("in*/*", folder), Names{"in[2]/b.npz"});
  EXPECT_EQ(names("in[2]", folder), Names{"in[2]/b.npz"});
  EXPECT_EQ(names("exp*/?.npz", scratch.path()), Names{"a.npz"});
  expect_io_error([&] { names("c.npz", folder); }, {"c.npz", "does not exist"});
}

TEST(FileList, NumberedNames) {
  EXPECT_TRUE(is_sample_file_name("train-00000-of-00002"));
  EXPECT_TRUE(is_sample_file_name("train-00000-of-00002.gz"));
  EXPECT_TRUE(is_sample_file_name("x.tfrecord-00000-of-00010"));
  EXPECT_FALSE(is_sample_file_name("model-00001-of-00002.bin"));
  EXPECT_FALSE(is_sample_file_name("one-of-00002"));
  EXPECT_FALSE(numbered_name("-of-"));
  EXPECT_EQ(numbered_name("a-003-of-012.tar")->of(11), "a-011-of-012.tar");
  const ScratchDirectory scratch;
  for (const char* file : {"a-00000-of-00004", "a-00002-of-00004", "a-00003-of-00004",
                           "b-00001-of-00002.gz", "b-00002-of-00002.gz"})
    scratch.write(file, Bytes{1});
  std::vector<std::string> missing;
  for (const auto& path : missing_parts(listed_files({"."}, scratch.path(), "k")))
    missing.push_back(path.filename().string());
  EXPECT_EQ(missing, (std::vector<std::string>{"a-00001-of-00004"}));
}

}  // namespace
}  // namespace tutti::data
