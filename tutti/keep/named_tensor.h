#pragma once
// A tensor by name, on the host and in plain layout: what checkpoints and weight files hold.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti {

/// What a writer takes. The bytes belong to the caller and must outlive the call.
struct TensorRef {
  std::string name;
  TensorDesc desc;  ///< layout plain
  std::span<const std::byte> bytes;
};

/// What a reader returns.
struct NamedTensor {
  std::string name;
  TensorDesc desc;
  std::vector<std::byte> bytes;

  TensorRef ref() const { return {name, desc, bytes}; }
};

}  // namespace tutti
