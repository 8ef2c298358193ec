#pragma once
// First values of parameters and statistics.

#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/graph/value.h"

namespace tutti {

/// What to fill: a plain f32 tensor.
struct InitialTensor {
  std::string_view name;
  Shape shape;  ///< of a weight: [out, in, spatial...]
  Init init;
};

/// Fills `values` (shape.elements() numbers) as `tensor.init` says. The random numbers depend on
/// the seed and the tensor's name alone: not on other parameters, their order, ranks or threads.
/// Throws ConfigError if no fan can be had from the shape.
void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values);

/// Rows of a table from row `first` on, of the shape of `tensor`: the same values as in the whole
/// table. `init`: zeros, constant or uniform.
void initialise_rows(const InitialTensor& tensor, uint64_t seed, int64_t first,
                     std::span<float> values);

}  // namespace tutti
