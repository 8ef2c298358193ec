#include "tutti/data/store/staging.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <set>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/data/file_checks.h"
#include "tutti/data/open/open.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

void write_whole(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

std::string file_text(const fs::path& file) {
  const Bytes bytes = read_all(file);
  return {bytes.begin(), bytes.end()};
}

class StagingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_whole(from / "train/a.bin", std::string(10'000'000, 'a') + "end");
    write_whole(from / "train/b.bin", "second");
    write_whole(from / "test/c.bin", "");
  }
  StagingSpec spec() const {
    return {.from = from,
            .files = {from / "train/a.bin", from / "train/b.bin", from / "test/c.bin"},
            .to = to};
  }
  std::string error(const StagingSpec& of) const {
    return message_of<Error>("", [&] { stage_files(of); });
  }
  /// Names of files in the folder, except the list.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(to))
      if (entry.is_regular_file() && entry.path().filename() != kStagedList)
        found.insert(entry.path().lexically_relative(to).string());
    return found;
  }
  const ScratchDirectory scratch;
  const fs::path from = scratch.path() / "shared", to = scratch.path() / "node";
};

TEST_F(StagingTest, CopiesAllOnceAndAgainOnlyWhatChanged) {
  const StagingResult first = stage_files(spec());
  EXPECT_EQ(first.files, 3);
  EXPECT_EQ(first.copied_files, 3);
  EXPECT_EQ(first.copied_bytes, 10'000'009);
  EXPECT_EQ(file_text(to / "train/a.bin"), file_text(from / "train/a.bin"));
  EXPECT_EQ(names(), (std::set<std::string>{"test/c.bin", "train/a.bin", "train/b.bin"}));
  EXPECT_EQ(stage_files(spec()).copied_files, 0);
  EXPECT_EQ(verify_staged(spec()), 10'000'009);

  write_whole(from / "train/b.bin", "other!");  // as long as before
  fs::last_write_time(from / "train/b.bin",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_THROW(verify_staged(spec()), IoError);
  EXPECT_EQ(stage_files(spec()).copied_files, 1);
  EXPECT_EQ(file_text(to / "train/b.bin"), "other!");
  EXPECT_EQ(verify_staged(spec()), 10'000'009);
}

TEST_F(StagingTest, GoesOnAfterAKill) {
  stage_files(spec());
  // A killed process leaves these: a part, a copy without its line, half a line.
  write_whole(to / "train/a.bin.part-here-1", "half");
  fs::remove(to / "train/b.bin");
  std::ofstream(to / kStagedList, std::ios::app) << "0123456789abcdef 77";
  const StagingResult again = stage_files(spec());
  EXPECT_EQ(again.copied_files, 1);
  EXPECT_EQ(file_text(to / "train/b.bin"), "second");
  fs::resize_file(to / "train/a.bin", 5);  // cut by somebody
  EXPECT_EQ(stage_files(spec()).copied_files, 1);
  EXPECT_EQ(verify_staged(spec()), 10'000'009);
}

TEST_F(StagingTest, SharesDifferInNumbersAndCoverAll) {
  int64_t files = 0, bytes = 0;
  for (int share = 0; share < 2; ++share) {
    StagingSpec part = spec();
    part.share = share;
    part.shares = 2;
    const StagingResult result = stage_files(part);
    EXPECT_EQ(result.files, share == 0 ? 1 : 2);  // the large file alone
    files += result.copied_files;
    bytes += result.copied_bytes;
  }
  EXPECT_EQ(files, 3);
  EXPECT_EQ(bytes, 10'000'009);
  EXPECT_EQ(verify_staged(spec()), 10'000'009);
}

TEST_F(StagingTest, OtherNodesFilesBecomeLinksThatGiveWayToCopies) {
  StagingSpec node = spec();
  node.files = {from / "train/b.bin"};
  node.linked = {from / "train/a.bin", from / "test/c.bin"};
  StagingResult result = stage_files(node);
  EXPECT_EQ(result.copied_files, 1);
  EXPECT_EQ(result.linked_files, 2);
  EXPECT_EQ(names(), (std::set<std::string>{"test/c.bin", "train/a.bin", "train/b.bin"}));
  EXPECT_TRUE(fs::is_symlink(to / "train/a.bin"));
  EXPECT_FALSE(fs::is_symlink(to / "train/b.bin"));
  EXPECT_EQ(file_text(to / "train/a.bin"), file_text(from / "train/a.bin"));
  EXPECT_EQ(verify_staged(node), 6);
  EXPECT_EQ(stage_files(spec()).copied_files, 2);  // another job needs all of them
  EXPECT_FALSE(fs::is_symlink(to / "train/a.bin"));
  EXPECT_EQ(verify_staged(spec()), 10'000'009);
  EXPECT_EQ(stage_files(node).linked_files, 0);  // a copy is better than a link
  write_whole(from / "train/a.bin", "another");
  EXPECT_EQ(stage_files(node).linked_files, 1);  // but a copy of the old file is not
  EXPECT_EQ(file_text(to / "train/a.bin"), "another");
}

// Another user may have made the folder, or may write to it: its contents are not trusted, and
// nothing is written through its links.
TEST_F(StagingTest, AFolderOfSomebodyElseIsRefused) {
  const fs::path victim = scratch.path() / "victim";
  write_whole(victim, "mine");
  fs::create_directory(to);
  fs::create_symlink(victim, to / kStagedList);
  fs::permissions(to, fs::perms::all);
  EXPECT_TRUE(has_text(error(spec()), "other users can write to it"));
  fs::permissions(to, fs::perms::owner_all);
  EXPECT_TRUE(has_text(error(spec()), "symbolic link"));
  EXPECT_EQ(file_text(victim), "mine");
  fs::remove(to / kStagedList);
  stage_files(spec());
  struct stat status {};
  ASSERT_EQ(::stat(to.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  if (::geteuid() != 0) return;  // only root can give a file away
  // A copy that another user has replaced is copied again.
  ASSERT_EQ(::chown((to / "train/b.bin").c_str(), 65534, 65534), 0);
  EXPECT_EQ(stage_files(spec()).copied_files, 1);
  ASSERT_EQ(::chown((to / kStagedList).c_str(), 65534, 65534), 0);
  EXPECT_TRUE(has_text(error(spec()), "uid 65534"));
  ASSERT_EQ(::chown(to.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(has_text(error(spec()), "uid 65534"));
}

TEST_F(StagingTest, ErrorsNameTheFileAndLeaveNothingHalfWritten) {
  StagingSpec wrong = spec();
  wrong.files.push_back(from / "gone.bin");
  EXPECT_TRUE(has_text(error(wrong), "gone.bin: cannot be staged"));
  wrong.files.back() = scratch.path() / "elsewhere.bin";
  EXPECT_TRUE(has_text(error(wrong), "does not lie below"));
  wrong = spec();
  wrong.to = from;
  EXPECT_TRUE(has_text(error(wrong), "into itself"));
  EXPECT_FALSE(fs::exists(to / "train/a.bin"));
}

/// Sparse files below `from`, with so many bytes together: eight files, since file systems bound
/// the size of a file far below that of a disk.
std::vector<fs::path> add_sparse(const fs::path& from, const std::string& name, uintmax_t bytes) {
  std::vector<fs::path> files;
  for (int i = 0; i < 8; ++i) {
    files.push_back(from / (name + std::to_string(i)));
    write_whole(files.back(), "");
    fs::resize_file(files.back(), bytes / 8);
  }
  return files;
}

TEST_F(StagingTest, AFullDiskIsSaidBeforeTheFirstByteAndAtTheLast) {
  fs::create_directories(to);
  StagingSpec more = spec();
  for (const fs::path& file : add_sparse(from, "huge", fs::space(to).available * 2))
    more.files.push_back(file);
  EXPECT_TRUE(has_text(error(more), "are to be staged there and"));
  EXPECT_TRUE(names().empty());
}

TEST_F(StagingTest, RoomIsWantedForAllSharesTogether) {
  fs::create_directories(to);
  const uintmax_t most = fs::space(to).available / 10 * 6;  // each one fits, both do not
  StagingSpec both = spec();
  both.shares = 2;
  const auto add = [&](const char* name) {
    for (const fs::path& file : add_sparse(from, name, most)) both.files.push_back(file);
  };
  add("one");
  EXPECT_NO_THROW(check_staging_room(both));
  add("two");
  EXPECT_TRUE(throws<IoError>({"are to be staged there and"}, [&] { check_staging_room(both); }));
  EXPECT_TRUE(names().empty());
}

TEST_F(StagingTest, ACopyThatWasChangedIsFound) {
  stage_files(spec());
  std::fstream(to / "train/a.bin", std::ios::in | std::ios::out | std::ios::binary) << "x";
  EXPECT_TRUE(throws<IoError>({"train/a.bin: its checksum is"}, [&] { verify_staged(spec()); }));
}

// Without the linked files a copy could not be read.
TEST(Staging, TakesWhatExternalLinksLeadFieldsTo) {
  const ScratchDirectory scratch;
  const fs::path from = scratch.path() / "shared", to = scratch.path() / "node";
  fs::create_directory(from);
  for (const char* name : {"links", "linked_target"})
    fs::copy(corpus_file(std::string("hdf5/") + name), from / name);
  DatasetSpec spec{.name = "arrays",
                   .dir = from,
                   .arrays = {.train = {"links"}, .fields = {"x: from raw/x whole"}}};
  EXPECT_EQ(dataset_files(spec), std::vector{from / "links"});
  spec.arrays.fields = {"x: from /outside whole"};
  const std::vector<fs::path> files = dataset_files(spec);
  ASSERT_EQ(files, (std::vector{from / "links", from / "linked_target"}));
  stage_files({.from = from, .files = files, .to = to});
  fs::remove_all(from);
  spec.dir = to;
  EXPECT_EQ(values_of<int16_t>(*open_dataset(spec), 0, "x")[5], 15);
}

}  // namespace
}  // namespace tutti::data
