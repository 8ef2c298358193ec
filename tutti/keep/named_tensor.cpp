#include "tutti/keep/named_tensor.h"

namespace tutti::keep {

void give_bytes(const TensorRef& tensor, const ByteSink& sink) {
  if (tensor.give) return tensor.give(sink);
  if (!tensor.make) return sink(tensor.bytes);
  std::vector<std::byte> made(tensor.desc.bytes());
  tensor.make(tensor.sources, made);
  sink(made);
}

TensorRef owned(NamedTensor tensor) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(tensor.bytes));
  return {.name = std::move(tensor.name), .desc = tensor.desc, .bytes = *bytes, .owner = bytes};
}

NamedTensor materialise(const TensorRef& ref) {
  NamedTensor tensor{ref.name, ref.desc, {}};
  tensor.bytes.reserve(ref.desc.bytes());
  give_bytes(ref, [&](std::span<const std::byte> piece) {
    tensor.bytes.insert(tensor.bytes.end(), piece.begin(), piece.end());
  });
  return tensor;
}

std::vector<NamedTensor> materialise(std::span<const TensorRef> refs) {
  std::vector<NamedTensor> tensors;
  for (const TensorRef& ref : refs) tensors.push_back(materialise(ref));
  return tensors;
}

}  // namespace tutti::keep
