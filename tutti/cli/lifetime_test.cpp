#include "tutti/cli/lifetime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

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

}  // namespace
}  // namespace tutti
