#include "tutti/backend/gpu/own/strides.h"

#include <fmt/format.h>

namespace tutti::backend {

std::string refusal_of_blocks(const KernelCandidate& candidate) {
  for (const std::vector<TensorDesc>* side : {&candidate.in, &candidate.out})
    for (const TensorDesc& d : *side)
      if (d.layout.num_blocks > 0 || d.layout.mirrored)
        return fmt::format("{} has blocks or is mirrored", d.to_string());
  return {};
}

Strides strides_of(const TensorDesc& desc) {
  CHECK(desc.layout.num_blocks == 0 && !desc.layout.mirrored, "{} has no strides",
        desc.to_string());
  Strides strides(static_cast<size_t>(desc.shape.rank()));
  int64_t stride = 1;
  for (int i = desc.shape.rank() - 1; i >= 0; --i) {
    const auto dim = static_cast<size_t>(desc.layout.order[static_cast<size_t>(i)]);
    strides[dim] = stride;
    stride *= desc.shape[static_cast<int>(dim)];
  }
  return strides;
}

}  // namespace tutti::backend
