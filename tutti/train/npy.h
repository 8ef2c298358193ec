#pragma once
// NumPy's .npy files, format 1.0: what numpy.load reads without any other software.

#include <filesystem>
#include <span>

#include "tutti/tensor/shape.h"

namespace tutti {

/// Writes little-endian f32 values in row-major order. Throws IoError naming the file.
void write_npy(const std::filesystem::path& path, const Shape& shape,
               std::span<const float> values);

}  // namespace tutti
