#pragma once
// Shape: the extents of a tensor, outermost first. At most six dimensions; a plain value without
// allocation.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tutti/base/error.h"

namespace tutti {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    CHECK(dims.size() <= kMaxRank, "a tensor has at most {} dimensions", +kMaxRank);
    for (int i = 0; i < rank_; ++i) dims_[static_cast<size_t>(i)] = dims[static_cast<size_t>(i)];
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  /// Returns the shape of the dimensions from `first` on.
  Shape from(int first) const { return Shape(std::span<const int64_t>(begin() + first, end())); }

  /// Returns the product of all extents; 1 for a scalar.
  int64_t elements() const { return elements_from(0); }
  /// Returns the product of the extents from dimension `first` on.
  int64_t elements_from(int first) const {
    int64_t n = 1;
    for (int i = first; i < rank_; ++i) n *= (*this)[i];
    return n;
  }

  bool operator==(const Shape&) const = default;
  std::string to_string() const;  ///< "64x16x32x32"; "scalar" for rank 0

 private:
  std::array<int64_t, kMaxRank> dims_{};  // unused dims stay 0, so == compares whole arrays
  int rank_ = 0;
};

}  // namespace tutti
