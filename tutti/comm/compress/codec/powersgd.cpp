#include "tutti/comm/compress/codec/powersgd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/compress/codec/lanes.h"

namespace tutti::comm {
namespace {

constexpr size_t kColumnStrip = 256;  // columns of a row that are decoded together
constexpr uint32_t kPowerSgdStream = 0x50534744u;
constexpr uint32_t kFirstQ = 0xFFFFFFFFu;  // replaces the number of an attempt
constexpr double kDependent = 1e-6;  // a column that loses this much of its norm is rounding noise

void check_size(const char* what, size_t have, size_t need) {
  CHECK(have == need, "PowerSGD: {} has {} floats, not {}", what, have, need);
}

}  // namespace

PowerSgd::Matrix PowerSgd::matrix_of(const Shape& shape) {
  const Matrix matrix{.rows = shape.rank() > 0 ? static_cast<size_t>(shape[0]) : 0,
                      .cols = static_cast<size_t>(shape.elements_from(1))};
  if (shape.rank() < 2 || matrix.rows < 2 || matrix.cols < 2)
    throw ConfigError(fmt::format(
        "PowerSGD: a tensor of {} dimension(s), {} x {}, is no matrix; exchange it uncompressed",
        shape.rank(), matrix.rows, matrix.cols));
  return matrix;
}

PowerSgd::PowerSgd(Matrix matrix, int rank, uint64_t seed)
    : matrix_(matrix), rank_(static_cast<size_t>(rank)), seed_(seed) {
  if (rank < 1 || rank_ > std::min(matrix.rows, matrix.cols))
    throw ConfigError(
        fmt::format("PowerSGD: rank {} for a matrix of {} x {}; from 1 to its smaller side", rank,
                    matrix.rows, matrix.cols));
}

// Element i of a column is a function of (seed, column, attempt, i).
void PowerSgd::fill_random(std::span<float> column, uint32_t number, uint32_t attempt) const {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed_) ^ kPowerSgdStream,
                                    static_cast<uint32_t>(seed_ >> 32)};
  std::array<uint32_t, 4> block{};
  for (size_t i = 0; i < column.size(); ++i) {
    if (i % 4 == 0)
      block = philox(
          {static_cast<uint32_t>(i / 4), static_cast<uint32_t>(i / 4 >> 32), number, attempt}, key);
    column[i] = static_cast<float>(block[i % 4] >> 8) * 0x1p-23f - 1;
  }
}

void PowerSgd::begin(std::span<float> q) const {
  check_size("Q", q.size(), q_count());
  for (size_t j = 0; j < rank_; ++j)
    fill_random(q.subspan(j * matrix_.cols, matrix_.cols), static_cast<uint32_t>(j), kFirstQ);
}

void PowerSgd::project(std::span<const float> m, std::span<float> q, std::span<float> p) const {
  check_size("M", m.size(), matrix_.count());
  check_size("Q", q.size(), q_count());
  check_size("P", p.size(), p_count());
  if (!std::isfinite(sum_of_squares(q))) begin(q);
  for (size_t i = 0; i < matrix_.rows; ++i)
    for (size_t j = 0; j < rank_; ++j)
      p[j * matrix_.rows + i] =
          static_cast<float>(dot(&m[i * matrix_.cols], &q[j * matrix_.cols], matrix_.cols));
}

// Subtracts the earlier columns' share from a column and scales it to length 1. Returns false where
// nothing is left. Values that are not finite become NaN.
bool PowerSgd::normalize_against(std::span<const float> earlier, std::span<float> column) const {
  const size_t n = column.size();
  const double before = std::sqrt(sum_of_squares(column));
  for (int pass = 0; pass < 2; ++pass)
    for (size_t at = 0; at < earlier.size(); at += n) {
      const auto share = static_cast<float>(dot(&earlier[at], column.data(), n));
      for (size_t i = 0; i < n; ++i) column[i] -= share * earlier[at + i];
    }
  const double after = std::sqrt(sum_of_squares(column));
  if (after <= kDependent * before) return false;
  for (float& x : column) x = static_cast<float>(x / after);
  return true;
}

void PowerSgd::orthogonalize(std::span<float> p) const {
  check_size("P", p.size(), p_count());
  constexpr uint32_t kAttempts = 16;
  for (size_t j = 0; j < rank_; ++j) {
    const auto earlier = p.first(j * matrix_.rows);
    const auto column = p.subspan(j * matrix_.rows, matrix_.rows);
    uint32_t attempt = 0;
    while (!normalize_against(earlier, column)) {
      CHECK(attempt < kAttempts, "no column is independent of {} others among {} rows", j,
            matrix_.rows);
      fill_random(column, static_cast<uint32_t>(j), attempt++);
    }
  }
}

void PowerSgd::back_project(std::span<const float> m, std::span<const float> p,
                            std::span<float> q) const {
  check_size("M", m.size(), matrix_.count());
  check_size("P", p.size(), p_count());
  check_size("Q", q.size(), q_count());
  std::fill(q.begin(), q.end(), 0.0f);
  for (size_t i = 0; i < matrix_.rows; ++i)
    for (size_t j = 0; j < rank_; ++j) {
      const float factor = p[j * matrix_.rows + i];
      const float* row = &m[i * matrix_.cols];
      float* column = &q[j * matrix_.cols];
#pragma GCC ivdep
      for (size_t c = 0; c < matrix_.cols; ++c) column[c] += factor * row[c];
    }
}

// Computes out = (P Q^T)[row][first ...].
void PowerSgd::multiply(std::span<const float> p, std::span<const float> q, size_t row,
                        size_t first, std::span<float> out) const {
  std::fill(out.begin(), out.end(), 0.0f);
  for (size_t j = 0; j < rank_; ++j) {
    const float factor = p[j * matrix_.rows + row];
    const float* column = &q[j * matrix_.cols + first];
    for (size_t c = 0; c < out.size(); ++c) out[c] += factor * column[c];
  }
}

void PowerSgd::decode(std::span<const float> p, std::span<const float> q,
                      std::span<float> decoded) const {
  check_size("P", p.size(), p_count());
  check_size("Q", q.size(), q_count());
  check_size("M^", decoded.size(), matrix_.count());
  for (size_t i = 0; i < matrix_.rows; ++i)
    multiply(p, q, i, 0, decoded.subspan(i * matrix_.cols, matrix_.cols));
}

Loss PowerSgd::finish(std::span<const float> p, std::span<const float> q,
                      std::span<float> m) const {
  check_size("P", p.size(), p_count());
  check_size("Q", q.size(), q_count());
  check_size("M", m.size(), matrix_.count());
  Loss loss{.whole = sum_of_squares(m)};
  alignas(64) float decoded[kColumnStrip];
  for (size_t i = 0; i < matrix_.rows; ++i)
    for (size_t first = 0; first < matrix_.cols; first += kColumnStrip) {
      const size_t n = std::min(kColumnStrip, matrix_.cols - first);
      multiply(p, q, i, first, {decoded, n});
      float* rest = &m[i * matrix_.cols + first];
      for (size_t c = 0; c < n; ++c) rest[c] -= decoded[c];
    }
  loss.lost = settle_residual(m);
  return loss;
}

}  // namespace tutti::comm
