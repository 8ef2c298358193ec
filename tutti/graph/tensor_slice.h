#pragma once
// TensorSlice: the part of a parameter that a rank has if ranks share its layer (split/tensors.h).
// A plain value.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tutti/graph/op.h"

namespace tutti::graph {

/// One of several groups of channels in a tensor, such as queries, keys and values. Ranks share a
/// block in whole units, which are its heads.
struct ChannelBlock {
  int64_t extent = 0, unit = 1;  ///< extent is a multiple of unit
  bool operator==(const ChannelBlock&) const = default;
};

/// A slice along dimension `dim` of a tensor: rank `me` of `ranks` has its share of each block.
struct TensorSlice {
  Shape whole;  ///< shape of the whole tensor
  int dim = 0;
  std::vector<ChannelBlock> blocks = {};
  int ranks = 1, me = 0;

  /// Returns the rows of the whole tensor that a rank has along `dim`, by block.
  std::vector<Rows> rows(int rank) const;
  Shape shape(int rank) const;
  Shape shape() const { return shape(me); }
  /// take() copies a rank's part out of a plain tensor of shape `whole`, put() copies it back.
  void take(std::span<const float> all, int rank, std::span<float> part) const;
  void put(std::span<const float> part, int rank, std::span<float> all) const;
  bool operator==(const TensorSlice&) const = default;
};

/// Returns the rows that rank `rank` of `ranks` has of each block.
std::vector<Rows> rows_of_rank(const std::vector<ChannelBlock>& blocks, int ranks, int rank);
int64_t count_of(const std::vector<Rows>& rows);

/// The slices of shared parameters, by parameter name.
using TensorSlices = std::map<std::string, TensorSlice, std::less<>>;

}  // namespace tutti::graph
