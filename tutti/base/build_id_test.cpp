#include "tutti/base/build_id.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

namespace tutti {
namespace {

// Returns the build id that readelf, an independent program, reports for the running program.
std::string by_readelf() {
  std::string text;
  FILE* pipe = popen("readelf -n /proc/$PPID/exe", "r");
  std::array<char, 256> line;
  while (pipe && fgets(line.data(), line.size(), pipe)) text += line.data();
  if (pipe) pclose(pipe);
  const std::string before = "Build ID: ";
  const size_t at = text.find(before);
  if (at == std::string::npos) return {};
  const size_t begin = at + before.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(BuildId, IsTheLinkersIdentityOfTheProgramThatRuns) {
  ASSERT_FALSE(build_id().empty());
  EXPECT_EQ(build_id(), by_readelf());
}

}  // namespace
}  // namespace tutti
