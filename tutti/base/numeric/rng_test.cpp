#include "tutti/base/numeric/rng.h"

#include <gtest/gtest.h>

namespace tutti {

TEST(Philox, KnownAnswers) {  // the published vectors of the Random123 distribution (kat_vectors,
                              // philox4x32 10)
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, StreamsDifferAndRepeat) {
  Rng a(1, Purpose::weights, 7), b(1, Purpose::weights, 7), c(1, Purpose::weights, 8),
      d(1, Purpose::shuffle, 7);
  const uint64_t first = a.next_u64();
  EXPECT_EQ(first, b.next_u64());
  EXPECT_NE(first, c.next_u64());
  EXPECT_NE(first, d.next_u64());
}

TEST(Rng, ManyNumbersMadeAheadAreTheBlocksInTurn) {
  for (const uint64_t skipped : {0u, 3u, 61u, 4001u}) {
    Rng rng(uint64_t{5} << 32 | 9, Purpose::test, uint64_t{6} << 32 | 7);
    rng.skip(skipped);
    for (uint64_t i = skipped; i < skipped + 300; ++i) {
      const auto block = philox({static_cast<uint32_t>(i / 4), 0, 7, 6},
                                philox_key(uint64_t{5} << 32 | 9, Purpose::test));
      ASSERT_EQ(rng.next_u32(), block[i % 4]) << "number " << i;
    }
  }
}

TEST(Rng, Moments) {
  Rng rng(3, Purpose::test, 0);
  double sum = 0, squares = 0, counts = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    counts += rng.poisson(3.0);
  }
  EXPECT_NEAR(sum / n, 0, 0.03);
  EXPECT_NEAR(squares / n, 1, 0.03);
  EXPECT_NEAR(counts / n, 3, 0.05);
}

}  // namespace tutti
