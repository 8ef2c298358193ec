#include "tutti/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  const std::string zeros(32, '\0'), ones(32, '\xFF');  // RFC 3720, appendix B.4
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc32c("6789", 4, crc32c("12345", 5)), 0xE3069283u);
}

// Whole words go by another way than the bytes behind them.
TEST(Crc32c, IsThatOfTheBytesOneByOne) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(i * 37));
  uint32_t one_by_one = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(crc32c(bytes.data(), n), one_by_one) << n;
    one_by_one = crc32c(&bytes[n], 1, one_by_one);
  }
}

}  // namespace
}  // namespace tutti
