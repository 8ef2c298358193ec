// Tests which checkpoint a search takes, and in which cases it refuses to judge one.

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"
#include "tutti/keep/checkpoint_test.h"
#include "tutti/keep/durable_file.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

/// Changes the schema in its manifest to a later version's.
void make_later(const fs::path& checkpoint) {
  std::string text = read_text(checkpoint / "manifest.json");
  const size_t at = text.find("\"schema\": 3");
  ASSERT_NE(at, text.npos);
  text.replace(at, 11, "\"schema\": 9");
  std::ofstream(checkpoint / "manifest.json") << text;
}

TEST_F(CheckpointTest, ALaterVersionsIsNotDamaged) {
  write(2);
  const fs::path path = write(3);
  make_later(path);
  for (const auto& look : std::vector<std::function<void()>>{
           [&] { verify_checkpoint(path); }, [&] { find_latest_valid(directory_); },
           [&] { checkpoint_at(directory_, "--resume"); }}) {
    const std::string message = message_of<IoError>(look);
    EXPECT_TRUE(has_text(message, "schema 9 is that of a later version of Tutti"));
    EXPECT_FALSE(has_text(message, "damaged"));
  }
}

// Falling back to an older one would lose what the newest has trained.
TEST_F(CheckpointTest, WhatCannotBeReadNowIsNotDamaged) {
  for (const int64_t step : {2, 3}) write(step);
  const auto is_intact = [](const auto& look) {
    return [look] { return static_cast<bool>(throws<IntactFileError>({}, look)); };
  };
  const auto search = [&] { find_latest_valid(directory_); };
  EXPECT_EQ(with_refused({SYS_openat}, EMFILE, is_intact(search)), 0) << "the folder's list";
  const auto open = [&] { const InputFile file(directory_ / "latest"); };
  EXPECT_EQ(with_refused({SYS_openat}, EMFILE, is_intact(open)), 0);
  EXPECT_EQ(with_refused({SYS_pread64}, ESTALE, is_intact(search)), 0) << "latest";
  fs::remove(directory_ / "latest");
  EXPECT_EQ(with_refused({SYS_pread64}, ESTALE, is_intact(search)), 0) << "manifests";
  // A broken disk justifies an older checkpoint: this one never comes back.
  for (const int broken : {EIO, EUCLEAN, EBADMSG, ENXIO})
    EXPECT_EQ(with_refused({SYS_pread64}, broken, [&] { return !find_latest_valid(directory_); }),
              0)
        << broken;
}

// Only a later version can read it, so it may be newer than the readable ones, and stays.
TEST_F(CheckpointTest, OneThatCannotBeJudgedEndsTheSearchBeforeThoseOfEarlierStepsAlone) {
  const fs::path first = write(1), second = write(2), third = write(3);
  make_later(first);
  EXPECT_EQ(find_latest_valid(directory_), third);
  flip_a_bit(third / "weights.safetensors", 500);
  EXPECT_EQ(find_latest_valid(directory_), second);
  make_later(second);
  EXPECT_THROW(find_latest_valid(directory_), IntactFileError);
  write(4, 1);
  EXPECT_EQ(names(),
            (std::vector<std::string>{"latest", "step_0000001", "step_0000002", "step_0000004"}));
}

TEST_F(CheckpointTest, FallsBackToTheLatestValid) {
  for (const int64_t step : {1, 2, 3, 4, 5}) write(step);
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000005");
  flip_a_bit(directory_ / "step_0000005/state.safetensors", 2000);
  fs::resize_file(directory_ / "step_0000004/weights.safetensors", 100);
  const std::string manifest = read_text(directory_ / "step_0000003/manifest.json");
  flip_a_bit(directory_ / "step_0000003/manifest.json",
             static_cast<std::streamoff>(manifest.find("bf16")));

  testing::internal::CaptureStderr();
  const auto found = find_latest_valid(directory_);
  const std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_EQ(found->filename(), "step_0000002");
  for (const char* text : {"step_0000005", "state.safetensors: its content has changed",
                           "step_0000004", "has 100 bytes", "step_0000003/manifest.json"})
    EXPECT_TRUE(has_text(warnings, text));

  fs::remove(directory_ / "step_0000002/manifest.json");
  fs::remove(directory_ / "step_0000001/state.safetensors");
  EXPECT_FALSE(find_latest_valid(directory_).has_value());
  EXPECT_FALSE(find_latest_valid(directory_ / "nothing").has_value());
}

TEST_F(CheckpointTest, ALinkToNothingIsNoCheckpoint) {
  const fs::path path = write(1);
  fs::create_directory_symlink("gone", directory_ / "step_0000002");
  fs::create_directory_symlink("step_0000003", directory_ / "step_0000003");  // a link to itself
  EXPECT_EQ(find_latest_valid(directory_), path);
  EXPECT_EQ(list_checkpoints(directory_), std::vector{path});
}

TEST_F(CheckpointTest, LatestMayBeWrong) {
  const fs::path first = write(1), second = write(2);
  // A process was killed after the second one got its name and before `latest` was updated.
  replace_file(directory_ / "latest", "step_0000001\n");
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002");
  EXPECT_EQ(checkpoint_at(directory_ / "latest", "--weights"), first);
  EXPECT_EQ(find_latest_valid(directory_, std::span(&second, 1)), first);
  replace_file(directory_ / "latest", "");  // as after a full disk
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002");
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has_text(warning, "latest: is empty"));
  EXPECT_THROW(checkpoint_at(directory_ / "latest", "--resume"), IoError);
  replace_file(directory_ / "latest", "step_0000009\n");
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002");
  fs::remove(directory_ / "latest");
  EXPECT_EQ(find_latest_valid(directory_)->filename(), "step_0000002");
}

TEST_F(CheckpointTest, IsFoundInARunsFolder) {
  write(7);
  fs::create_directories(directory_ / "run");
  fs::rename(directory_ / "step_0000007", directory_ / "run/step_0000007");
  fs::create_directories(directory_ / "run/checkpoints");
  fs::rename(directory_ / "run/step_0000007", directory_ / "run/checkpoints/step_0000007");
  const fs::path expected = directory_ / "run/checkpoints/step_0000007";
  EXPECT_EQ(checkpoint_at(directory_ / "run", "--weights"), expected);
  EXPECT_EQ(checkpoint_at(directory_ / "run/checkpoints", "--weights"), expected);
  EXPECT_EQ(checkpoint_at(expected, "--weights"), expected);
  EXPECT_EQ(checkpoint_at(expected / "weights.safetensors", "--weights"), expected);
  replace_file(directory_ / "run/checkpoints/latest", "step_0000007\n");
  EXPECT_EQ(checkpoint_at(directory_ / "run/checkpoints/latest", "--weights"), expected);
  EXPECT_THROW(checkpoint_at(directory_ / "nowhere", "--weights"), IoError);
  EXPECT_TRUE(is_in_checkpoint(expected / "weights.safetensors"));
  const fs::path exported = directory_ / "exported";
  fs::create_directories(exported);
  for (const char* file : {"weights.safetensors", "manifest.json"})
    fs::copy_file(expected / file, exported / file);
  EXPECT_FALSE(is_in_checkpoint(exported / "weights.safetensors"));
}

TEST_F(CheckpointTest, APathThatCannotBeLookedAtIsAnIoError) {
  fs::create_directories(directory_);
  EXPECT_THROW(checkpoint_at(directory_ / std::string(300, 'x'), "--resume"), IoError);
}

}  // namespace
}  // namespace tutti::keep
