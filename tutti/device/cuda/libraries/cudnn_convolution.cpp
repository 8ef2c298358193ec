#include "tutti/device/cuda/libraries/cudnn_convolution.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti::device {
namespace {

/// The tensors' numbers.
constexpr int64_t kX = 'x', kW = 'w', kY = 'y';

cudnnDataType_t data_type(LibraryType type) {
  switch (type) {
    case LibraryType::bf16: return CUDNN_DATA_BFLOAT16;
    case LibraryType::f16: return CUDNN_DATA_HALF;
    default: return CUDNN_DATA_FLOAT;
  }
}

/// cuDNN's order of extents is samples, channels, positions, whatever the order in memory is.
CudnnDescriptor tensor(int64_t number, cudnnDataType_t type, int64_t samples, int64_t channels,
                       std::span<const int64_t> positions) {
  std::vector<int64_t> extents = {samples, channels}, strides(2 + positions.size());
  extents.insert(extents.end(), positions.begin(), positions.end());
  strides[1] = 1;
  int64_t stride = channels;
  for (size_t i = extents.size(); i-- > 2; stride *= extents[i]) strides[i] = stride;
  strides[0] = stride;
  CudnnDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kCudnnAlignment)
      .finish("describing a tensor");
  return made;
}

CudnnDescriptor windows(const LibraryConvolution& c) {
  const auto entries = [&](const std::array<int64_t, 3>& of) {
    return std::span(of).first(static_cast<size_t>(c.spatial));
  };
  CudnnDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{c.spatial})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, entries(c.pad_low))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, entries(c.pad_high))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, entries(c.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, entries(c.stride))
      .finish("describing a convolution");
  return made;
}

/// One of the three products: its kind of operation, the names of its attributes, and the order of
/// its tensors in LibraryOperands.
struct Product {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
  std::array<int64_t, 3> operands;
};

Product product(LayerProduct makes) {
  switch (makes) {
    case LayerProduct::x:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              {kY, kW, kX}};
    case LayerProduct::w:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              {kX, kY, kW}};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              {kX, kW, kY}};
  }
}

}  // namespace

CudnnConvolution cudnn_convolution(const LibraryConvolution& c, cudnnHandle_t handle) {
  if (c.spatial < 2 || c.spatial > 3 || c.groups < 1 || c.inputs % c.groups != 0)
    throw DeviceError(fmt::format(
        "cuDNN is asked for 2 or 3 spatial dimensions and channels that are a multiple of the "
        "groups, not for {} dimensions, {} channels and {} groups",
        c.spatial, c.inputs, c.groups));
  const auto entries = [&](const std::array<int64_t, 3>& of) {
    return std::span(of).first(static_cast<size_t>(c.spatial));
  };
  const cudnnDataType_t type = data_type(c.type);
  const Product of = product(c.makes);
  std::vector<CudnnDescriptor> parts;
  parts.push_back(tensor(kX, type, c.samples, c.inputs, entries(c.in)));
  parts.push_back(tensor(kW, type, c.outputs, c.inputs / c.groups, entries(c.window)));
  parts.push_back(tensor(kY, type, c.samples, c.outputs, entries(c.out)));
  parts.push_back(windows(c));
  CudnnDescriptor operation(of.operation);
  operation.set(of.x, parts[0])
      .set(of.w, parts[1])
      .set(of.y, parts[2])
      .set(of.windows, parts[3])
      .set(of.alpha, CUDNN_TYPE_FLOAT, 1.0f)
      .set(of.beta, CUDNN_TYPE_FLOAT, 0.0f)
      .finish("describing the product");
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.finish("making its graph");
  parts.push_back(std::move(operation));
  return {.parts = std::move(parts), .graph = std::move(graph), .operands = of.operands};
}

}  // namespace tutti::device
