#pragma once
// Arguments of the kernels that move elements, and convert them where the types differ.

#include <cstdint>

#include "tutti/backend/gpu/kernels/loops.h"

namespace tutti::backend {

/// Copies the elements of loops over `to` and `from`. An element is a pack of one or several of the
/// kernel's type, and steps count packs.
struct BoxArgs {
  void* to;
  const void* from;
  int64_t packs;
  Loops<2> loops;  ///< in `to` and in `from`
};

/// Writes all of `to`. By loop, index first + gap * i holds index i of `from`, for i < inside; what
/// none holds is filled.
struct FillBoxArgs {
  BoxArgs box;
  int64_t first[kMostLoops], inside[kMostLoops];
  FastDivisor gap[kMostLoops];
  uint32_t fill;  ///< the bits of an element, repeated
};

/// Rows and columns of a tile that a block turns.
constexpr int kTurnTile = 32;

/// Copies where neighbours of `to` and neighbours of `from` are two different dimensions: elements
/// (a, b) are at a + b * to_step and at a * from_step + b, in each of the loops' elements.
struct TurnArgs {
  void* to;
  const void* from;
  int64_t a, b;  ///< extents
  int64_t to_step, from_step;
  FastDivisor a_tiles, b_tiles;
  Loops<2> loops;  ///< in `to` and in `from`
};

constexpr int kMostRowInputs = 8, kMostWindows = 128;

/// An operand that holds rows of samples, in slabs or windows of equal height.
struct RowHolder {
  const void* data;
  int64_t step[kMostLoops];  ///< by dimension; 0 beyond the last
  int64_t parts;             ///< slabs or windows of a sample, neighbours in dimension 0
  FastDivisor height;        ///< their rows
};

/// Writes windows of rows (ops/rows.h): element i of y. Dimension 0 is the batch; the others stand
/// in the order of y's memory.
struct GatherRowsArgs {
  void* y;
  int64_t elements;
  int32_t rank, dim, inputs;
  FastDivisor extent[kMostLoops];  ///< the extents of y
  int64_t y_step[kMostLoops];
  RowHolder in[kMostRowInputs];
  int64_t first[kMostRowInputs], last[kMostRowInputs];  ///< the rows that an input holds
  FastDivisor windows;
  int64_t window[kMostWindows];  ///< the first row of each
  uint32_t fill;                 ///< the bits of an element
};

/// Adds up windows of rows: element i of dx. Dimension 0 is the batch; the others stand in the
/// order of dx's memory.
struct AddRowsArgs {
  void* dx;
  int64_t elements;
  int32_t rank, dim, inputs;
  FastDivisor extent[kMostLoops];  ///< the extents of dx
  int64_t dx_step[kMostLoops];
  FastDivisor slabs;
  int64_t height, first_row;  ///< rows of a slab, and the first of all
  RowHolder in[kMostRowInputs];
  int64_t window[kMostWindows];  ///< the first row of each, input after input
};

}  // namespace tutti::backend
