#include "tutti/data/pipeline/permutation.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::data {
namespace {

/// Applies one round: returns x or its partner. It has no branches, which would be mispredicted
/// half the time.
uint64_t swapped_or_not(uint64_t x, uint64_t sum, uint64_t salt, uint64_t size) {
  const uint64_t partner = sum - x + (x > sum ? size : 0);
  // Two multiplications, so that the highest bit depends on every bit of the pair and the salt.
  uint64_t hash = (std::max(x, partner) ^ salt) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93u;
  return x ^ ((x ^ partner) & (0 - (hash >> 63)));
}

}  // namespace

Permutation::Permutation(uint64_t seed, int64_t stream, int64_t size)
    : size_(static_cast<uint64_t>(size)) {
  CHECK(size >= 0 && size < int64_t{1} << 62, "{} samples", size);
  Rng rng(seed, Purpose::shuffle, static_cast<uint64_t>(stream));
  for (Round& round : rounds_) {
    // The remainder of 64 bits favours small numbers by size / 2^64 at most.
    const uint64_t draw = rng.next_u64();
    round.sum = size_ > 0 ? draw % size_ : 0;
    round.salt = rng.next_u64();
  }
}

void Permutation::run(int64_t first, std::span<int64_t> out) const {
  // Several numbers at a time, since each round of a number waits for its previous round.
  constexpr size_t kTogether = 16;
  std::array<uint64_t, kTogether> x;
  for (size_t done = 0; done < out.size(); done += kTogether) {
    for (size_t i = 0; i < kTogether; ++i) x[i] = static_cast<uint64_t>(first) + done + i;
    // Entries past the last are below 2^63; their results are not used.
    for (const Round& round : rounds_)
      for (uint64_t& each : x) each = swapped_or_not(each, round.sum, round.salt, size_);
    for (size_t i = 0; i < kTogether && done + i < out.size(); ++i)
      out[done + i] = static_cast<int64_t>(x[i]);
  }
}

int64_t Permutation::operator()(int64_t sample) const {
  auto x = static_cast<uint64_t>(sample);
  for (const Round& round : rounds_) x = swapped_or_not(x, round.sum, round.salt, size_);
  return static_cast<int64_t>(x);
}

}  // namespace tutti::data
