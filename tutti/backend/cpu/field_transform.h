#pragma once
// Discrete Fourier transforms of periodic fields as products of matrices, with the tiles of dense
// layers: 2 (d + 2 h + 2 w) operations an element. A fast transform needs a tenth of them at 64^3,
// and takes 0.6 of the time. A matrix has the square of an extent: extents are at most thousands.
// Sums are of floats: a mean of 1000 leaks 1e-4 into the power of other waves.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tutti/backend/cpu/outer_product.h"
#include "tutti/tensor/shape.h"

namespace tutti {

/// The transform of one field of real numbers with one to three dimensions, seen as [d, h, w]:
/// start, then transform for each run of planes, in which the caller reads or changes waves. For
/// the adjoint, back follows each transform and finish the last one. Immutable: threads share it,
/// each with its own `work` of workspace_floats().
class FieldTransform {
 public:
  /// extents: 1 to 3, outermost first.
  explicit FieldTransform(const Shape& extents);

  int64_t positions() const { return d_ * h_ * w_; }
  /// Waves with 0 <= k_d <= d / 2; those with -k are their conjugates.
  int64_t half() const { return d_ / 2 + 1; }
  int64_t rows() const { return h_; }
  int64_t row() const { return w_; }
  /// How many of k and -k a wave of index k_d stands for, 1 or 2.
  int members(int64_t kd) const { return kd == 0 || 2 * kd == d_ ? 1 : 2; }
  /// The index of wave (kd, kh, kw) in each of the constructor's extents.
  void index_of(int64_t kd, int64_t kh, int64_t kw, int64_t* index) const;

  size_t workspace_floats() const;
  /// x [d, h, w] of float or bf16.
  template <class T>
  void start(const T* x, float* work) const;
  /// Values k_d of one run: enough rows for the innermost loop. The last run may be shorter.
  int64_t planes() const { return std::clamp<int64_t>(64 / h_, 1, half()); }
  /// The waves of planes [kd, kd + planes()): [planes, h, 2, w], the real and imaginary parts by
  /// k_h and k_w.
  float* transform(int64_t kd, float* work) const;
  void back(int64_t kd, float* work) const;
  /// x [d, h, w] = the adjoint of the transform of what the caller left in the waves.
  template <class T>
  void finish(float* work, T* x) const;

 private:
  /// Row-major.
  struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<float> values;
    Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
    float& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
    Matrix transposed() const;
    /// As the left factor of a product, as it stands and transposed.
    product::Left rows_of() const { return {values.data(), columns, 1}; }
    product::Left columns_of() const { return {values.data(), 1, columns}; }
  };
  /// The parts of a workspace.
  struct Parts {
    float *along_d,  ///< [half, 2, h, w]
        *along_dh,   ///< [planes, h, 2, w]
        *waves,      ///< [planes, h, 2, w], along w too
        *panel;      ///< columns of a right factor
  };
  static Matrix real_to_complex(int64_t s);
  static Matrix from_left(int64_t s);
  static Matrix from_right(int64_t s);
  int64_t plane() const { return 2 * h_ * w_; }
  int64_t planes_from(int64_t kd) const { return std::min(planes(), half() - kd); }
  Parts parts(float* work) const;

  Shape extents_;
  int64_t d_ = 1, h_ = 1, w_ = 1;
  Matrix d_matrix_, h_matrix_,  ///< from the left: [2 half, d], [2 h, 2 h]
      w_matrix_, w_back_;       ///< from the right: [2 w, 2 w], and its transpose
};

}  // namespace tutti
