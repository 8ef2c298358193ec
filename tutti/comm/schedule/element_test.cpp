#include "tutti/comm/schedule/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tutti::comm {
namespace {

template <class T>
Run run_of(T* values, Element type) {
  return {reinterpret_cast<std::byte*>(values), type};
}

// Large sums are written around the cache, except beginnings and ends that do not fill a vector.
TEST(Combine, LargeSumsAreThoseOfSmallOnes) {
  constexpr size_t kCount = (size_t{2} << 20) + 1000;
  std::vector<float> a(kCount + 32), b(kCount + 32), to(kCount + 32);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i % 1000) * 0.37f, b[i] = static_cast<float>(i % 777) * -1.9f;
  const auto run = [](float* at) { return run_of(at, Element::f32); };
  for (const size_t shift : {0u, 1u, 7u, 15u}) {
    std::fill(to.begin(), to.end(), 5.f);
    const size_t count = kCount + shift - 3;
    combine(ReduceOp::sum, run(to.data() + shift), run(a.data() + 1), run(b.data() + shift), count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += to[shift + i] != a[1 + i] + b[shift + i];
    EXPECT_EQ(wrong, 0u) << shift;
    EXPECT_EQ(to[shift + count], 5.f);
    if (shift > 0) {
      EXPECT_EQ(to[shift - 1], 5.f);
    }
  }
}

template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// All pairs of some values, often enough that vector code takes them.
template <class T>
struct Pairs {
  explicit Pairs(const std::vector<T>& values) {
    for (int repeat = 0; repeat < 5; ++repeat)
      for (const T x : values)
        for (const T y : values) a.push_back(x), b.push_back(y);
  }
  std::vector<T> a, b;
};

// Every pair of special values in both orders.
template <class T>
void check_order(Element type) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  const T other_nan = std::copysign(nan, T{-1});
  auto [a, b] = Pairs<T>({nan, other_nan, -inf, T{-1}, T{-0.0}, T{0.0}, T{1}, inf});
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    std::vector<T> one(a.size()), other(a.size());
    const auto run = [&](std::vector<T>& v) { return run_of(v.data(), type); };
    combine(op, run(one), run(a), run(b), a.size());
    combine(op, run(other), run(b), run(a), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      T right = nan;
      if (!std::isnan(a[i]) && !std::isnan(b[i])) {
        const bool first = a[i] < b[i] || (a[i] == b[i] && std::signbit(a[i]));  // a is the smaller
        right = first == (op == ReduceOp::min) ? a[i] : b[i];
      }
      EXPECT_EQ(bits_of(one[i]), bits_of(right)) << name_of(op) << " of " << a[i] << ", " << b[i];
      EXPECT_EQ(bits_of(one[i]), bits_of(other[i])) << a[i] << ", " << b[i] << " swapped";
    }
  }
}

TEST(Combine, MinAndMaxDoNotDependOnTheOrderOfTheirOperands) {
  check_order<float>(Element::f32);
  check_order<double>(Element::f64);
}

// Every value that matters against every other one, in plain arithmetic of 128 bits.
template <class T>
void check_whole(Element type) {
  using Limits = std::numeric_limits<T>;
  auto [a, b] =
      Pairs<T>({Limits::min(), Limits::max(), T(-1), T(-2), T(0), T(1), T(3), T(100), T(-77)});
  const auto run = [&](std::vector<T>& v) { return run_of(v.data(), type); };
  std::vector<T> to(a.size());
  __extension__ using Wide = __int128;
  for (int op = 0; op < kReduceOps; ++op) {
    combine(ReduceOp(op), run(to), run(a), run(b), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      const Wide x = a[i], y = b[i];
      const Wide right = ReduceOp(op) == ReduceOp::min       ? std::min(x, y)
                         : ReduceOp(op) == ReduceOp::max     ? std::max(x, y)
                         : ReduceOp(op) == ReduceOp::product ? x * y
                                                             : x + y;
      EXPECT_EQ(to[i], static_cast<T>(right)) << name_of(ReduceOp(op)) << " " << name_of(type);
    }
  }
  for (const int ranks : {1, 2, 3, 7}) {
    divide(run(to), run(a), ranks, a.size());
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(to[i], static_cast<T>(static_cast<Wide>(a[i]) / ranks)) << name_of(type);
  }
}

TEST(Combine, WholeNumbersWrapAround) {
  check_whole<int8_t>(Element::i8);
  check_whole<uint8_t>(Element::u8);
  check_whole<int32_t>(Element::i32);
  check_whole<int64_t>(Element::i64);
}

TEST(Combine, ProductsOfRealNumbers) {
  std::vector<float> a{1.5f, -2.f, 0.f}, b{3.f, 0.25f, -1.f}, to(3);
  std::vector<double> c{1.5, -2, 1e200}, d{3, 0.25, 1e200}, into(3);
  const auto multiply = [](auto& product, auto& x, auto& y, Element type) {
    combine(ReduceOp::product, run_of(product.data(), type), run_of(x.data(), type),
            run_of(y.data(), type), 3);
  };
  multiply(to, a, b, Element::f32);
  multiply(into, c, d, Element::f64);
  EXPECT_EQ(to, (std::vector<float>{4.5f, -0.5f, -0.f}));
  EXPECT_EQ(into, (std::vector<double>{4.5, -0.5, std::numeric_limits<double>::infinity()}));
  for (const Element half : {Element::bf16, Element::f16}) {  // computed in f32, and rounded once
    EXPECT_EQ(accumulator_of(half, ReduceOp::product), Element::f32);
    EXPECT_EQ(accumulator_of(half, ReduceOp::max), half);
  }
}

}  // namespace
}  // namespace tutti::comm
