#include "tutti/comm/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tutti::comm {
namespace {

// Large sums are written around the cache; beginnings and ends that fit no vector are not.
TEST(Combine, LargeSumsAreThoseOfSmallOnes) {
  constexpr size_t kCount = (size_t{2} << 20) + 1000;
  std::vector<float> a(kCount + 32), b(kCount + 32), to(kCount + 32);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i % 1000) * 0.37f, b[i] = static_cast<float>(i % 777) * -1.9f;
  const auto run = [](float* at) -> comm::Run {
    return comm::Run{reinterpret_cast<std::byte*>(at), Element::f32};
  };
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

// Every pair of special values in both orders, often enough that vector code does it.
template <class T>
void check_order(Element type) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  const T other_nan = std::copysign(nan, T{-1});
  const std::vector<T> values{nan, other_nan, -inf, T{-1}, T{-0.0}, T{0.0}, T{1}, inf};
  std::vector<T> a, b;
  for (int repeat = 0; repeat < 5; ++repeat)
    for (const T x : values)
      for (const T y : values) a.push_back(x), b.push_back(y);
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    std::vector<T> one(a.size()), other(a.size());
    const auto run = [&](std::vector<T>& v) {
      return Run{reinterpret_cast<std::byte*>(v.data()), type};
    };
    combine(op, run(one), run(a), run(b), a.size());
    combine(op, run(other), run(b), run(a), a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      T right = nan;
      if (!std::isnan(a[i]) && !std::isnan(b[i])) {
        const bool first = a[i] < b[i] || (a[i] == b[i] && std::signbit(a[i]));  // is the smaller
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

}  // namespace
}  // namespace tutti::comm
