#pragma once
// Copies a box of elements from one tensor to another, whatever their layouts. An offset is a
// sum of one term per dimension (Layout::terms), so a box is a few nested loops and never a
// table of its elements.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

class BoxCopy {
 public:
  /// Offsets, in elements, by dimension and index.
  using Terms = std::vector<std::vector<int64_t>>;

  /// Copies element (i0, i1, ...) from the sum of from[d][i_d] to the sum of to[d][i_d].
  BoxCopy(const Terms& from, const Terms& to);

  /// Returns whether the box lies in both tensors as one run, at the same place.
  bool in_place() const;
  /// Copies elements of 1, 2 or 4 bytes.
  void run(const void* from, void* to, size_t element_bytes) const;
  /// Adds to = to + from, element by element; f32 and bf16.
  void add(const void* from, void* to, DType type) const;

 private:
  struct Loop {
    int64_t count = 1, from = 0, to = 0;               ///< strides
    std::vector<std::pair<int64_t, int64_t>> table{};  ///< offsets, where they have no stride
  };
  void add_dimension(std::vector<int64_t> from, std::vector<int64_t> to);
  void merge_loops();
  /// Calls row(count, from, step, to, step) for the innermost loops.
  template <class T, class Row>
  void walk(size_t depth, const T* from, T* to, const Row& row) const;

  std::vector<Loop> loops_;  ///< outermost first; never empty
  int64_t from_ = 0, to_ = 0;
};

/// Returns the offsets of all elements of a tensor.
BoxCopy::Terms terms_of(const TensorDesc& d);

}  // namespace tutti::backend
