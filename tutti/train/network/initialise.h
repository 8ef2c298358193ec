#pragma once
// Sets the first values of parameters and statistics.

#include <cstdint>
#include <span>
#include <string_view>

#include "tutti/graph/value.h"

namespace tutti::train {

/// The tensor to fill: plain f32.
struct InitialTensor {
  std::string_view name;
  Shape shape;  ///< shape of a weight: [out, in, spatial...]
  graph::Init init;
};

/// Fills `values` (shape.elements() numbers) as `tensor.init` specifies. The random numbers depend
/// only on the seed and the tensor's name: not on other parameters, their order, ranks or threads.
/// Throws ConfigError if no fan can be derived from the shape.
void initialise(const InitialTensor& tensor, uint64_t seed, std::span<float> values);

/// Fills rows of a table from row `first` on, with the shape of `tensor`: the same values as in the
/// whole table. `init` must be zeros, constant or uniform.
void initialise_rows(const InitialTensor& tensor, uint64_t seed, int64_t first,
                     std::span<float> values);

}  // namespace tutti::train
