#pragma once
// A tensor by name, on the host and in plain layout, as checkpoints and weight files hold it.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti::keep {

/// Takes the next piece of a tensor's content. The piece is valid during the call.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// A tensor for a writer. Its content is given in one of three ways: as `bytes`; as `sources` and
/// `make`, where the content in files differs from the one in memory; or by `give`, where it comes
/// from elsewhere. What it refers to must outlive the writing.
struct TensorRef {
  std::string name;
  TensorDesc desc;                        ///< layout plain
  std::span<const std::byte> bytes = {};  ///< desc.bytes() bytes
  using Sources = std::span<const std::span<const std::byte>>;
  std::vector<std::span<const std::byte>> sources = {};
  /// Fills desc.bytes() bytes from the sources or from copies of them, in any thread.
  std::function<void(Sources sources, std::span<std::byte> out)> make = {};
  /// Passes the whole content piece by piece, once; it may take it from other ranks, and then the
  /// thread that uses the communicator calls it, on each of them for the same tensors in the same
  /// order.
  std::function<void(const ByteSink&)> give = {};
  std::shared_ptr<const void> owner = {};  ///< keeps `bytes` alive
};

/// Passes the content of a tensor to `sink`, a piece or several.
void give_bytes(const TensorRef& tensor, const ByteSink& sink);

/// A tensor returned by a reader.
struct NamedTensor {
  std::string name;
  TensorDesc desc;
  std::vector<std::byte> bytes;

  TensorRef ref() const { return {.name = name, .desc = desc, .bytes = bytes}; }
};

/// Wraps a tensor that owns its bytes as one that a writer can take at any time.
TensorRef owned(NamedTensor tensor);

/// Returns the tensor with its bytes; the overload does so for a list.
NamedTensor materialise(const TensorRef& ref);
std::vector<NamedTensor> materialise(std::span<const TensorRef> refs);

}  // namespace tutti::keep
