#include "tutti/tensor/layout.h"

#include <fmt/format.h>

#include "tutti/base/error.h"

namespace tutti {

std::string Shape::to_string() const {
  if (rank_ == 0) return "scalar";
  std::string text;
  for (const int64_t dim : *this) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

Layout Layout::channels_last(int rank) {
  Layout layout;
  for (int i = 1; i + 1 < rank; ++i)
    layout.order[static_cast<size_t>(i)] = static_cast<int8_t>(i + 1);
  if (rank > 2) layout.order[static_cast<size_t>(rank - 1)] = 1;
  return layout;
}

Layout Layout::blocked_channels(int block) {
  Layout layout;
  layout.blocks[0] = {1, static_cast<int16_t>(block)};
  layout.num_blocks = 1;
  return layout;
}

int64_t Layout::padded(const Shape& shape, int dim) const {
  int64_t block = 1;
  for (int b = 0; b < num_blocks; ++b)
    if (blocks[static_cast<size_t>(b)].dim == dim) block *= blocks[static_cast<size_t>(b)].size;
  return (shape[dim] + block - 1) / block * block;
}

int64_t Layout::storage_elements(const Shape& shape) const {
  // Larger than any machine's memory, and small enough that no sum of bytes overflows.
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t n = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] > kMost || __builtin_mul_overflow(n, padded(shape, i), &n) || n > kMost)
      throw ConfigError(
          fmt::format("a tensor of {} has more than {} elements: make the layers, the number of "
                      "classes or the batch smaller",
                      shape.to_string(), kMost));
  return n;
}

int64_t Layout::offset(const Shape& shape, const int64_t* index) const {
  std::array<int64_t, Shape::kMaxRank> rest{}, extent{};
  for (int i = 0; i < shape.rank(); ++i) {
    extent[static_cast<size_t>(i)] = padded(shape, i);
    rest[static_cast<size_t>(i)] = mirrored && i >= 2 ? shape[i] - 1 - index[i] : index[i];
  }
  int64_t position = 0, stride = 1;
  for (int b = num_blocks - 1; b >= 0; --b) {
    const auto [dim, size] = blocks[static_cast<size_t>(b)];
    position += rest[static_cast<size_t>(dim)] % size * stride;
    rest[static_cast<size_t>(dim)] /= size;
    extent[static_cast<size_t>(dim)] /= size;
    stride *= size;
  }
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const auto dim = static_cast<size_t>(order[static_cast<size_t>(i)]);
    position += rest[dim] * stride;
    stride *= extent[dim];
  }
  return position;
}

std::vector<int64_t> Layout::terms(const Shape& shape, int dim, bool padding) const {
  std::vector<int64_t> terms;
  std::array<int64_t, Shape::kMaxRank> index{};
  int64_t& i = index[static_cast<size_t>(dim)];
  const int64_t count = padding ? padded(shape, dim) : shape[dim];
  if (mirrored && dim >= 2) i = shape[dim] - 1;
  const int64_t others =
      offset(shape, index.data());  // the contribution of the other dimensions' first index
  for (i = 0; i < count; ++i) terms.push_back(offset(shape, index.data()) - others);
  return terms;
}

Layout Layout::with_first_two_swapped() const {
  Layout layout = *this;
  for (int8_t& dim : layout.order)
    if (dim < 2) dim = static_cast<int8_t>(1 - dim);
  for (int b = 0; b < num_blocks; ++b)
    if (int8_t& dim = layout.blocks[static_cast<size_t>(b)].dim; dim < 2)
      dim = static_cast<int8_t>(1 - dim);
  return layout;
}

int64_t Layout::channel_block(const Shape& shape) const {
  if (is_plain() || shape.rank() < 3) return num_blocks == 0 ? 1 : 0;
  if (*this == channels_last(shape.rank())) return shape[1];
  const Layout blocked = blocked_channels(blocks[0].size);
  return *this == blocked && shape[1] % blocks[0].size == 0 ? blocks[0].size : 0;
}

std::string Layout::to_string(int rank) const {
  if (is_plain()) return "plain";
  if (*this == channels_last(rank)) return "last";
  if (num_blocks == 1 && *this == blocked_channels(blocks[0].size))
    return fmt::format("b{}c", blocks[0].size);
  std::string text;
  for (int i = 0; i < rank; ++i) text += static_cast<char>('0' + order[static_cast<size_t>(i)]);
  for (int b = 0; b < num_blocks; ++b) {
    const auto [dim, size] = blocks[static_cast<size_t>(b)];
    text += fmt::format("{}{}x{}", b == 0 ? ":" : ",", dim, size);
  }
  if (mirrored) text += " mirrored";
  return text;
}

}  // namespace tutti
