#include "tutti/tensor/offsets.h"

namespace tutti {

std::vector<int64_t> offsets_along(const Shape& shape, const Layout& layout, int dim) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(shape[dim]));
  std::array<int64_t, Shape::kMaxRank> index{};
  for (auto& at = index[static_cast<size_t>(dim)]; at < shape[dim]; ++at)
    offsets.push_back(layout.offset(shape, index.data()));
  return offsets;
}

int64_t common_stride(const std::vector<int64_t>& offsets) {
  const int64_t stride = offsets.size() > 1 ? offsets[1] : 1;
  for (size_t i = 0; i < offsets.size(); ++i)
    if (offsets[i] != static_cast<int64_t>(i) * stride) return 0;
  return stride;
}

}  // namespace tutti
