#pragma once
// Libraries of a device's maker (cuDNN, cuBLASLt), as values: the ways in which they compute a
// convolution or a dense layer on a device, and calls that put one of them on a stream.
//
// A layer is x, w -> y, and one of its three products is asked for. Activations are channels last
// ([N, spatial..., C] in memory) and without gaps, weights too ([K, window..., C / groups]).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tutti/device/device.h"

namespace tutti::device {

/// The product of a layer: y from x and w, the gradient of x from dy and w, or the gradient of w
/// from x and dy.
enum class LayerProduct : uint8_t { y, x, w };

/// Types of operands. Sums are f32. `tf32` is f32 in memory, whose factors may be rounded to 10
/// bits; with `f32` they are not.
enum class LibraryType : uint8_t { f32, tf32, bf16, f16 };

struct LibraryConvolution {
  LayerProduct makes = LayerProduct::y;
  LibraryType type = LibraryType::f32;  ///< type of x, w and y; the result has it too
  int spatial = 2;                      ///< 2 or 3; the first entries of the arrays count
  int64_t samples = 0, inputs = 0, outputs = 0, groups = 1;
  std::array<int64_t, 3> in{}, out{}, window{}, stride{}, dilation{}, pad_low{}, pad_high{};
  bool operator==(const LibraryConvolution&) const = default;
};

/// y [rows, outputs] = x [rows, inputs] w^T + bias, w [outputs, inputs]; all row by row.
struct LibraryDense {
  LayerProduct makes = LayerProduct::y;
  LibraryType type = LibraryType::f32;  ///< type of the factors
  bool f32_result = false;              ///< the result is f32 with factors of 16 bits, too
  bool bias = false;                    ///< bias [outputs], f32; for `y` alone
  int64_t rows = 0, inputs = 0, outputs = 0;
  bool operator==(const LibraryDense&) const = default;
};

/// One way to compute it. Names mean something within one version of a library.
struct LibraryWay {
  std::string name;     ///< "cudnn:eng62 k3=2", "cublaslt:6 tile=20"
  std::string refusal;  ///< why it is not taken ("not deterministic"); empty: it is offered
  size_t workspace_bytes = 0;
};

/// The addresses of one call, in memory of the device: operands begin at a multiple of 16 bytes,
/// and workspace_bytes of the way at one of 256.
struct LibraryOperands {
  const void* first = nullptr;   ///< x, or dy where x is made
  const void* second = nullptr;  ///< w, or dy where w is made
  const float* bias = nullptr;
  void* result = nullptr;
  void* workspace = nullptr;
};

class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  /// Puts the work on the stream: it allocates nothing, waits for nothing, can be recorded, and has
  /// the same bits each time. Throws DeviceError.
  virtual void put(Stream& stream, const LibraryOperands& operands) = 0;
};

/// Not thread-safe, as its device.
class Libraries {
 public:
  virtual ~Libraries() = default;
  /// Whether one of them can be used here.
  virtual bool any() const = 0;
  /// Returns the libraries' names and versions, "cuDNN 9.19.0, cuBLASLt 13.1.0", or why there are
  /// none.
  virtual std::string versions() const = 0;
  /// Returns the ways in the order in which the library expects them to be fast, refused ones
  /// included; a single refused one without a name where a library offers nothing.
  virtual std::vector<LibraryWay> ways(const LibraryConvolution& convolution) = 0;
  virtual std::vector<LibraryWay> ways(const LibraryDense& dense) = 0;
  /// Returns the call of one of these ways. Throws DeviceError if the library has no such way.
  virtual std::unique_ptr<LibraryCall> call(const LibraryConvolution& convolution,
                                            const std::string& way) = 0;
  virtual std::unique_ptr<LibraryCall> call(const LibraryDense& dense, const std::string& way) = 0;
};

}  // namespace tutti::device
