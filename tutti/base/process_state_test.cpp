#include "tutti/base/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti {
namespace {

TEST(ProcessState, TheNameMayHoldAnything) {
  const auto process = parse_process_state(
      "4711 (a) T 1 (b) R 4700 4711 4700 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 123456789012 "
      "2990080 231");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->state, 'R');
  EXPECT_EQ(process->parent, 4700);
  EXPECT_EQ(process->began, 123456789012u);
  EXPECT_FALSE(parse_process_state(""));
  EXPECT_FALSE(parse_process_state("4711 (sh) R 4700"));
}

TEST(ProcessState, OfAStoppedAnEndedAndAnAbsentProcess) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  const auto stopped = process_state(child);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->stopped() && stopped->runs());
  EXPECT_EQ(stopped->parent, getpid());
  EXPECT_GE(stopped->began, process_state(getpid())->began);
  kill(child, SIGKILL);
  while (process_state(child)->runs()) usleep(1000);
  waitpid(child, &status, 0);
  EXPECT_FALSE(process_state(child));
}

}  // namespace
}  // namespace tutti
