#include <array>
#include <cmath>
#include <limits>

#include "tests/multirank/matrix_reduction.h"
#include "tutti/base/numeric/rng.h"

namespace tutti {
namespace {

// Returns mostly few different values, so that ranks have different zeros, and some have a NaN, at
// every element.
float special_value(int rank, size_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 12> values{0.f, -0.f, 0.f,       -0.f,       0.f,  -0.f,
                                     1.f, -1.f, kInfinity, -kInfinity, kNan, -kNan};
  Rng rng(5, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
  const uint32_t kinds = i % 3 == 0 ? 6 : i % 3 == 1 ? 10 : 12;
  return values[rng.below(kinds)];
}

// -0 is less than +0, and the result is NaN if any value is.
float right_of(comm::ReduceOp op, int ranks, size_t i) {
  float result = special_value(0, i);
  bool nan = std::isnan(result);
  for (int p = 1; p < ranks; ++p) {
    const float x = special_value(p, i);
    nan = nan || std::isnan(x);
    const bool less = x < result || (x == result && std::signbit(x));
    if (less == (op == comm::ReduceOp::min)) result = x;
  }
  return nan ? std::numeric_limits<float>::quiet_NaN() : result;
}

size_t run_special(comm::Communicator& c, const Collected& what) {
  if (c.size() == 1) return 0;
  return with_types_of(what.element, [&]<class T, class Sum>(T, Sum) {
    return elements_unlike<T>(
        c, what, false, [](int rank, size_t i) { return static_cast<T>(special_value(rank, i)); },
        [&](size_t i) { return static_cast<T>(right_of(what.op, c.size(), i)); });
  });
}

}  // namespace

std::vector<MatrixCase> special_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for_each_reduction(
      axes, [](const comm::Algorithm&, const comm::Task&) { return true; },
      [&](Collected what) {
        for (const comm::ReduceOp op : {comm::ReduceOp::min, comm::ReduceOp::max}) {
          what.op = op;
          all.push_back({"NaN, infinities and both zeros: " + what.name(),
                         [what](comm::Communicator& c) { return run_special(c, what); }});
        }
      });
  return all;
}

}  // namespace tutti
