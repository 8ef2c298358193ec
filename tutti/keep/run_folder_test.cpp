#include "tutti/keep/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/keep/checkpoint.h"
#include "tutti/trace/record.h"

namespace tutti::keep {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderRequest request(const std::string& name, const std::string& resume = "") const {
    return {.output_dir = name.empty() ? "" : (root_ / name).string(),
            .resume = resume,
            .base = (root_ / "runs").string(),
            .patience = 0};
  }
  RunFolderRequest fresh(const std::string& name) const {
    RunFolderRequest r = request(name);
    r.fresh = true;
    return r;
  }
  /// Takes a folder and releases it at once.
  static RunPlace taken(const RunFolderRequest& request) {
    std::vector<FolderLock> locks;
    return take_run_folder(request, locks);
  }
  static std::string refusal(const RunFolderRequest& request) {
    return message_of<Error>("", [&] { taken(request); });
  }
  /// Leaves behind a run's record and the checkpoints of some steps.
  static void leave_run(const RunPlace& place, std::initializer_list<int64_t> steps) {
    trace::RunRecord record((fs::path(place.directory) / trace::kRecordFile).string());
    record.append(trace::RunStart{.run_id = place.run_id});
    for (const int64_t step : steps) {
      CheckpointContent content;
      content.info.step = step;
      content.info.run_id = place.run_id;
      write_checkpoint(place.checkpoints, content, 0);
    }
  }
  static void damage(const fs::path& checkpoint) {
    std::ofstream(checkpoint / "manifest.json", std::ios::app) << "x";
  }

  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
};

TEST_F(RunFolderTest, NoRunBeginsInTheFolderOfAStudy) {
  fs::create_directories(root_ / "study");
  std::ofstream(root_ / "study" / trace::kStudyLockFile) << "";
  EXPECT_TRUE(has_text(refusal(request("study")), "holds a study"));
  EXPECT_TRUE(has_text(refusal(fresh("study")), "holds a study"));
  EXPECT_FALSE(fs::exists(root_ / "study/run.lock"));
  EXPECT_THROW(preview_run_folder(request("study")), ConfigError);
  EXPECT_EQ(refusal(request("study/a")), "") << "a folder of its own below it is another thing";
}

TEST_F(RunFolderTest, ByDefaultEachRunGetsTheNextNumber) {
  const RunPlace first = taken(request(""));
  EXPECT_EQ(fs::path(first.directory), root_ / "runs/0001");
  EXPECT_EQ(fs::path(first.checkpoints), root_ / "runs/0001/checkpoints");
  EXPECT_FALSE(first.goes_on);
  leave_run(first, {8});
  const RunPlace second = taken(request(""));
  EXPECT_EQ(fs::path(second.directory), root_ / "runs/0002");
  EXPECT_NE(second.run_id, first.run_id);
  EXPECT_EQ(fs::read_symlink(root_ / "runs/latest"), "0002");

  leave_run(second, {5});
  const RunPlace resumed = taken(request("", "latest"));
  EXPECT_EQ(resumed.directory, second.directory);
  EXPECT_EQ(fs::path(resumed.resume).filename(), "step_0000005");
  EXPECT_EQ(resumed.run_id, second.run_id);
  EXPECT_TRUE(resumed.goes_on);
  EXPECT_EQ(resumed.checksum, manifest_checksum(resumed.resume));

  const RunPlace older = taken(request("", (root_ / "runs/0001").string()));
  EXPECT_EQ(fs::weakly_canonical(older.directory), fs::weakly_canonical(first.directory));
  EXPECT_EQ(older.run_id, first.run_id);
}

TEST_F(RunFolderTest, WhereNoRunHasBegunNothingStays) {
  RunFolderRequest apart = request("a");
  apart.checkpoints = (root_ / "c").string();
  remove_unused(taken(apart));
  EXPECT_TRUE(fs::is_empty(root_ / "a") && fs::is_empty(root_ / "c"));  // chosen names may have
                                                                        // been made by anyone
  leave_run(taken(request("")), {1});
  remove_unused(taken(request("")));
  EXPECT_TRUE(fs::exists(root_ / "runs/0001/checkpoints/step_0000001"));
  EXPECT_FALSE(fs::exists(root_ / "runs/0002"));
  EXPECT_EQ(fs::path(taken(request("", "latest")).directory), root_ / "runs/0001");
  std::ofstream(fs::path(taken(request("b")).directory) / "own") << "x";
  remove_unused(taken(request("b")));
  EXPECT_TRUE(fs::exists(root_ / "b/own"));
}

TEST_F(RunFolderTest, AUsedFolderIsRefusedAndNothingChanges) {
  leave_run(taken(request("a")), {1, 2});
  EXPECT_TRUE(throws<Error>({"holds a run", "--resume", "--fresh"}, [&] { taken(request("a")); }));
  EXPECT_EQ(list_checkpoints(root_ / "a/checkpoints").size(), 2u);

  fs::remove(root_ / "a/record.jsonl");  // checkpoints alone also count as a run
  EXPECT_NE(refusal(request("a")), "");
  EXPECT_EQ(refusal(request("elsewhere")), "");
}

TEST_F(RunFolderTest, ARecordWithoutAByteIsNoRun) {
  const RunPlace place = taken(request("a"));  // as after a full disk
  std::ofstream(fs::path(place.directory) / trace::kRecordFile).close();
  EXPECT_EQ(refusal(request("a")), "");
}

// This happens where the disk with the checkpoints is not mounted: a new run would take the
// place of the trained one.
TEST_F(RunFolderTest, ARunWhoseCheckpointsAreGoneDoesNotBeginAnew) {
  const RunPlace first = taken(request("a"));
  leave_run(first, {3});
  const std::string record = (fs::path(first.directory) / trace::kRecordFile).string();
  trace::RunRecord(record, trace::RunRecord::Open::resume)
      .append(trace::CheckpointRecord{.step = 3, .path = "step_0000003"});
  EXPECT_EQ(refusal(request("a", "latest")), "");
  fs::rename(first.checkpoints, root_ / "elsewhere");
  EXPECT_TRUE(throws<Error>({"a checkpoint of step 3", "holds none", "checkpoint.dir", "--fresh"},
                            [&] { taken(request("a", "latest")); }));
  RunFolderRequest moved = request("a", "latest");
  moved.checkpoints = (root_ / "elsewhere").string();
  EXPECT_EQ(refusal(moved), "");
  EXPECT_EQ(refusal(fresh("a")), "");
}

// The link leads to another disk: the new run belongs there, too.
TEST_F(RunFolderTest, FreshKeepsALinkToAFolder) {
  fs::create_directory(root_ / "scratch");
  fs::create_directory_symlink("scratch", root_ / "a");
  leave_run(taken(request("a")), {1});
  EXPECT_EQ(refusal(fresh("a")), "");
  EXPECT_TRUE(fs::is_symlink(root_ / "a"));
  EXPECT_TRUE(fs::exists(root_ / "scratch.1/checkpoints/step_0000001"));
  EXPECT_TRUE(fs::exists(root_ / "scratch/run.lock"));
}

TEST_F(RunFolderTest, FreshSetsTheOldRunAside) {
  leave_run(taken(request("a")), {1});
  const RunPlace second = taken(fresh("a"));
  EXPECT_FALSE(second.goes_on);
  EXPECT_TRUE(fs::exists(root_ / "a.1/checkpoints/step_0000001"));
  EXPECT_FALSE(holds_run(second.directory, second.checkpoints));
  leave_run(second, {2});
  taken(fresh("a"));
  EXPECT_TRUE(fs::exists(root_ / "a.1/checkpoints/step_0000001"));
  EXPECT_TRUE(fs::exists(root_ / "a.2/checkpoints/step_0000002"));
  RunFolderRequest both = fresh("a");
  both.resume = "latest";
  EXPECT_NE(refusal(both), "");
}

TEST_F(RunFolderTest, OneRunAtATime) {
  std::vector<FolderLock> locks;
  const RunPlace first = take_run_folder(request("a"), locks);
  for (const auto& second : {request("a"), request("a", "latest"), fresh("a")})
    EXPECT_TRUE(has_text(refusal(second), fmt::format("process {} on ", getpid())));
  locks.clear();
  EXPECT_EQ(refusal(request("a")), "");

  // Two runs in one folder would mix their checkpoints as well.
  RunFolderRequest shared = request("b");
  shared.checkpoints = (root_ / "all").string();
  take_run_folder(shared, locks);
  shared.output_dir = (root_ / "c").string();
  EXPECT_NE(refusal(shared), "");
}

TEST_F(RunFolderTest, CheckpointsMayLieInTheRunsFolder) {
  for (const char* below : {"", "/", "/kept/all"}) {
    const std::string name = fmt::format("run{}", std::string_view(below).size());
    RunFolderRequest r = request(name);
    r.checkpoints = r.output_dir + below;
    std::vector<FolderLock> locks;
    const RunPlace first = take_run_folder(r, locks);
    EXPECT_NE(refusal(r), "") << "it is locked";
    locks.clear();
    leave_run(first, {1});
    r.resume = "latest";
    EXPECT_EQ(fs::path(taken(r).resume).filename(), "step_0000001");
    r.resume.clear();
    r.fresh = true;
    EXPECT_FALSE(taken(r).goes_on);
    EXPECT_EQ(list_checkpoints(root_ / (name + ".1" + below)).size(), 1u) << below;
    EXPECT_FALSE(fs::exists(root_ / (name + ".2")));
    EXPECT_TRUE(list_checkpoints(r.checkpoints).empty());
  }
}

TEST_F(RunFolderTest, ARunDoesNotLieInItsFolderOfCheckpoints) {
  for (const char* name : {"runs/a", ""})
    for (const char* end : {"", "/"}) {
      RunFolderRequest r = request(name);
      r.checkpoints = (root_ / "runs").string() + end;
      EXPECT_TRUE(has_text(refusal(r), "lies in that of its checkpoints")) << name;
      EXPECT_THROW(preview_run_folder(r), ConfigError) << name;
      EXPECT_FALSE(fs::exists(root_ / "runs")) << name;
    }
  // Setting the folder aside would move the other runs with it.
  leave_run(taken(request("runs/a")), {1});
  leave_run(taken(request("runs/b")), {1});
  RunFolderRequest again = fresh("runs/a");
  again.checkpoints = (root_ / "runs").string();
  EXPECT_NE(refusal(again), "");
  EXPECT_TRUE(fs::exists(root_ / "runs/b/checkpoints/step_0000001"));
}

TEST_F(RunFolderTest, AMistypedResumeLeavesNothing) {
  EXPECT_TRUE(has_text(refusal(request("", (root_ / "typo").string())), "no valid checkpoint"));
  EXPECT_FALSE(fs::exists(root_ / "runs"));
}

TEST_F(RunFolderTest, ACheckpointThatAKillLeftSetAsideIsResumed) {
  leave_run(taken(request("a")), {1});
  fs::rename(root_ / "a/checkpoints/step_0000001",
             root_ / "a/checkpoints/.step_0000001.replaced-1");
  EXPECT_EQ(fs::path(taken(request("a", "latest")).resume).filename(), "step_0000001");
}

TEST_F(RunFolderTest, DamagedCheckpointsAreNoReasonToStartAnew) {
  const RunPlace place = taken(request("a"));
  leave_run(place, {});
  EXPECT_EQ(taken(request("a", "latest")).resume, "") << "a run that has not written any";
  leave_run(place, {1, 2});
  damage(root_ / "a/checkpoints/step_0000002");
  EXPECT_EQ(fs::path(taken(request("a", "latest")).resume).filename(), "step_0000001");
  damage(root_ / "a/checkpoints/step_0000001");
  EXPECT_TRUE(throws<Error>({"step_0000001", "step_0000002", "--fresh"},
                            [&] { taken(request("a", "latest")); }));
  EXPECT_EQ(list_checkpoints(root_ / "a/checkpoints").size(), 2u);
}

TEST_F(RunFolderTest, ARunGoesOnInItsOwnFolderOrInAnUnusedOne) {
  const RunPlace a = taken(request("a")), b = taken(request("b"));
  leave_run(a, {1, 2});
  leave_run(b, {3});
  const std::string from = a.checkpoints + "/step_0000001";
  EXPECT_EQ(taken(request("a", from)).resume, from);
  EXPECT_TRUE(has_text(refusal(request("b", from)), "of another run"));
  const RunPlace branch = taken(request("c", from));
  EXPECT_EQ(branch.resume, from);
  EXPECT_FALSE(branch.goes_on);
  EXPECT_NE(branch.run_id, a.run_id);
  EXPECT_TRUE(has_text(refusal(request("d", (root_ / "nowhere").string())), "no valid checkpoint"));
}

TEST_F(RunFolderTest, LeftoversOfKilledRunsGoUnderTheLock) {
  const RunPlace place = taken(request("a"));
  leave_run(place, {1});
  const fs::path torso = root_ / "a/checkpoints/.step_0000002.partial-1";
  fs::create_directories(torso);
  std::vector<FolderLock> locks;
  locks.push_back(lock_run(root_ / "a", 0));
  EXPECT_NE(refusal(request("a", "latest")), "");
  EXPECT_TRUE(fs::exists(torso)) << "somebody may be writing it";
  locks.clear();
  taken(request("a", "latest"));
  EXPECT_FALSE(fs::exists(torso));
}

TEST_F(RunFolderTest, APreviewRefusesAsTheRunWouldAndLeavesNothing) {
  EXPECT_EQ(fs::path(preview_run_folder(request("")).directory), root_ / "runs/0001");
  EXPECT_FALSE(fs::exists(root_ / "runs"));
  leave_run(taken(request("a")), {3});
  EXPECT_THROW(preview_run_folder(request("a")), ConfigError);
  EXPECT_FALSE(preview_run_folder(fresh("a")).goes_on);
  EXPECT_EQ(fs::path(preview_run_folder(request("a", "latest")).resume).filename(), "step_0000003");
  EXPECT_FALSE(fs::exists(root_ / "a.1"));
}

TEST_F(RunFolderTest, AFolderWhoseNameIsNotUtf8IsTheSameOnAllRanks) {
  const fs::path named = root_ / "caf\xe9";
  std::mutex mutex;
  comm::run_ranks(2, [&](comm::Communicator& communicator) {
    const RunFolder folder(communicator, request(named.filename().string()));
    const std::lock_guard lock(mutex);
    EXPECT_EQ(folder.place().directory, named.string());
    EXPECT_EQ(folder.place().checkpoints, (named / "checkpoints").string());
    EXPECT_FALSE(folder.place().run_id.empty());
    EXPECT_FALSE(folder.place().goes_on);
  });
  EXPECT_TRUE(fs::is_empty(named)) << "no run has begun there";
}

TEST_F(RunFolderTest, AllRanksGetThePlaceThatRankZeroFound) {
  leave_run(taken(request("a")), {4});
  std::mutex mutex;
  std::vector<RunPlace> places;
  comm::run_ranks(3, [&](comm::Communicator& communicator) {
    // Another rank may ask for something else: its request does not count.
    const RunFolder folder(communicator,
                           communicator.rank() == 0 ? request("a", "latest") : request("other"));
    const std::lock_guard lock(mutex);
    places.push_back(folder.place());
  });
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0], places[1]);
  EXPECT_EQ(places[0], places[2]);
  EXPECT_EQ(fs::path(places[0].resume).filename(), "step_0000004");
  EXPECT_FALSE(fs::exists(root_ / "other"));
}

TEST_F(RunFolderTest, AConfigurationBesideARecordIsOfTheRunThatLiesThere) {
  const RunPlace place = taken(request("a"));
  const fs::path a = place.directory;
  EXPECT_EQ(folder_of_config(a / kConfigFile), "") << "no run has begun there";
  leave_run(place, {});
  EXPECT_EQ(folder_of_config(a / kConfigFile), a);
  EXPECT_EQ(folder_of_config(a / "other.toml"), "");
  // Without a name of its own, a folder could not be set aside.
  EXPECT_EQ(folder_of_config(a / "." / kConfigFile), fs::canonical(a));
  fs::rename(a, root_ / "b");
  EXPECT_EQ(folder_of_config(root_ / "b" / kConfigFile), root_ / "b");
}

TEST_F(RunFolderTest, CheckpointsWithinARunsFolderGoWithIt) {
  RunFolderRequest r = request("a");
  r.checkpoints = (root_ / "a/kept").string();
  const RunPlace place = taken(r);
  leave_run(place, {3});
  EXPECT_EQ(own_checkpoints("", place), "");
  EXPECT_EQ(own_checkpoints((root_ / "kept").string(), place), (root_ / "kept").string());
  const std::string own = own_checkpoints(r.checkpoints, place);
  EXPECT_EQ(own, "{output_dir}/kept");
  EXPECT_EQ(own_checkpoints(own, place), own);
  fs::copy(root_ / "a", root_ / "b", fs::copy_options::recursive);
  r = request("b", "latest");
  r.checkpoints = own;
  EXPECT_EQ(fs::path(taken(r).resume), root_ / "b/kept/step_0000003");
}

TEST_F(RunFolderTest, ARemovedWorkingFolderIsNamed) {
  const fs::path before = fs::current_path();
  fs::create_directories(root_ / "gone");
  fs::current_path(root_ / "gone");
  fs::remove(root_ / "gone");
  RunFolderRequest r = request("");
  r.base = "runs";
  const std::string text = refusal(r);
  fs::current_path(before);
  EXPECT_EQ(text, "the working folder no longer exists: change to one that does");
}

TEST_F(RunFolderTest, CheckpointsElsewhereThatAreAnotherRunsByNowAreRefused) {
  RunFolderRequest r = fresh("a");
  r.checkpoints = (root_ / "kept").string();
  leave_run(taken(r), {3});
  const RunPlace second = taken(r);
  ASSERT_TRUE(fs::exists(root_ / "a.1"));
  leave_run(second, {5});
  r = request("a.1", "latest");
  r.checkpoints = second.checkpoints;
  EXPECT_TRUE(has_text(refusal(r), "are of run " + second.run_id));
  r.output_dir = second.directory;
  EXPECT_EQ(refusal(r), "");
}

}  // namespace
}  // namespace tutti::keep
