#pragma once
// PowerSGD: a gradient matrix M of `rows` x `cols` as the product of two thin ones, by one step of
// power iteration that begins at the last step's Q. Vogels, Karimireddy, Jaggi, PowerSGD: practical
// low-rank gradient compression for distributed optimization, NeurIPS 2019.
//
//   M += residual                  the caller, or by keeping gradient and residual in one place:
//                                  add the gradient to finish()'s remainder
//   P  = M Q                       project()
//   P  = sum of the ranks' P       the caller; sum or mean makes no difference
//   P  = orthonormal columns       orthogonalize(), the same bits on every rank
//   Q  = M^T P                     back_project()
//   Q  = sum or mean of the Qs     the caller
//   M^ = P Q^T                     decode(): the optimiser's input
//   residual = M - M^              finish(), with this rank's own Q: then all ranks' residuals
//                                  together are the part missing from the sum
//
// The wire carries (rows + cols) * rank floats instead of rows * cols. Both sums are linear, so a
// plain allreduce works.
//
// Memory is the caller's: M row-major; P `rank` columns of `rows` floats, one after another; Q
// `rank` columns of `cols` floats. Q is state: it belongs in the checkpoint, and begin() makes
// the first one. So do residuals, one for each rank. An object is immutable after construction and
// its functions do not allocate: any number of threads may use it on memory of their own. A
// gradient that is not finite makes M^ NaN, on all ranks; the next project() then begins Q anew.

#include <cstddef>
#include <cstdint>
#include <span>

#include "tutti/comm/compress/codec/error_feedback.h"
#include "tutti/tensor/shape.h"

namespace tutti::comm {

class PowerSgd {
 public:
  struct Matrix {
    size_t rows = 0;
    size_t cols = 0;
    size_t count() const { return rows * cols; }
  };
  /// Returns a tensor's shape as a matrix: its outermost extent by the product of the others.
  /// Throws ConfigError for tensors with one dimension, or one row or column: these travel
  /// uncompressed. Any other matrix over the same floats works as well, also over a blocked layout.
  static Matrix matrix_of(const Shape& shape);

  /// Throws ConfigError unless 1 <= rank <= min(rows, cols). `seed` is the same on all ranks.
  PowerSgd(Matrix matrix, int rank, uint64_t seed);

  size_t p_count() const { return matrix_.rows * rank_; }
  size_t q_count() const { return matrix_.cols * rank_; }
  /// Returns whether P and Q are fewer floats than M.
  bool saves() const { return p_count() + q_count() < matrix_.count(); }

  /// Sets the first Q of a training: uniform in [-1, 1), a function of the seed.
  void begin(std::span<float> q) const;
  void project(std::span<const float> m, std::span<float> q, std::span<float> p) const;
  /// Applies modified Gram-Schmidt, in place, to each column twice, so that float rounding leaves
  /// it orthogonal. A column that depends on earlier ones (M of lower rank, or zero) is replaced by
  /// a random one, because otherwise its column of Q would be zero for ever.
  void orthogonalize(std::span<float> p) const;
  void back_project(std::span<const float> m, std::span<const float> p, std::span<float> q) const;
  void decode(std::span<const float> p, std::span<const float> q, std::span<float> decoded) const;
  /// Sets m to the residual m - P Q^T. Values that are not finite are treated as in
  /// ErrorFeedback::encode.
  Loss finish(std::span<const float> p, std::span<const float> q, std::span<float> m) const;

 private:
  void fill_random(std::span<float> column, uint32_t number, uint32_t attempt) const;
  bool normalize_against(std::span<const float> earlier, std::span<float> column) const;
  void multiply(std::span<const float> p, std::span<const float> q, size_t row, size_t first,
                std::span<float> out) const;

  Matrix matrix_;
  size_t rank_;
  uint64_t seed_;
};

}  // namespace tutti::comm
