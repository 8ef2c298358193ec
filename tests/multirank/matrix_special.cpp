#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/multirank/matrix_cases.h"
#include "tutti/base/rng.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/codec/fp16.h"
#include "tutti/tensor/dtype.h"

namespace tutti {
namespace {

using comm::Collective;

constexpr size_t kCount = 777;

// Mostly of few values, so that ranks have different zeros, and some have a NaN, at every element.
float value(int rank, size_t i) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::array<float, 12> values{0.f, -0.f, 0.f,       -0.f,       0.f,  -0.f,
                                     1.f, -1.f, kInfinity, -kInfinity, kNan, -kNan};
  Rng rng(5, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
  const uint32_t kinds = i % 3 == 0 ? 6 : i % 3 == 1 ? 10 : 12;
  return values[rng.below(kinds)];
}

// -0 is less than +0, and a NaN is the result wherever there is one.
float right_of(comm::ReduceOp op, int ranks, size_t i) {
  float result = value(0, i);
  bool nan = std::isnan(result);
  for (int p = 1; p < ranks; ++p) {
    const float x = value(p, i);
    nan = nan || std::isnan(x);
    const bool less = x < result || (x == result && std::signbit(x));
    if (less == (op == comm::ReduceOp::min)) result = x;
  }
  return nan ? std::numeric_limits<float>::quiet_NaN() : result;
}

template <class T>
size_t elements_wrong(comm::Communicator& c, const Collected& what) {
  if (c.size() == 1) return 0;
  std::vector<T> input(kCount), output(kCount);
  for (size_t i = 0; i < kCount; ++i) input[i] = static_cast<T>(value(c.rank(), i));
  comm::CollectiveSpec spec{.kind = what.kind,
                            .element = what.element,
                            .op = what.op,
                            .count = kCount,
                            .root = what.root,
                            .input = input.data(),
                            .output = output.data()};
  spec.algorithm = what.algorithm;
  comm::Slice mine{0, what.kind == Collective::reduce && c.rank() != what.root ? 0 : kCount};
  if (what.kind == Collective::reduce_scatter) {
    spec.parts = comm::balanced_parts(kCount, c.size());
    mine = spec.parts[static_cast<size_t>(c.rank())];
  }
  const auto operation = c.plan(spec);
  operation->start();
  operation->wait();
  size_t wrong = 0;
  for (size_t i = 0; i < mine.count; ++i) {
    const T right = static_cast<T>(right_of(what.op, c.size(), mine.begin + i));
    wrong += std::memcmp(&output[i], &right, sizeof right) == 0 ? 0 : 1;
  }
  return wrong;
}

size_t run_special(comm::Communicator& c, const Collected& what) {
  switch (what.element) {
    case comm::Element::f32: return elements_wrong<float>(c, what);
    case comm::Element::f64: return elements_wrong<double>(c, what);
    case comm::Element::bf16: return elements_wrong<bf16>(c, what);
    default: return elements_wrong<comm::fp16>(c, what);
  }
}

}  // namespace

std::vector<MatrixCase> special_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for (const Collective kind :
       {Collective::reduce, Collective::allreduce, Collective::reduce_scatter})
    for (const comm::Algorithm* algorithm : comm::algorithms()) {
      comm::Task task;
      task.kind = kind, task.ranks = axes.ranks, task.nodes = axes.nodes, task.count = kCount;
      if (!algorithm->refusal(task).empty()) continue;
      for (const comm::Element element : axes.elements)
        for (const comm::ReduceOp op : {comm::ReduceOp::min, comm::ReduceOp::max}) {
          if (element == comm::Element::i8 || element == comm::Element::i32 ||
              element == comm::Element::byte)
            continue;
          const Collected what{.kind = kind,
                               .algorithm = std::string(algorithm->name),
                               .element = element,
                               .op = op,
                               .count = kCount,
                               .root = axes.ranks / 2};
          all.push_back({"NaN, infinities and both zeros: " + what.name(),
                         [what](comm::Communicator& c) { return run_special(c, what); }});
        }
    }
  return all;
}

}  // namespace tutti
