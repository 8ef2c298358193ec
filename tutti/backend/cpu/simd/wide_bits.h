#pragma once
// Sixteen blocks of random numbers at once.

#include <algorithm>
#include <cstdint>

#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/ops/dropout.h"

namespace tutti::backend {

/// One Philox block in every lane: sixteen consecutive blocks (sample_bits).
struct WideBits {
  uint32_t word[4][simd::kLanes];

  WideBits(Purpose purpose, const ops::SampleKey& key, uint32_t first) {
    uint32_t k0 = static_cast<uint32_t>(key.seed) ^ (static_cast<uint32_t>(purpose) * 0x85EBCA6Bu),
             k1 = static_cast<uint32_t>(key.seed >> 32) ^ key.salt;
    for (uint32_t i = 0; i < simd::kLanes; ++i) word[0][i] = first + i;
    std::fill_n(word[1], simd::kLanes, static_cast<uint32_t>(key.sample));
    std::fill_n(word[2], simd::kLanes, static_cast<uint32_t>(key.step));
    std::fill_n(word[3], simd::kLanes, static_cast<uint32_t>(key.replica));
#pragma GCC unroll 1
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
      for (int i = 0; i < simd::kLanes; ++i) {
        const uint64_t a = uint64_t{word[0][i]} * 0xD2511F53u,
                       b = uint64_t{word[2][i]} * 0xCD9E8D57u;
        word[0][i] = static_cast<uint32_t>(b >> 32) ^ word[1][i] ^ k0;
        word[1][i] = static_cast<uint32_t>(b);
        word[2][i] = static_cast<uint32_t>(a >> 32) ^ word[3][i] ^ k1;
        word[3][i] = static_cast<uint32_t>(a);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};

}  // namespace tutti::backend
