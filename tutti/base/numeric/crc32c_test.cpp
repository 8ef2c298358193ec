#include "tutti/base/numeric/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

struct Way {
  const char* name;
  uint32_t (*crc)(const void* data, size_t bytes, uint32_t crc);
};

class Crc32c : public ::testing::TestWithParam<Way> {
 protected:
  static uint32_t crc(const void* data, size_t bytes, uint32_t before = 0) {
    return GetParam().crc(data, bytes, before);
  }
};

TEST_P(Crc32c, PublishedValues) {
  EXPECT_EQ(crc("123456789", 9), 0xE3069283u);
  const std::string zeros(32, '\0'), ones(32, '\xFF');  // RFC 3720, appendix B.4
  EXPECT_EQ(crc(zeros.data(), 32), 0x8A9136AAu);
  EXPECT_EQ(crc(ones.data(), 32), 0x62A8AB43u);
  EXPECT_EQ(crc("6789", 4, crc("12345", 5)), 0xE3069283u);
}

// Whole words take another path than the bytes behind them.
TEST_P(Crc32c, IsThatOfTheBytesOneByOne) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(i * 37));
  uint32_t one_by_one = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_EQ(crc(bytes.data(), n), one_by_one) << n;
    one_by_one = crc(&bytes[n], 1, one_by_one);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Crc32c,
                         ::testing::Values(Way{"Default", crc32c}, Way{"Tables", crc32c_by_tables}),
                         [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace tutti
