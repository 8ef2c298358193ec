#pragma once
// A tensor by name, on the host and in plain layout: what checkpoints and weight files hold.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti {

/// A tensor that a writer takes. Its bytes lie somewhere, where they belong to the caller and must
/// outlive the call; or they are made when the writer comes to it, so that one tensor at a time is
/// held.
struct TensorRef {
  std::string name;
  TensorDesc desc;                        ///< layout plain
  std::span<const std::byte> bytes = {};  ///< desc.bytes() of them; empty where `make` is given
  std::function<void(std::span<std::byte>)> make = {};  ///< fills desc.bytes() bytes
};

/// A tensor that a reader returns.
struct NamedTensor {
  std::string name;
  TensorDesc desc;
  std::vector<std::byte> bytes;

  TensorRef ref() const { return {.name = name, .desc = desc, .bytes = bytes}; }
};

/// A tensor with bytes of its own, as one that a writer takes at any time.
inline TensorRef owned(NamedTensor tensor) {
  TensorRef ref{.name = std::move(tensor.name), .desc = tensor.desc};
  ref.make = [bytes = std::move(tensor.bytes)](std::span<std::byte> out) {
    std::copy(bytes.begin(), bytes.end(), out.begin());
  };
  return ref;
}

/// The same with its bytes, and all of a list.
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
