#pragma once
// A tensor by name, on the host and in plain layout, as checkpoints and weight files hold it.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti {

/// A tensor for a writer. Its bytes either belong to the caller and must outlive the call, or are
/// made when the writer reaches the tensor, so that only one tensor at a time is held.
struct TensorRef {
  std::string name;
  TensorDesc desc;                        ///< layout plain
  std::span<const std::byte> bytes = {};  ///< desc.bytes() bytes; empty where `make` is given
  std::function<void(std::span<std::byte>)> make = {};  ///< fills desc.bytes() bytes
};

/// A tensor returned by a reader.
struct NamedTensor {
  std::string name;
  TensorDesc desc;
  std::vector<std::byte> bytes;

  TensorRef ref() const { return {.name = name, .desc = desc, .bytes = bytes}; }
};

/// Wraps a tensor that owns its bytes as one that a writer can take at any time.
inline TensorRef owned(NamedTensor tensor) {
  TensorRef ref{.name = std::move(tensor.name), .desc = tensor.desc};
  ref.make = [bytes = std::move(tensor.bytes)](std::span<std::byte> out) {
    std::copy(bytes.begin(), bytes.end(), out.begin());
  };
  return ref;
}

/// Returns the tensor with its bytes; the overload does so for a list.
inline NamedTensor materialise(const TensorRef& ref) {
  NamedTensor tensor{ref.name, ref.desc, {ref.bytes.begin(), ref.bytes.end()}};
  if (!ref.make) return tensor;
  tensor.bytes.resize(ref.desc.bytes());
  ref.make(tensor.bytes);
  return tensor;
}
inline std::vector<NamedTensor> materialise(std::span<const TensorRef> refs) {
  std::vector<NamedTensor> tensors;
  for (const TensorRef& ref : refs) tensors.push_back(materialise(ref));
  return tensors;
}

}  // namespace tutti
