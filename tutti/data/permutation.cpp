#include "tutti/data/permutation.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"

namespace tutti::data {

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

int64_t Permutation::operator()(int64_t sample) const {
  auto x = static_cast<uint64_t>(sample);
  for (const Round& round : rounds_) {
    const uint64_t partner = round.sum - x + (x > round.sum ? size_ : 0);
    // Two multiplications, so that the highest bit depends on every bit of the pair and the salt.
    uint64_t hash = (std::max(x, partner) ^ round.salt) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93u;
    x ^=
        (x ^ partner) & (0 - (hash >> 63));  // no branch, which would be mispredicted half the time
  }
  return static_cast<int64_t>(x);
}

}  // namespace tutti::data
