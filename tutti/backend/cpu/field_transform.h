#pragma once
// Discrete Fourier transforms of periodic fields as products of matrices: 4 (d + 2 h + 2 w)
// operations an element at the speed of multiplication, for any extents, with the tiles of dense
// layers. A fast transform needs a tenth of the operations or less. At 64^3 the fastest library
// takes 0.6 of the time, at 128^3 0.4: too little to depend on one.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tutti/tensor/shape.h"

namespace tutti {

/// The transform of one field of real numbers with one to three dimensions, seen as [d, h, w]:
/// begin, then transform for each run of planes, in which the caller reads or changes waves. For
/// the adjoint, back follows each transform and end the last one. Immutable: threads share it, each
/// with its own `work` of workspace_floats().
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
  void begin(const T* x, float* work) const;
  /// Values k_d of one run: enough rows for the innermost loop. The last run may be shorter.
  int64_t planes() const { return std::clamp<int64_t>(64 / h_, 1, half()); }
  /// The waves of planes [kd, kd + planes()): [planes, h, 2, w], the real and imaginary parts by
  /// k_h and k_w.
  float* transform(int64_t kd, float* work) const;
  void back(int64_t kd, float* work) const;
  /// x [d, h, w] = the adjoint of the transform of what the caller left in the waves.
  template <class T>
  void end(float* work, T* x) const;

 private:
  /// Row-major.
  struct Matrix {
    int64_t rows = 0, columns = 0;
    std::vector<float> values;
    Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
    float& at(int64_t r, int64_t c) { return values[static_cast<size_t>(r * columns + c)]; }
    Matrix transposed() const;
  };
  /// The parts of a workspace.
  struct Parts {
    float *all,  ///< [half, 2, h, w], transformed along d
        *some,   ///< [planes, h, 2, w], along h too
        *waves,  ///< and along w
        *panel;
  };
  static Matrix real_to_complex(int64_t s);
  static Matrix from_left(int64_t s);
  static Matrix from_right(int64_t s);
  int64_t plane() const { return 2 * h_ * w_; }
  int64_t planes_from(int64_t kd) const { return std::min(planes(), half() - kd); }
  Parts parts(float* work) const;

  Shape extents_;
  int64_t d_ = 1, h_ = 1, w_ = 1;
  Matrix along_d_, along_h_, along_w_;  ///< [2 half, d]; [2 h, 2 h]; from the right, [2 w, 2 w]
  Matrix back_d_, back_h_, back_w_;     ///< their transposes
};

}  // namespace tutti
