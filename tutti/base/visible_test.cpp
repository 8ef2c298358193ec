#include "tutti/base/visible.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

namespace tutti {
namespace {

TEST(Visible, ControlBytesAreShown) {
  EXPECT_EQ(visible("plain, \t tab\nand line"), "plain, \t tab\nand line");
  EXPECT_EQ(visible("c\x1b[2J\x1b]0;PWNED\x07"), "c\\x1b[2J\\x1b]0;PWNED\\x07");
  EXPECT_EQ(visible("over\rwritten\b\x7f"), "over\\x0dwritten\\x08\\x7f");
  EXPECT_EQ(visible(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m")
      << "C1";
  EXPECT_EQ(visible("\x9b"
                    "31m"),
            "\\x9b31m")
      << "C1 of an 8-bit terminal, no UTF-8";
  EXPECT_EQ(visible("\xe2\x80\xaegnp.exe"), "\\xe2\\x80\\xaegnp.exe") << "right to left";
  EXPECT_EQ(visible("é, 日本, 😀, ×"), "é, 日本, 😀, ×");
  EXPECT_EQ(visible("\xc0\x9b \xed\xa0\x80 \xf4\x90\x80\x80"),
            "\\xc0\\x9b \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80")
      << "overlong, a surrogate, beyond the last character";
  EXPECT_EQ(visible("cut \xe2\x80"), "cut \\xe2\\x80");
}

TEST(Visible, PiecesThatEndWithinACharacter) {
  VisiblePieces pieces;
  EXPECT_EQ(pieces.take("\x1b[2J \xe2"), "\\x1b[2J ");
  EXPECT_EQ(pieces.take("\x80"), "");
  EXPECT_EQ(pieces.take("\x94 \xe2\x80"), "\xe2\x80\x94 ");
  EXPECT_EQ(pieces.rest(), "\\xe2\\x80");
  EXPECT_EQ(pieces.rest(), "");
}

TEST(Visible, InStringsOfJson) {
  EXPECT_EQ(with_unicode_escapes("é \x7f \xc2\x9b \xe2\x80\xae \xff"),
            "é \\u007f \\u009b \\u202e \xff");
}

/// Returns the bytes that a process writes to both streams after making them visible, and its exit
/// status; -1 after a signal.
template <class Write>
std::pair<std::string, int> shown(const Write& write) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    make_output_visible();
    write();
  }
  close(ends[1]);
  std::string text;
  std::array<char, 256> piece{};
  for (ssize_t n; (n = read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

// This holds for all ways to write to the streams, in any pieces.
TEST(Visible, TheStandardStreamsAreMadeSo) {
  const auto [text, status] = shown([] {
    std::fputs("a\x1b[2J \xe2", stdout);
    std::fflush(stdout);
    std::fputs("\x80", stdout);
    std::fflush(stdout);
    std::fputs("\x94\n", stdout);
    std::fprintf(stderr, "%s", "b\x1b[2J\n");
    std::fputs("\x1b[2K", plain_errors());
    std::fflush(stdout);
    keep_bytes_of_output();
    std::fputs("\x01\n", stdout);
    std::fflush(stdout);
    close(STDOUT_FILENO);
    std::fputs("nobody takes this\x1b", stdout);
    const bool failed = std::fflush(stdout) != 0 && std::ferror(stdout) != 0 && errno == EBADF;
    _exit(failed ? 7 : 1);
  });
  EXPECT_EQ(status, 7);
  EXPECT_EQ(text, "a\\x1b[2J b\\x1b[2J\n\x1b[2K\xe2\x80\x94\n\x01\n");
}

TEST(Visible, ACharacterThatTheEndCutsOffIsShown) {
  const auto [text, status] = shown([] {
    std::fputs("end \xe2\x80", stdout);
    std::exit(0);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text, "end \\xe2\\x80");
}

// A paused terminal, a pager or a stalled collector takes nothing. A process that is asked to end
// must not wait for it, even if it waits already, or if both streams have more output.
TEST(Visible, AProcessThatIsAskedToEndDoesNotWaitForItsReader) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const std::string much(1 << 20, 'x');
  const pid_t child = fork();
  if (child == 0) {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(ends[1], stream);
    make_output_visible();
    std::signal(SIGTERM, [](int) { hurry_output(); });
    for (std::FILE* const stream : {stdout, stderr, plain_errors()})
      std::fwrite(much.data(), 1, much.size(), stream);
    std::exit(7);
  }
  const int room = fcntl(ends[0], F_GETPIPE_SZ);
  for (int held = 0; held < room; std::this_thread::yield())  // then the child waits
    ASSERT_EQ(ioctl(ends[0], FIONREAD, &held), 0);
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  for (const int end : ends) close(end);
}

TEST(Visible, AStreamThatIsReadDoesNotMakeAnotherWaitAgain) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    hurry_output();
    const std::string page(4096, 'x');
    for (int i = 0; i < 1000; ++i) {  // two seconds each would be half an hour
      write_output(STDOUT_FILENO, page);
      write_output(STDERR_FILENO, "x");
    }
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace tutti
