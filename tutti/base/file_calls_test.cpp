#include "tutti/base/file_calls.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

TEST(FileCalls, WhatCannotBeLookedAtIsNotCalledAbsent) {
  const ScratchDirectory scratch;
  std::filesystem::create_symlink("round", scratch.path() / "round");
  std::filesystem::create_symlink("gone", scratch.path() / "leads_nowhere");
  EXPECT_TRUE(is_there(scratch.path()));
  for (const char* absent : {"none", "none/below", "leads_nowhere"})
    EXPECT_FALSE(is_there(scratch.path() / absent)) << absent;
  for (const std::string& unknown : {std::string("round"), std::string(300, 'x')}) try {
      is_there(scratch.path() / unknown);
      ADD_FAILURE() << unknown;
    } catch (const IoError& error) {
      EXPECT_TRUE(has_text(error.what(), unknown + ": cannot be looked at: "));
    }
  EXPECT_EQ(with_refused({SYS_stat, SYS_newfstatat}, EACCES,
                         [&] {
                           try {
                             return is_there(scratch.path());
                           } catch (const IoError& error) {
                             return std::string(error.what()).find("Permission denied") !=
                                    std::string::npos;
                           }
                         }),
            0);
}

TEST(FileCalls, AnEndingIsOfOneCallAlone) { EXPECT_NE(unique_ending(), unique_ending()); }

TEST(FileCalls, WhatIsNotOfferedIsDoneWithout) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(sync_to_disk(ends[1])) << "a pipe has no disk";
  EXPECT_FALSE(sync_to_disk(-1));
  EXPECT_EQ(errno, EBADF);
  for (const int error : {EPERM, ENOSYS, EOPNOTSUPP, EINVAL, 524})
    EXPECT_EQ(with_refused({SYS_fsync}, error, [&] { return sync_to_disk(0); }), 0) << error;
  for (const int error : {EIO, ENOSPC, EDQUOT, ESTALE})
    EXPECT_EQ(with_refused({SYS_fsync}, error, [&] { return !sync_to_disk(0); }), 0) << error;
}

/// Whether another process would find the file.
bool is_found(const NamelessFile& file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file.descriptor);
  return file.descriptor >= 0 && ftruncate(file.descriptor, 100) == 0 &&
         std::filesystem::read_symlink(link).filename().string().find("tutti-try") !=
             std::string::npos &&
         std::filesystem::file_size(link) == 100;
}

TEST(FileCalls, ANamelessFileNeedsNoMemfd) {
  const NamelessFile memory = make_nameless_file("tutti-try");
  EXPECT_TRUE(memory.sealable && is_found(memory));
  close(memory.descriptor);
  EXPECT_EQ(with_refused({SYS_memfd_create}, EPERM,
                         [] {
                           const NamelessFile file = make_nameless_file("tutti-try");
                           return !file.sealable && is_found(file);
                         }),
            0);
  EXPECT_EQ(with_refused(
                {SYS_memfd_create, SYS_openat}, ENOSYS,
                [] { return make_nameless_file("tutti-try").descriptor == -1 && errno == ENOSYS; }),
            0);
}

}  // namespace
}  // namespace tutti
