#pragma once
// TensorSlice: which part of a parameter a rank has, where ranks share its layer
// (split/tensors.h). A plain value.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti {

/// Channels one behind the other, such as queries, keys and values in one tensor: ranks share them
/// in whole units, the heads of each.
struct ChannelBlock {
  int64_t extent = 0, unit = 1;  ///< extent is a multiple of unit
  bool operator==(const ChannelBlock&) const = default;
};

/// Of dimension `dim` of a tensor, rank `me` of `ranks` has its share of each block.
struct TensorSlice {
  Shape whole;  ///< of the tensor
  int dim = 0;
  std::vector<ChannelBlock> blocks = {};
  int ranks = 1, me = 0;

  /// What a rank has of the dimension: rows of the whole tensor, by block.
  std::vector<Rows> rows(int rank) const;
  Shape shape(int rank) const;
  Shape shape() const { return shape(me); }
  /// A rank's part of a plain tensor of the shape `whole`, or back into it.
  void take(std::span<const float> all, int rank, std::span<float> part) const;
  void put(std::span<const float> part, int rank, std::span<float> all) const;
  bool operator==(const TensorSlice&) const = default;
};

/// What rank `rank` of `ranks` has of each block.
std::vector<Rows> rows_of_rank(const std::vector<ChannelBlock>& blocks, int ranks, int rank);
int64_t count_of(const std::vector<Rows>& rows);

/// By the parameter's name, of those that ranks share.
using TensorSlices = std::map<std::string, TensorSlice, std::less<>>;

}  // namespace tutti
