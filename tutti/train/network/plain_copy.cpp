#include "tutti/train/network/plain_copy.h"

#include <array>
#include <cstdint>

namespace tutti::train {

void to_plain(const TensorDesc& desc, const float* x, std::vector<float>& plain) {
  const int rank = desc.shape.rank();
  std::array<std::vector<int64_t>, Shape::kMaxRank> offsets;
  for (int d = 0; d < rank; ++d) offsets[static_cast<size_t>(d)] = desc.layout.terms(desc.shape, d);
  const std::vector<int64_t>& last = offsets[static_cast<size_t>(rank - 1)];
  plain.clear();
  std::array<int64_t, Shape::kMaxRank> index{};
  for (int64_t row = 0; row < desc.elements() / std::ssize(last); ++row) {
    int64_t from = 0;
    for (int d = 0; d < rank - 1; ++d)
      from += offsets[static_cast<size_t>(d)][static_cast<size_t>(index[static_cast<size_t>(d)])];
    for (const int64_t offset : last) plain.push_back(x[from + offset]);
    for (int d = rank - 2; d >= 0 && ++index[static_cast<size_t>(d)] == desc.shape[d]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
}

}  // namespace tutti::train
