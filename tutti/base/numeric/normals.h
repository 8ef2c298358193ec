#pragma once
// Many normal numbers at once: those of Rng::normal, bits included, several at a time.

#include <cstdint>
#include <span>

#include "tutti/base/numeric/rng.h"

namespace tutti {

/// The stream of Rng(seed, purpose, stream).
struct NormalStream {
  uint64_t seed = 0;
  Purpose purpose = Purpose::test;
  uint64_t stream = 0;
};

/// values[i] is what call number first + i of Rng::normal gives, if nothing else is drawn from the
/// stream. The same with any vectors, and on every processor as far as libm's log and cos are the
/// same: see normals.cpp.
void fill_normals(const NormalStream& stream, uint64_t first, std::span<float> values);

}  // namespace tutti
