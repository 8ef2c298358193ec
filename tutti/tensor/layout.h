#pragma once
// Layout: where element (i0, i1, ...) of a tensor lies. One form covers every dense layout the
// kernels use: the outer dimensions in some order, then up to four inner blocks, for example
//   plain NCHW        order 0 1 2 3
//   channels last     order 0 2 3 1                         (NHWC)
//   blocked channels  order 0 1 2 3, block (1, 16)          (nChw16c)
//   weights           order 0 1 2 3, blocks (1, 16) (0, 16) (OIhw16i16o)
// A blocked dimension is padded up to a multiple of its blocks; padding holds zeros.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/tensor/shape.h"

namespace tutti {

struct Layout {
  struct Block {
    int8_t dim = 0;
    int16_t size = 0;
    bool operator==(const Block&) const = default;
  };
  static constexpr int kMaxBlocks = 4;

  std::array<int8_t, Shape::kMaxRank> order{0, 1, 2, 3, 4, 5};  ///< outer dimensions, slowest first
  std::array<Block, kMaxBlocks> blocks{};                       ///< inner blocks, slowest first
  int num_blocks = 0;
  /// Indices of dimensions 2 and up count from the last one: a window of weights turned about its
  /// centre. Only for weights whose blocks are in dimensions 0 and 1.
  bool mirrored = false;

  static Layout plain() { return {}; }
  static Layout channels_last(int rank);
  static Layout blocked_channels(int block);

  bool is_plain() const { return *this == plain(); }
  bool operator==(const Layout&) const = default;

  /// Returns the extent of `dim`, padded to a multiple of its blocks.
  int64_t padded(const Shape& shape, int dim) const;
  /// Returns the elements of storage, padding included.
  int64_t storage_elements(const Shape& shape) const;
  /// Returns the position, in elements, of the element at `index` (shape.rank() numbers).
  int64_t offset(const Shape& shape, const int64_t* index) const;
  /// Returns the terms of `dim`: offset() is a sum of one term per dimension. There is one for each
  /// index of `dim` or, with `padding`, for each index of its padded extent.
  std::vector<int64_t> terms(const Shape& shape, int dim, bool padding = false) const;
  /// Returns the same places for a tensor whose dimensions 0 and 1 are swapped.
  Layout with_first_two_swapped() const;
  /// For activations [N, C, spatial...]: returns the block b such that memory is [N, C/b, spatial,
  /// b]: 1 for plain, C for channels last, 16 for nChw16c. 0 if the layout has no such form. Rank <
  /// 3 is plain: b = 1 and spatial = 1.
  int64_t channel_block(const Shape& shape) const;

  std::string to_string(
      int rank) const;  ///< "plain", "last", "b16c", or a general form such as "0123:1x16,0x16"
};

}  // namespace tutti
