#include "tutti/cli/job/start_obstacles.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "tutti/base/refused_calls.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

TEST(StartObstacles, NamesAFolderThatMpiCannotUse) {
  const ScratchDirectory scratch;
  EXPECT_EQ(obstacle_of_folder(scratch.path()), "");
  EXPECT_TRUE(fs::is_empty(scratch.path()));
  const auto says = [&](const char* what) {
    return [&, what] {
      const std::string text = obstacle_of_folder(scratch.path());
      return text.find(scratch.path()) != std::string::npos && text.find(what) != std::string::npos;
    };
  };
  EXPECT_EQ(with_refused({SYS_mkdir, SYS_mkdirat}, EROFS, says("nothing can be written there")), 0);
  EXPECT_EQ(with_refused({SYS_fallocate}, ENOSPC, says("there is no room")), 0);
  EXPECT_EQ(with_refused({}, 0,
                         [] {
                           const rlimit few{20, 20};
                           setrlimit(RLIMIT_NOFILE, &few);
                           return start_obstacles().find("no more than 20 files open") !=
                                  std::string::npos;
                         }),
            0);
}

}  // namespace
}  // namespace tutti::cli
