#include "tutti/cli/job/launcher_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tutti/base/process_state.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

TEST(LauncherFiles, AreFoundByWhatARankWasToldAndOnlyThoseOfTheJobGo) {
  const ScratchDirectory scratch;
  const fs::path session = scratch.path() / "ompi.vm.0/pid.28867", shm = scratch.path() / "shm";
  const auto environment = [](const fs::path& folder, const std::string& job) {
    const std::string text = "A=1;PMIX_NAMESPACE=" + job + ";PMIX_SERVER_TMPDIR=" + folder.string();
    std::string entries = text + ';';
    for (char& c : entries)
      if (c == ';') c = '\0';
    return entries;
  };
  const auto files = parse_launcher_files(environment(session, "473759745"), 28867);
  ASSERT_TRUE(files);
  EXPECT_EQ(files->session, session);
  EXPECT_EQ(files->job, "1c3d0001");
  EXPECT_FALSE(parse_launcher_files(environment(session, "473759745"), 28868));
  EXPECT_FALSE(parse_launcher_files(environment(session, "prterun-vm-28867@1"), 28867));
  const fs::path newer = scratch.path() / fmt::format("prterun.vm.28867.{}", geteuid());
  EXPECT_EQ(parse_launcher_files(environment(newer, "prterun-vm-28867@1"), 28867).value().session,
            newer);
  EXPECT_FALSE(parse_launcher_files(environment(newer, "prterun-vm-28867@1"), 2886));
  EXPECT_FALSE(parse_launcher_files(environment(scratch.path() / "x/pid.28867", "1"), 28867));
  EXPECT_FALSE(parse_launcher_files("", 28867));

  for (const fs::path& folder : {session / "0/0", session.parent_path() / "pid.1", shm})
    fs::create_directories(folder);
  fs::create_directory_symlink(shm, session / "0/link");
  for (const char* name : {"vader_segment.vm.0.1c3d0001.0", "vader_segment.vm.0.1c3d0001.1",
                           "vader_segment.vm.1c3d0001.0", "vader_segment.vm.0.1c3d0002.0",
                           "vader_segment.vm.0.11c3d0001.0", "other.vm.0.1c3d0001.0"})
    std::ofstream(shm / name) << 'x';
  remove_launcher_files(*files, shm);
  EXPECT_FALSE(fs::exists(session));
  EXPECT_TRUE(fs::exists(session.parent_path() / "pid.1"));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(shm))
    left.push_back(entry.path().filename().string());
  std::ranges::sort(left);
  EXPECT_EQ(left,
            (std::vector<std::string>{"other.vm.0.1c3d0001.0", "vader_segment.vm.0.11c3d0001.0",
                                      "vader_segment.vm.0.1c3d0002.0"}));
}

TEST(LauncherFiles, AnOldSessionOfTheSameNumberGoes) {
  const ScratchDirectory scratch;
  const std::string host = host_name();
  const auto session = [&](int process) {
    return scratch.path() /
           fmt::format("prterun.{}.{}.{}", host.substr(0, host.find('.')), process, geteuid());
  };
  for (const int process : {47, 471}) fs::create_directories(session(process) / "0");
  fs::create_directory_symlink(session(471), session(48));
  for (const int process : {46, 47, 48}) remove_old_session(process, scratch.path());
  EXPECT_FALSE(fs::exists(session(47)));
  EXPECT_TRUE(fs::exists(session(471) / "0"));
}

}  // namespace
}  // namespace tutti::cli
