#include "tutti/generate/cosmology/fourier_grid.h"

#include <cstdlib>
#include <new>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

/// Returns the extents of a cube.
std::array<int64_t, 3> cube(int side) {
  if (side < 2) throw ConfigError(fmt::format("a periodic grid of side {}: at least 2", side));
  return {side, side, side};
}

}  // namespace

GridField::GridField(int side) {
  constexpr size_t kLine = 64;  // alignment for transforms
  const size_t bytes = static_cast<size_t>(side) * side * 2 * (side / 2 + 1) * sizeof(float);
  values_.reset(
      static_cast<float*>(std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine)));
  if (!values_) throw std::bad_alloc();
}

void GridField::Free::operator()(float* values) const { std::free(values); }

FourierGrid::FourierGrid(int side) : side_(side), fourier_(cube(side)) {}

}  // namespace tutti::generate
