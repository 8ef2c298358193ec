#pragma once
// The data that reference kernels compute on: every operand as doubles in row-major order, whatever
// its type and layout in memory.

#include <array>
#include <cstdint>
#include <vector>

#include "tutti/tensor/tensor_desc.h"

namespace tutti::backend {

class PlainTensor {
 public:
  explicit PlainTensor(const TensorDesc& desc);
  const Shape& shape() const { return desc_.shape; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  double& operator[](int64_t i) { return values_[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  /// Returns the index of the element at (n, c, d, h, w) of an activation or weight with 2 or 3
  /// spatial dimensions; d is 0 for 2.
  int64_t at(int64_t n, int64_t c, int64_t d, int64_t h, int64_t w) const {
    return (((n * extent_[1] + c) * extent_[2] + d) * extent_[3] + h) * extent_[4] + w;
  }
  int64_t extent(int i) const {
    return extent_[static_cast<size_t>(i)];
  }  ///< extents of (n, c, d,
     ///< h, w)
  /// Returns the place of element i in memory, in elements.
  int64_t place(int64_t i) const { return place_[static_cast<size_t>(i)]; }
  /// Returns the number of elements in memory, padding included.
  int64_t storage_elements() const { return desc_.layout.storage_elements(desc_.shape); }
  void fill(double value);

  /// Reads the operand from memory.
  void load(const void* memory) { load(memory, {0, storage_elements()}); }
  /// Writes it, rounded to its type (integers to nearest, saturated), padding as zeros.
  void store(void* memory) const;

  /// Places [first, last) in memory.
  struct Places {
    int64_t first, last;
  };
  /// Touches only those places. Other elements read as zero; padding is not written.
  void load(const void* memory, Places places);
  void store(void* memory, Places places) const;

 private:
  TensorDesc desc_;
  std::array<int64_t, 5> extent_{};
  std::vector<int64_t> place_;  ///< place of each element in memory
  std::vector<double> values_;
};

}  // namespace tutti::backend
