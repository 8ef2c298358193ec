#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "tests/multirank/matrix_cases.h"
#include "tutti/base/rng.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/codec/fp16.h"
#include "tutti/comm/tree.h"
#include "tutti/tensor/dtype.h"

namespace tutti {
namespace {

using comm::Collective;

constexpr size_t kCount = 777;

// Of different sizes, so that another order of additions gives other bits.
double value(int rank, size_t i) {
  Rng rng(3, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
  return static_cast<double>(rng.normal()) * std::ldexp(1.0, static_cast<int>(rng.below(12)));
}

template <class T, class Sum>
Sum sum_in_tree(comm::Range node, size_t i) {
  if (node.size() == 1)
    return static_cast<Sum>(static_cast<T>(static_cast<Sum>(value(node.lo, i))));
  const int mid = comm::split_point(node);
  return sum_in_tree<T, Sum>({node.lo, mid}, i) + sum_in_tree<T, Sum>({mid, node.hi}, i);
}

// T: what is stored; Sum: in what is added.
template <class T, class Sum>
size_t elements_off_the_tree(comm::Communicator& c, const Collected& what) {
  std::vector<T> input(kCount), output(kCount);
  for (size_t i = 0; i < kCount; ++i)
    input[i] = static_cast<T>(static_cast<Sum>(value(c.rank(), i)));
  comm::CollectiveSpec spec{.kind = what.kind,
                            .element = what.element,
                            .op = what.op,
                            .count = kCount,
                            .root = what.root,
                            .input = input.data(),
                            .output = output.data()};
  spec.algorithm = what.algorithm;
  spec.reproducible = true;
  spec.chunk = what.chunk;
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
    Sum sum = sum_in_tree<T, Sum>({0, c.size()}, mine.begin + i);
    if (what.op == comm::ReduceOp::mean) sum /= static_cast<Sum>(c.size());
    const T right = static_cast<T>(sum);
    wrong += std::memcmp(&output[i], &right, sizeof right) == 0 ? 0 : 1;
  }
  return wrong;
}

size_t run_bits(comm::Communicator& c, const Collected& what) {
  switch (what.element) {
    case comm::Element::f32: return elements_off_the_tree<float, float>(c, what);
    case comm::Element::f64: return elements_off_the_tree<double, double>(c, what);
    case comm::Element::bf16: return elements_off_the_tree<bf16, float>(c, what);
    default: return elements_off_the_tree<comm::fp16, float>(c, what);
  }
}

}  // namespace

std::vector<MatrixCase> bits_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for (const Collective kind :
       {Collective::reduce, Collective::allreduce, Collective::reduce_scatter})
    for (const comm::Algorithm* algorithm : comm::algorithms()) {
      comm::Task task;
      task.kind = kind, task.ranks = axes.ranks, task.nodes = axes.nodes, task.count = kCount;
      if (!algorithm->refusal(task).empty() || !algorithm->reproducible(task)) continue;
      for (const comm::Element element : axes.elements)
        for (const comm::ReduceOp op : {comm::ReduceOp::sum, comm::ReduceOp::mean})
          for (const size_t chunk : {0, 100}) {
            if (element == comm::Element::i8 || element == comm::Element::i32 ||
                element == comm::Element::byte)
              continue;
            if (chunk != 0 && kind == Collective::reduce_scatter) continue;
            const Collected what{.kind = kind,
                                 .algorithm = std::string(algorithm->name),
                                 .element = element,
                                 .op = op,
                                 .count = kCount,
                                 .root = axes.ranks / 2,
                                 .chunk = chunk};
            all.push_back({"bits of the tree: " + what.name(),
                           [what](comm::Communicator& c) { return run_bits(c, what); }});
          }
    }
  return all;
}

}  // namespace tutti
