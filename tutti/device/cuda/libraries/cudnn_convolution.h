#pragma once
// A convolution as an operation graph of cuDNN's.

#include <array>
#include <cstdint>
#include <vector>

#include "tutti/device/cuda/libraries/cudnn_descriptor.h"
#include "tutti/device/libraries.h"

namespace tutti::device {

/// Addresses of operands are multiples of it.
constexpr int64_t kCudnnAlignment = 16;

struct CudnnConvolution {
  std::vector<CudnnDescriptor> parts;  ///< the graph refers to them
  CudnnDescriptor graph;
  /// The numbers that LibraryOperands' first, second and result have in the graph.
  std::array<int64_t, 3> operands{};
};

/// Throws DeviceError if cuDNN knows no such convolution. `handle` is null for a described device.
CudnnConvolution cudnn_convolution(const LibraryConvolution& convolution, cudnnHandle_t handle);

}  // namespace tutti::device
