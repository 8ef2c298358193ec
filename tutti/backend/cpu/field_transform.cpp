#include "tutti/backend/cpu/field_transform.h"

#include <cmath>
#include <numbers>

#include "tutti/backend/cpu/outer_product.h"

namespace tutti {
namespace {

using simd::Floats, simd::kLanes;

constexpr int64_t kPanel = int64_t{product::kTileVectors} * kLanes;

/// cos and sin of 2 pi k r / s. The angle is reduced first: large k r lose nothing.
struct Turn {
  float cosine, sine;
  Turn(int64_t k, int64_t r, int64_t s) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(k * r % s) / static_cast<double>(s);
    cosine = static_cast<float>(std::cos(angle));
    sine = static_cast<float>(std::sin(angle));
  }
};

/// b [k, columns] beside each other, filled up with zeros to kPanel.
template <class B>
void pack(const B* b, int64_t k, int64_t stride, int64_t columns, float* panel) {
  for (int64_t l = 0; l < k; ++l, b += stride, panel += kPanel)
    for (int v = 0; v < product::kTileVectors; ++v) {
      const int64_t left = columns - int64_t{v} * kLanes;
      Floats values{};
      if (left >= kLanes)
        values = simd::load(b + int64_t{v} * kLanes, simd::AllLanes{});
      else if (left > 0)
        values = simd::load(b + int64_t{v} * kLanes, simd::SomeLanes{static_cast<int>(left)});
      simd::store(panel + int64_t{v} * kLanes, values, simd::AllLanes{});
    }
}

/// c [m, n] = a [m, k] b [k, n], b and c row-major. `panel` takes k * kPanel floats. Columns of b
/// are packed: rows whose distance is a power of two would push each other out of the cache.
template <class B, class C>
void multiply(int64_t m, int64_t n, int64_t k, product::Left a, const B* b, C* c, float* panel) {
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t columns = std::min(kPanel, n - j);
    pack(b + j, k, n, columns, panel);
    product::outer(m, columns, k, a, product::RowMajor<float>{panel, kPanel},
                   [&](int64_t row, int64_t column, Floats sum, auto lanes) {
                     simd::store(c + row * n + j + column, sum, lanes);
                   });
  }
}

}  // namespace

FieldTransform::Matrix FieldTransform::Matrix::transposed() const {
  Matrix t(columns, rows);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) t.at(c, r) = values[static_cast<size_t>(r * columns + c)];
  return t;
}

/// Real to complex: rows (k, real part), (k, imaginary part).
FieldTransform::Matrix FieldTransform::real_to_complex(int64_t s) {
  Matrix m(2 * (s / 2 + 1), s);
  for (int64_t k = 0; k <= s / 2; ++k)
    for (int64_t r = 0; r < s; ++r) {
      const Turn turn(k, r, s);
      m.at(2 * k, r) = turn.cosine;
      m.at(2 * k + 1, r) = -turn.sine;
    }
  return m;
}

/// Complex to complex: from (part, r) to (k, part).
FieldTransform::Matrix FieldTransform::from_left(int64_t s) {
  Matrix m(2 * s, 2 * s);
  for (int64_t k = 0; k < s; ++k)
    for (int64_t r = 0; r < s; ++r) {
      const Turn turn(k, r, s);
      m.at(2 * k, r) = m.at(2 * k + 1, s + r) = turn.cosine;
      m.at(2 * k, s + r) = turn.sine;
      m.at(2 * k + 1, r) = -turn.sine;
    }
  return m;
}

/// Complex to complex, from the right: from (part, r) in rows to (part, k) in columns.
FieldTransform::Matrix FieldTransform::from_right(int64_t s) {
  Matrix m(2 * s, 2 * s);
  for (int64_t k = 0; k < s; ++k)
    for (int64_t r = 0; r < s; ++r) {
      const Turn turn(k, r, s);
      m.at(r, k) = m.at(s + r, s + k) = turn.cosine;
      m.at(s + r, k) = turn.sine;
      m.at(r, s + k) = -turn.sine;
    }
  return m;
}

FieldTransform::FieldTransform(const Shape& extents)
    : extents_(extents), d_(extents[0]), h_(extents.rank() == 3 ? extents[1] : 1),
      w_(extents.rank() > 1 ? extents[extents.rank() - 1] : 1), d_matrix_(real_to_complex(d_)),
      h_matrix_(from_left(h_)), w_matrix_(from_right(w_)), w_back_(w_matrix_.transposed()) {}

void FieldTransform::index_of(int64_t kd, int64_t kh, int64_t kw, int64_t* index) const {
  index[0] = kd;
  if (extents_.rank() == 3) index[1] = kh;
  if (extents_.rank() > 1) index[extents_.rank() - 1] = kw;
}

size_t FieldTransform::workspace_floats() const {
  return static_cast<size_t>((half() + 2 * planes()) * plane() +
                             2 * std::max({half(), h_, w_}) * kPanel);
}

FieldTransform::Parts FieldTransform::parts(float* work) const {
  float* const along_dh = work + half() * plane();
  float* const waves = along_dh + planes() * plane();
  return {work, along_dh, waves, waves + planes() * plane()};
}

template <class T>
void FieldTransform::start(const T* x, float* work) const {
  const Parts p = parts(work);
  multiply(2 * half(), h_ * w_, d_, d_matrix_.rows_of(), x, p.along_d, p.panel);
}

float* FieldTransform::transform(int64_t kd, float* work) const {
  const Parts p = parts(work);
  const int64_t count = planes_from(kd);
  for (int64_t i = 0; i < count; ++i)
    multiply(2 * h_, w_, 2 * h_, h_matrix_.rows_of(), p.along_d + (kd + i) * plane(),
             p.along_dh + i * plane(), p.panel);
  multiply(count * h_, 2 * w_, 2 * w_, {p.along_dh, 2 * w_, 1}, w_matrix_.values.data(), p.waves,
           p.panel);
  return p.waves;
}

void FieldTransform::back(int64_t kd, float* work) const {
  const Parts p = parts(work);
  const int64_t count = planes_from(kd);
  multiply(count * h_, 2 * w_, 2 * w_, {p.waves, 2 * w_, 1}, w_back_.values.data(), p.along_dh,
           p.panel);
  for (int64_t i = 0; i < count; ++i)
    multiply(2 * h_, w_, 2 * h_, h_matrix_.columns_of(), p.along_dh + i * plane(),
             p.along_d + (kd + i) * plane(), p.panel);
}

template <class T>
void FieldTransform::finish(float* work, T* x) const {
  const Parts p = parts(work);
  multiply(d_, h_ * w_, 2 * half(), d_matrix_.columns_of(), p.along_d, x, p.panel);
}

template void FieldTransform::start(const float*, float*) const;
template void FieldTransform::start(const bf16*, float*) const;
template void FieldTransform::finish(float*, float*) const;
template void FieldTransform::finish(float*, bf16*) const;

}  // namespace tutti
