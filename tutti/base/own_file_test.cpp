#include "tutti/base/own_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/refused_calls.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

TEST(OwnFile, AFolderIsMadeForThisUserAlone) {
  const ScratchDirectory scratch;
  const fs::path folder = fs::path(scratch.path()) / "deep/stage/";
  make_own_folder(folder);
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_EQ(message_of<IoError>("", [&] { make_own_folder(folder); }), "");
  std::ofstream(fs::path(scratch.path()) / "file") << "x";
  EXPECT_TRUE(
      has_text(message_of<IoError>("", [&] { make_own_folder(fs::path(scratch.path()) / "file"); }),
               "is no folder"));
}

TEST(OwnFile, AFolderThatOthersCanWriteToIsRefusedWithARemedyThatHelps) {
  const ScratchDirectory scratch;
  const fs::path folder = fs::path(scratch.path()) / "stage";
  fs::create_directory(folder);
  for (const mode_t mode : {0777, 01777, 0770}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    const std::string message = message_of<IoError>("", [&] { make_own_folder(folder); });
    EXPECT_TRUE(has_text(message, "other users can write to it"));
    const size_t begin = message.find("'chmod go-w ");
    ASSERT_NE(begin, std::string::npos) << message;
    const std::string remedy = message.substr(begin + 1, message.find('\'', begin + 1) - begin - 1);
    ASSERT_EQ(std::system(remedy.c_str()), 0) << remedy;
    EXPECT_EQ(message_of<IoError>("", [&] { make_own_folder(folder); }), "");
  }
}

TEST(OwnFile, ANeighboursFolderAndFileAreRefused) {
  struct stat status {};
  status.st_mode = S_IFDIR | 0755;
  status.st_uid = ::geteuid() + 1;
  EXPECT_TRUE(has_text(why_foreign(status), "belongs to another user"));
  status.st_uid = 0;
  EXPECT_EQ(why_foreign(status), "") << "what root has made is the machine's own";
  if (::geteuid() != 0) return;  // only root can give a file away
  const ScratchDirectory scratch;
  const fs::path folder = fs::path(scratch.path()) / "stage", file = folder / "list";
  fs::create_directory(folder);
  std::ofstream(file) << "planted";
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(has_text(message_of<IoError>("", [&] { make_own_folder(folder); }), "uid 65534"));
  EXPECT_TRUE(
      has_text(message_of<IoError>("", [&] { open_own_file(file, O_RDONLY); }), "uid 65534"));
}

TEST(OwnFile, LinksAreNotFollowedAndPipesAreNotWaitedFor) {
  const ScratchDirectory scratch;
  const fs::path victim = fs::path(scratch.path()) / "victim",
                 link = fs::path(scratch.path()) / "link", pipe = fs::path(scratch.path()) / "pipe";
  std::ofstream(victim) << "mine";
  fs::create_symlink(victim, link);
  EXPECT_TRUE(
      has_text(message_of<IoError>("", [&] { open_own_file(link, O_WRONLY | O_CREAT | O_APPEND); }),
               "symbolic link"));
  EXPECT_EQ(fs::file_size(victim), 4u);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(
      has_text(message_of<IoError>("", [&] { open_own_file(pipe, O_RDONLY); }), "no regular file"));
}

TEST(OwnFile, AFileThatIsRefusedIsNotEmptied) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("list", std::string("planted"));
  if (::geteuid() == 0) {  // only root can give a file away
    ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
    EXPECT_TRUE(has_text(message_of<IoError>("", [&] { open_own_file(file, O_WRONLY | O_TRUNC); }),
                         "uid 65534"));
    EXPECT_EQ(fs::file_size(file), 7u);
    ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  }
  ::close(open_own_file(file, O_WRONLY | O_TRUNC));
  EXPECT_EQ(fs::file_size(file), 0u);
}

TEST(OwnFile, ResultsFollowOwnLinksAndNobodyElses) {
  const ScratchDirectory scratch;
  const fs::path victim = scratch.write("victim", std::string("mine")),
                 link = scratch.path() / "steps.csv", further = scratch.path() / "further";
  fs::create_symlink("victim", further);
  fs::create_symlink("further", link);
  output_stream(link, std::ios::app) << "!";
  EXPECT_EQ(fs::file_size(victim), 5u);
  output_stream(link) << "new";
  EXPECT_EQ(fs::file_size(victim), 3u);
  fs::create_symlink("round", scratch.path() / "round");
  EXPECT_TRUE(has_text(message_of<IoError>("", [&] { output_stream(scratch.path() / "round"); }),
                       "cannot be written"));
  if (::geteuid() != 0) return;  // only root can give a link away
  for (const fs::path& planted : {further, link}) {
    ASSERT_EQ(::lchown(planted.c_str(), 65534, 65534), 0);
    for (const auto mode : {std::ios::openmode(), std::ios::app})
      EXPECT_TRUE(has_text(message_of<IoError>("", [&] { output_stream(link, mode) << "x"; }),
                           "a symbolic link of another user's (uid 65534)"));
    EXPECT_EQ(fs::file_size(victim), 3u);
    ASSERT_EQ(::lchown(planted.c_str(), 0, 0), 0);
  }
}

TEST(OwnFile, ResultsDoNotWaitForPipesButForThoseThatAreOpen) {
  const ScratchDirectory scratch;
  const fs::path pipe = scratch.path() / "evals.csv";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const int flags : {O_WRONLY, O_RDWR})  // the first is refused by open(2), the second is not
    EXPECT_TRUE(has_text(message_of<IoError>("", [&] { open_output(pipe, flags | O_CREAT); }),
                         "it is a pipe (FIFO), no regular file: remove it"));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  output_stream(fmt::format("/dev/fd/{}", ends[1])) << "text";
  std::array<char, 8> text{};
  EXPECT_EQ(::read(ends[0], text.data(), text.size()), 4);
  EXPECT_NE(message_of<IoError>("", [&] { output_stream(fmt::format("/dev/fd/{}", ends[0])); }), "")
      << "it is for reading";
  for (const int end : ends) ::close(end);
  EXPECT_NE(message_of<IoError>("", [&] { output_stream(fmt::format("/dev/fd/{}", ends[1])); }), "")
      << "it is closed";
  const int shells = ::open((scratch.path() / "shells").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(shells, "table", 5), 5);
  output_stream(fmt::format("/proc/self/fd/{}", shells)) << "text";
  ::close(shells);
  EXPECT_EQ(fs::file_size(scratch.path() / "shells"), 9u) << "it goes on where the shell was";
}

// In a container these links may belong to a user that it does not know.
TEST(OwnFile, TheStandardStreamsNeedNoLinkThatLeadsThere) {
  const auto writes = [] {
    for (const char* name : {"/dev/stdout", "/dev/stderr"}) output_stream(name) << "";
    return true;
  };
  EXPECT_EQ(with_refused({SYS_openat, SYS_readlinkat, SYS_newfstatat}, EACCES, writes), 0);
}

TEST(OwnFile, ATerminalsWritersWaitForIt) {
  const int file = open_output("/dev/null", O_WRONLY | O_APPEND);
  EXPECT_EQ(::fcntl(file, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
  ::close(file);
}

TEST(OwnFile, WhyADeviceOrASocketCannotBeOpenedIsSaid) {
  const auto says = [](const fs::path& name, const std::string& why) {
    return message_of<IoError>("", [&] { open_output(name, O_WRONLY); }) ==
           fmt::format("{}: cannot be written: {}", name.string(), why);
  };
  EXPECT_EQ(
      with_refused({SYS_openat}, EACCES, [&] { return says("/dev/null", file_error(EACCES)); }), 0);
  const ScratchDirectory scratch;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = (scratch.path() / "s").string();
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  const int bound = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(says(name, "it is a socket, no regular file: remove it"));
  ::close(bound);
}

// Each open is a message to the server of a network file system.
TEST(OwnFile, AStreamOpensItsFileOnce) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("steps.csv", std::string("step"));
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(watch, file.c_str(), IN_MODIFY | IN_ACCESS | IN_CLOSE), 0);
  const auto closes = [&] {  // two in a row would be reported as one, but a write lies between
    std::array<inotify_event, 64> events{};
    const ssize_t bytes = ::read(watch, events.data(), sizeof events);
    EXPECT_GT(bytes, 0);
    return std::ranges::count_if(events, [](const auto& e) { return (e.mask & IN_CLOSE) != 0; });
  };
  output_stream(file, std::ios::app) << ",loss";
  EXPECT_EQ(closes(), 1);
  std::string text;
  own_input(file) >> text;
  EXPECT_EQ(text, "step,loss");
  EXPECT_EQ(closes(), 1);
  ::close(watch);
}

// NFS with root_squash, or FUSE with a uid, reports another user as the owner of new files.
TEST(OwnFile, AFileThatIsMadeHereIsOwn) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.path() / "list", squashed = scratch.path() / "squashed";
  const int flags = O_RDWR | O_CREAT | O_TRUNC;
  const auto opens = [&] {
    return message_of<IoError>("", [&] { ::close(open_own_file(file, flags)); });
  };
  EXPECT_EQ(with_refused({SYS_fstat, SYS_newfstatat}, EIO,
                         [&] { return opens().empty() && !opens().empty(); }),
            0)
      << "whose it is matters only where it was there";
  EXPECT_EQ(opens(), "");
  if (::geteuid() != 0) return;  // only root can make a file in another's name
  fs::permissions(scratch.path(), fs::perms::all);
  ::setfsuid(65534);
  EXPECT_EQ(message_of<IoError>("", [&] { ::close(open_own_file(squashed, flags)); }), "");
  ::setfsuid(0);
  EXPECT_TRUE(
      has_text(message_of<IoError>("", [&] { open_own_file(squashed, flags); }), "uid 65534"));
}

int leased = -1, given_back = 0;  // a signal's handler can only use globals

// A lease as a file server takes it; an NFS client's delegation is similar.
TEST(OwnFile, ALeaseIsWaitedFor) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("steps.csv", std::string("step"));
  const auto before = std::signal(SIGIO, [](int) {
    ::fcntl(leased, F_SETLEASE, F_UNLCK);
    ++given_back;
  });
  leased = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  int taken = 0;
  for (const bool result : {false, true}) {
    // Not all file systems have leases.
    taken += ::fcntl(leased, F_SETLEASE, F_RDLCK) == 0 ? 1 : 0;
    EXPECT_EQ(
        message_of<IoError>("",
                            [&] {
                              ::close(result ? open_output(file, O_WRONLY | O_CREAT | O_TRUNC)
                                             : open_own_file(file, O_WRONLY | O_CREAT | O_APPEND));
                            }),
        "");
  }
  EXPECT_EQ(given_back, taken);
  ::close(leased);
  std::signal(SIGIO, before);
}

TEST(OwnFile, AFileThatCannotBeLookedAtIsNobodys) {
  const ScratchDirectory scratch;
  const fs::path file = scratch.write("list", std::string("text"));
  EXPECT_EQ(with_refused({SYS_fstat, SYS_newfstatat}, EIO,
                         [&] {
                           const std::string message = message_of<IoError>(
                               "", [&] { open_own_file(file, O_RDWR | O_CREAT); });
                           return message.find("uid") == message.npos &&
                                  message.find(file_error(EIO)) != message.npos;
                         }),
            0);
}

TEST(OwnFile, RandomNamesDiffer) {
  const std::string name = random_name();
  EXPECT_EQ(name.size(), 32u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), name.npos);
  EXPECT_NE(name, random_name());
}

}  // namespace
}  // namespace tutti
