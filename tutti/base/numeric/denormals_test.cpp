#include "tutti/base/numeric/denormals.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace tutti {
namespace {

/// Whether denormal results and operands are zero in this thread.
struct Flushed {
  bool result, operand;
  bool operator==(const Flushed&) const = default;
};
Flushed flushed() {
  const volatile float small = 1e-30f, smaller = 1e-10f,
                       denormal = std::numeric_limits<float>::denorm_min(), large = 1e30f;
  return {small * smaller == 0, denormal * large == 0};
}

TEST(Denormals, AreZeroInAThreadAndInThoseThatItStarts) {
  std::thread([] {
    EXPECT_EQ(flushed(), (Flushed{false, false}));
    const bool can = flush_denormals();
    EXPECT_EQ(flushed(), (Flushed{can, can}));
    std::thread([can] { EXPECT_EQ(flushed(), (Flushed{can, can})); }).join();
    const volatile double small = 1e-200, smaller = 1e-110;
    EXPECT_EQ(small * smaller == 0, can);
  }).join();
  EXPECT_EQ(flushed(), (Flushed{false, false})) << "another thread's";
}

}  // namespace
}  // namespace tutti
