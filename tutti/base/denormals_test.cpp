#include "tutti/base/denormals.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace tutti {
namespace {

/// Whether results and operands that are denormals are zero in this thread.
struct Flushed {
  bool result, operand;
};
Flushed flushed() {
  const volatile float small = 1e-30f, smaller = 1e-10f,
                       denormal = std::numeric_limits<float>::denorm_min(), large = 1e30f;
  return {small * smaller == 0, denormal * large == 0};
}

TEST(Denormals, AreZeroInAThreadAndInThoseThatItStarts) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  GTEST_SKIP() << "no way to ask for that here";
#endif
  std::thread([] {
    EXPECT_FALSE(flushed().result || flushed().operand);
    flush_denormals();
    EXPECT_TRUE(flushed().result && flushed().operand);
    std::thread([] { EXPECT_TRUE(flushed().result && flushed().operand); }).join();
    const volatile double small = 1e-200, smaller = 1e-110;
    EXPECT_EQ(small * smaller, 0);
  }).join();
  EXPECT_FALSE(flushed().result || flushed().operand) << "another thread's";
}

}  // namespace
}  // namespace tutti
