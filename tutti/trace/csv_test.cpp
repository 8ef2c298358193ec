#include "tutti/trace/csv.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/trace/tensorboard.h"

namespace tutti::trace {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"steps.csv", "epochs.csv", "evals.csv", "record.jsonl",
                               "events.out.tfevents.1.h"};

/// Returns the message of the error if a run's files cannot be created.
std::string refusal_in(const fs::path& folder) {
  return message_of<IoError>("", [&] {
    CsvFiles(RunLog{}, folder.string());
    RunRecord((folder / "record.jsonl").string());
    TensorBoardWriter(folder.string(), "h", 1);
  });
}

TEST(RecordFiles, APipeInTheirPlaceIsNotWaitedFor) {
  for (const char* name : kNames) {
    const ScratchDirectory scratch;
    const fs::path pipe = scratch.path() / name;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(
        refusal_in(scratch.path()),
        pipe.string() + ": cannot be written: it is a pipe (FIFO), no regular file: remove it");
    EXPECT_THROW(read_run(pipe.string()), IoError);
    EXPECT_THROW(read_readable(pipe.string()), IoError);
    EXPECT_THROW(read_run_id(pipe.string()), IoError);
  }
}

// In a folder that is open to all, a link with such a name leads to a file of somebody else's
// choice.
TEST(RecordFiles, LinksOfOthersAreNotWrittenThrough) {
  for (const char* name : kNames) {
    const ScratchDirectory scratch;
    const fs::path victim = scratch.write("victim", std::string("mine\n")),
                   link = scratch.path() / name;
    fs::create_symlink(victim, link);
    EXPECT_EQ(refusal_in(scratch.path()), "") << "an own link is followed";
    scratch.write("victim", std::string("mine\n"));
    if (::geteuid() != 0) continue;  // only root can give a link away
    ASSERT_EQ(::lchown(link.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(has_text(refusal_in(scratch.path()), "a symbolic link of another user's"));
    RunRecord::append_failure(link.string(), {});
    EXPECT_EQ(fs::file_size(victim), 5u);
  }
}

}  // namespace
}  // namespace tutti::trace
