#include "tutti/base/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tutti {
namespace {

TEST(StreamCopy, CopiesAllBytesFromAndToAnyAddress) {
  std::vector<uint8_t> from(1000);
  std::iota(from.begin(), from.end(), uint8_t{1});
  for (const size_t shift : {0, 1, 16, 33})
    for (const size_t bytes : {0, 1, 63, 64, 65, 300, 900}) {
      std::vector<uint8_t> to(1000), expected(1000);
      std::copy_n(from.begin() + 3, bytes, expected.begin() + static_cast<std::ptrdiff_t>(shift));
      stream_copy(reinterpret_cast<std::byte*>(to.data() + shift),
                  reinterpret_cast<const std::byte*>(from.data() + 3), bytes);
      EXPECT_EQ(to, expected) << bytes << " bytes to " << shift;
    }
}

}  // namespace
}  // namespace tutti
