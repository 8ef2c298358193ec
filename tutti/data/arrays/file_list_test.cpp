#include "tutti/data/arrays/file_list.h"

#include <gtest/gtest.h>

#include "tutti/data/format/file_checks.h"

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
                  {"data.train_files", "c.h5", "does not exist"});
  expect_io_error([&] { listed(scratch, {"*.h5"}); }, {"no file fits the pattern", "*.h5"});
  expect_io_error([&] { listed(scratch, {"empty"}); }, {"empty", "holds no files"});
  expect_config_error([&] { listed(scratch, {}); }, {"names no file"});
  expect_config_error([&] { listed(scratch, {"a", "a/*.h5"}); }, {"2.h5 twice"});
}

}  // namespace
}  // namespace tutti::data
