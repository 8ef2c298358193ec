#include "tutti/backend/cpu/field_transform.h"

#include <cmath>
#include <numbers>

#include "tutti/backend/cpu/outer_product.h"

namespace tutti {
namespace {

using simd::Floats, simd::kLanes;

constexpr int64_t kPanel = int64_t{kTileVectors} * kLanes;

/// cos and sin of 2 pi k r / s, exact to the last bit at any k r.
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
    for (int v = 0; v < kTileVectors; ++v) {
      const int64_t left = columns - int64_t{v} * kLanes;
      Floats values{};
      if (left >= kLanes)
        values = simd::load(b + int64_t{v} * kLanes, simd::AllLanes{});
      else if (left > 0)
        values = simd::load(b + int64_t{v} * kLanes, simd::SomeLanes{static_cast<int>(left)});
      simd::store(panel + int64_t{v} * kLanes, values, simd::AllLanes{});
    }
}

/// c [m, n] = a [m, k] b [k, n], row-major. `panel` takes k * kPanel floats. Columns of b are
/// packed: rows whose distance is a power of two would push each other out of the cache.
template <class B, class C>
void product(int64_t m, int64_t n, int64_t k, const float* a, const B* b, C* c, float* panel) {
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t columns = std::min(kPanel, n - j);
    pack(b + j, k, n, columns, panel);
    outer_product(m, columns, k, Left{a, k, 1}, RowLoop<float>{panel, kPanel},
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
      w_(extents.rank() > 1 ? extents[extents.rank() - 1] : 1), along_d_(real_to_complex(d_)),
      along_h_(from_left(h_)), along_w_(from_right(w_)), back_d_(along_d_.transposed()),
      back_h_(along_h_.transposed()), back_w_(along_w_.transposed()) {}

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
  float* const some = work + half() * plane();
  float* const waves = some + planes() * plane();
  return {work, some, waves, waves + planes() * plane()};
}

template <class T>
void FieldTransform::begin(const T* x, float* work) const {
  const Parts p = parts(work);
  product(2 * half(), h_ * w_, d_, along_d_.values.data(), x, p.all, p.panel);
}

float* FieldTransform::transform(int64_t kd, float* work) const {
  const Parts p = parts(work);
  const int64_t count = planes_from(kd);
  for (int64_t i = 0; i < count; ++i)
    product(2 * h_, w_, 2 * h_, along_h_.values.data(), p.all + (kd + i) * plane(),
            p.some + i * plane(), p.panel);
  product(count * h_, 2 * w_, 2 * w_, p.some, along_w_.values.data(), p.waves, p.panel);
  return p.waves;
}

void FieldTransform::back(int64_t kd, float* work) const {
  const Parts p = parts(work);
  const int64_t count = planes_from(kd);
  product(count * h_, 2 * w_, 2 * w_, p.waves, back_w_.values.data(), p.some, p.panel);
  for (int64_t i = 0; i < count; ++i)
    product(2 * h_, w_, 2 * h_, back_h_.values.data(), p.some + i * plane(),
            p.all + (kd + i) * plane(), p.panel);
}

template <class T>
void FieldTransform::end(float* work, T* x) const {
  const Parts p = parts(work);
  product(d_, h_ * w_, 2 * half(), back_d_.values.data(), p.all, x, p.panel);
}

template void FieldTransform::begin(const float*, float*) const;
template void FieldTransform::begin(const bf16*, float*) const;
template void FieldTransform::end(float*, float*) const;
template void FieldTransform::end(float*, bf16*) const;

}  // namespace tutti
