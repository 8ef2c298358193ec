#pragma once
// Draws many normal numbers at once, with the same bits as Rng::normal.

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

/// Sets values[i] to the result of call number first + i of Rng::normal, if nothing else is drawn
/// from the stream. The numbers are the same with any vector width, and on every processor with the
/// same log and cos of libm: see normals.cpp.
void fill_normals(const NormalStream& stream, uint64_t first, std::span<float> values);

}  // namespace tutti
