#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"
#include "tutti/keep/checkpoint_test.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

TEST_F(CheckpointTest, AFileInACheckpointIsVerifiedUnderAnyName) {
  const fs::path path = write(3), weights = path / "weights.safetensors",
                 other = path / "model.safetensors", outside = scratch_.path() / "w.safetensors";
  fs::copy(weights, other);
  EXPECT_NO_THROW(verify_file_of_checkpoint(other));
  flip_a_bit(other, 3000);
  EXPECT_THROW(verify_file_of_checkpoint(other), IoError);
  fs::copy(other, outside);
  EXPECT_NO_THROW(verify_file_of_checkpoint(outside));
  // After a move, and with a file missing, the checkpoint still has its manifest.
  fs::remove(path / "state.safetensors");
  fs::rename(path, scratch_.path() / "mine");
  EXPECT_THROW(verify_file_of_checkpoint(scratch_.path() / "mine/model.safetensors"), IoError);
  std::ofstream(scratch_.path() / "mine/manifest.json") << "{}";
  EXPECT_NO_THROW(verify_file_of_checkpoint(scratch_.path() / "mine/model.safetensors"))
      << "another program's";
}

TEST_F(CheckpointTest, ReadsBackWhatItWrote) {
  const fs::path path = write(123);
  EXPECT_NO_THROW(verify_checkpoint(path));
  const Checkpoint c = open_checkpoint(path);
  EXPECT_EQ(c.path.filename(), "step_0000123");
  const CheckpointInfo expected = info(123);
  EXPECT_EQ(c.info.step, 123);
  EXPECT_EQ(c.info.epoch, expected.epoch);
  EXPECT_EQ(c.info.epoch_position, expected.epoch_position);
  EXPECT_EQ(c.info.seed, expected.seed);
  EXPECT_EQ(c.info.replicas, 4);
  EXPECT_EQ(c.info.ranks, 2);
  EXPECT_EQ(c.info.precision, expected.precision);
  EXPECT_EQ(c.info.plan_choices, expected.plan_choices);
  EXPECT_EQ(c.info.config, expected.config);
  EXPECT_EQ(c.info.metrics.at("loss"), 0.1);
  EXPECT_TRUE(std::isnan(c.info.metrics.at("lost")));
  EXPECT_EQ(c.info.run_id, expected.run_id);
  EXPECT_EQ(c.info.optimizer, "sgd");
  EXPECT_EQ(c.info.state_kinds, expected.state_kinds);
  EXPECT_EQ(c.info.settings, expected.settings);
  EXPECT_EQ(c.info.learned, expected.learned);
  EXPECT_EQ(c.checksum, manifest_checksum(path));
  ASSERT_EQ(c.weights.entries().size(), 1u);
  const NamedTensor w = c.weights.read(c.weights.entries()[0]);
  EXPECT_EQ(w.name, "conv1.weight");
  EXPECT_EQ(w.desc, (TensorDesc{DType::f32, {10, 100}, {}}));
  EXPECT_EQ(w.bytes, std::vector<std::byte>(4000, std::byte{123}));
  ASSERT_EQ(c.state.entries().size(), 1u);
  EXPECT_EQ(read_text(directory_ / "latest"), "step_0000123\n");
}

TEST_F(CheckpointTest, KeepsTheLastWritten) {
  for (const int64_t step : {10, 20, 30}) write(step, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step_0000020", "step_0000030"}));
  // After a run went back to an earlier step, its checkpoints count as newer than the abandoned
  // ones.
  write(15, 2);
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000015");
  write(16, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step_0000016"}));
}

TEST_F(CheckpointTest, AResumeNeverFallsBackIntoACourseThatWasLeft) {
  const fs::path start = write(2);
  write(6);
  write(8, 0, true);
  testing::internal::CaptureStderr();
  set_aside_after(directory_, start, 2);
  const std::string warning = testing::internal::GetCapturedStderr();
  for (const char* step : {"step_0000006", "step_0000008"}) EXPECT_TRUE(has_text(warning, step));
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002") << "killed at this moment";
  EXPECT_EQ(find_best(directory_)->filename(), "step_0000008.abandoned");
  EXPECT_TRUE(is_abandoned(*find_best(directory_)));
  flip_a_bit(write(8) / "weights.safetensors", 500);
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002");
  set_aside_after(directory_, start, 2);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"best", "latest", "step_0000002", "step_0000006.abandoned",
                                      "step_0000008.abandoned", "step_0000008.abandoned-2"}));
}

TEST_F(CheckpointTest, ACourseThatWasLeftAndIsTakenUpAgainHasItsNameBack) {
  const fs::path start = write(2);
  write(6, 0, true);
  write(8);
  set_aside_after(directory_, start, 2);
  const fs::path other = write(6);
  write(7);
  const fs::path taken = directory_ / "step_0000006.abandoned";
  const std::string checksum = manifest_checksum(taken);
  set_aside_after(directory_, taken, 6);
  EXPECT_EQ(manifest_checksum(other), checksum);
  EXPECT_EQ(find_latest_valid(directory_), other);
  EXPECT_EQ(find_best(directory_), other);
  EXPECT_EQ(names(), (std::vector<std::string>{"best", "latest", "step_0000002", "step_0000006",
                                               "step_0000006.abandoned-2", "step_0000007.abandoned",
                                               "step_0000008.abandoned"}));
}

TEST_F(CheckpointTest, WhereLaterOnesCannotBeSetAsideNothingGoesOn) {
  const fs::path start = write(2);
  write(6);
  fs::remove(directory_ / "latest");
  fs::create_directories(directory_ / "latest/full");  // cannot be replaced by a file
  EXPECT_THROW(set_aside_after(directory_, start, 2), IoError);
  EXPECT_TRUE(fs::exists(directory_ / "step_0000006"));
}

TEST_F(CheckpointTest, ReplacesTheSameStep) {
  flip_a_bit(write(5) / "weights.safetensors", 500);
  EXPECT_THROW(verify_checkpoint(directory_ / "step_0000005"), IoError);
  write(5);
  EXPECT_EQ(verify_checkpoint(directory_ / "step_0000005").step, 5);
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step_0000005"}));
}

TEST_F(CheckpointTest, AFullDiskLeavesTheEarlierOnesIntact) {
  write(1, 1);
  // A limit on file sizes acts like a full disk: the same call fails with the same error.
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit small = old;
  small.rlim_cur = 2048;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<IoError>([&] { write(2, 1); });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_TRUE(has_text(message, "weights.safetensors: cannot be written"));
  EXPECT_EQ(names(), (std::vector<std::string>{"latest", "step_0000001"}));
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000001");
}

TEST_F(CheckpointTest, AKillAtAnyMomentLeavesOnlyWholeOnes) {
  write(1, 2);
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (int64_t step = 2;; step = step % 5 + 1) write(step, 2);  // replaces and removes as well
    usleep(static_cast<useconds_t>(5000 + 7000 * round));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    for (const fs::path& checkpoint : list_checkpoints(directory_))
      EXPECT_NO_THROW(verify_checkpoint(checkpoint)) << round;
    EXPECT_TRUE(find_latest_valid(directory_).has_value()) << round;
  }
}

TEST_F(CheckpointTest, TheBestOneIsNeverPruned) {
  write(1, 1);
  EXPECT_FALSE(find_best(directory_).has_value());
  write(2, 1, true);
  for (const int64_t step : {3, 4, 5}) write(step, 1);
  EXPECT_EQ(names(), (std::vector<std::string>{"best", "latest", "step_0000002", "step_0000005"}));
  EXPECT_EQ(find_best(directory_)->filename(), "step_0000002");
  EXPECT_EQ(verify_checkpoint(directory_ / "best").step, 2) << "the link is a checkpoint itself";
  write(6, 1, true);
  EXPECT_EQ(names(), (std::vector<std::string>{"best", "latest", "step_0000006"}));
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000006");
  flip_a_bit(directory_ / "best/weights.safetensors", 500);
  EXPECT_FALSE(find_best(directory_).has_value());
}

TEST_F(CheckpointTest, NeedsNeitherLinksNorSyncNorAnExchangeOfNames) {
  const auto whole = [&] {
    for (const int64_t step : {1, 2, 2, 3}) write(step, 1, step == 2);
    return names() == std::vector<std::string>{"best", "latest", "step_0000002", "step_0000003"} &&
           fs::is_regular_file(fs::symlink_status(directory_ / "best")) &&
           find_best(directory_)->filename() == "step_0000002" && newest_step(directory_) == 3 &&
           checkpoint_at(directory_ / "best", "--weights") == directory_ / "step_0000002" &&
           is_in_checkpoint(directory_ / "best");
  };
  const auto refused = {SYS_symlink, SYS_symlinkat, SYS_link, SYS_linkat, SYS_renameat2, SYS_fsync};
  for (const int error : {EOPNOTSUPP, EPERM, ENOSYS, 524})
    EXPECT_EQ(with_refused(refused, error, whole), 0) << error;
  // The folder is now on a file system with links.
  EXPECT_EQ(find_best(directory_)->filename(), "step_0000002");
  set_aside_after(directory_, directory_ / "step_0000003", 1);
  EXPECT_EQ(find_best(directory_)->filename(), "step_0000002.abandoned");
  EXPECT_TRUE(fs::is_symlink(directory_ / "best"));
  EXPECT_EQ(newest_step(directory_ / "nowhere"), -1);
}

TEST_F(CheckpointTest, RemovesWhatAKilledRunLeft) {
  write(3, 0, true);
  for (const char* left : {".step_0000001.partial-1", ".step_0000002.removed-9"})
    fs::create_directories(directory_ / left);
  replace_file(directory_ / ".latest.partial-77", "x");
  fs::create_directory_symlink("step_0000003", directory_ / ".best.partial-5");
  replace_file(directory_ / ".users_own", "x");
  remove_leftovers(directory_);
  EXPECT_EQ(names(), (std::vector<std::string>{".users_own", "best", "latest", "step_0000003"}));
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000003");
}

TEST_F(CheckpointTest, PutsBackWhatAKillLeftHalfReplaced) {
  for (const int64_t step : {3, 4}) write(step);
  // Both states occur on a file system that cannot exchange names: between its renames, and after.
  fs::rename(directory_ / "step_0000004", directory_ / ".step_0000004.replaced-9");
  fs::create_directories(directory_ / ".step_0000003.replaced-9");
  for (const char* own : {".step_by_step", ".step_0000003.notes", ".latest_notes"})
    replace_file(directory_ / own, "x");
  remove_leftovers(directory_);
  EXPECT_EQ(names(),
            (std::vector<std::string>{".latest_notes", ".step_0000003.notes", ".step_by_step",
                                      "latest", "step_0000003", "step_0000004"}));
  EXPECT_EQ(verify_checkpoint(directory_ / "step_0000004").step, 4);
}

TEST_F(CheckpointTest, SaysWhereItCannotWrite) {
  fs::create_directories(directory_);
  replace_file(directory_ / "file", "x");
  EXPECT_TRUE(throws<IoError>({(directory_ / "file").string()},
                              [&] { write_checkpoint(directory_ / "file", {}, 0); }));
}

}  // namespace
}  // namespace tutti::keep
