#include "tutti/cli/lifetime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <string>
#include <thread>

#include "tutti/base/denormals.h"
#include "tutti/cli/program.h"

namespace tutti {
namespace {

TEST(WriteError, WaitsForAStreamThatIsNotToWait) {
  const int before = dup(STDERR_FILENO);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  dup2(ends[1], STDERR_FILENO);
  close(ends[1]);
  std::string text;
  std::thread reader([&] {
    usleep(300000);
    fcntl(ends[0], F_SETFL, 0);
    char bytes[4096];
    for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(count));
  });
  const std::string long_text = std::string(300000, 'x') + "end\n";
  write_error(long_text);
  dup2(before, STDERR_FILENO);
  close(before);
  reader.join();
  close(ends[0]);
  EXPECT_TRUE(text == long_text) << text.size() << " bytes";
}

/// Whether a thread that is started now takes denormals for zero.
bool flushes() {
  bool zero = false;
  std::thread([&] {
    const volatile float denormal = std::numeric_limits<float>::denorm_min(), large = 1e30f;
    zero = denormal * large == 0;
  }).join();
  return zero;
}

TEST(Program, ComputesWithoutDenormals) {
  EXPECT_FALSE(flushes());
  char name[] = "tutti", verb[] = "--version";
  char* arguments[] = {name, verb, nullptr};
  const auto run = [&] {
    std::freopen("/dev/null", "w", stdout);
    if (run_program(2, arguments) != 0) std::_Exit(2);
    const bool now = flushes();
    std::_Exit(now == flush_denormals() ? 0 : 1);  // where a processor can
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tutti
