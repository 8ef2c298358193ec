#pragma once
// Shared by cases that compare every bit of a reduction of real numbers with plain arithmetic.

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/multirank/matrix_cases.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/compress/codec/fp16.h"
#include "tutti/tensor/dtype.h"

namespace tutti {

inline constexpr size_t kReducedCount = 777;

/// Reduces rank p's input(p, i) and returns how many elements of this rank's part of the result
/// have other bits than right(i). T is the stored type.
template <class T, class Input, class Right>
size_t elements_unlike(comm::Communicator& c, const Collected& what, bool reproducible,
                       const Input& input_of, const Right& right_of) {
  std::vector<T> input(kReducedCount), output(kReducedCount);
  for (size_t i = 0; i < kReducedCount; ++i) input[i] = input_of(c.rank(), i);
  comm::CollectiveSpec spec{.kind = what.kind,
                            .element = what.element,
                            .op = what.op,
                            .count = kReducedCount,
                            .root = what.root,
                            .input = input.data(),
                            .output = output.data()};
  spec.algorithm = what.algorithm;
  spec.reproducible = reproducible;
  spec.chunk = what.chunk;
  const bool without = what.kind == comm::Collective::reduce && c.rank() != what.root;
  comm::Slice mine{0, without ? 0 : kReducedCount};
  if (what.kind == comm::Collective::reduce_scatter) {
    spec.parts = comm::balanced_parts(kReducedCount, c.size());
    mine = spec.parts[static_cast<size_t>(c.rank())];
  }
  c.plan(spec)->run();
  size_t wrong = 0;
  for (size_t i = 0; i < mine.count; ++i) {
    const T right = right_of(mine.begin + i);
    wrong += std::memcmp(&output[i], &right, sizeof right) == 0 ? 0 : 1;
  }
  return wrong;
}

/// Calls run(T{}, Sum{}) with the types in which an element is stored and added.
template <class Run>
size_t with_types_of(comm::Element element, const Run& run) {
  switch (element) {
    case comm::Element::f32: return run(float{}, float{});
    case comm::Element::f64: return run(double{}, double{});
    case comm::Element::bf16: return run(bf16{}, float{});
    default: return run(comm::fp16{}, float{});
  }
}

/// Calls add(what) for each reducing collective, each algorithm that supports it and is `wanted`,
/// and each element type of real numbers.
inline void for_each_reduction(
    const MatrixAxes& axes,
    const std::function<bool(const comm::Algorithm&, const comm::Task&)>& wanted,
    const std::function<void(const Collected&)>& add) {
  using comm::Collective;
  for (const Collective kind :
       {Collective::reduce, Collective::allreduce, Collective::reduce_scatter})
    for (const comm::Algorithm* algorithm : comm::algorithms()) {
      comm::Task task;
      task.kind = kind, task.ranks = axes.ranks, task.node_of = axes.node_of;
      task.count = kReducedCount;
      if (!algorithm->refusal(task).empty() || !wanted(*algorithm, task)) continue;
      for (const comm::Element element : axes.elements)
        if (element != comm::Element::i8 && element != comm::Element::i32 &&
            element != comm::Element::byte && element != comm::Element::i64 &&
            element != comm::Element::u8)
          add({.kind = kind,
               .algorithm = std::string(algorithm->name),
               .element = element,
               .count = kReducedCount,
               .root = axes.ranks / 2});
    }
}

}  // namespace tutti
