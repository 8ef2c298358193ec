#include <cmath>

#include "tests/multirank/matrix_reduction.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti {
namespace {

// Values differ in size, so that another order of additions gives other bits.
double value_of_any_size(int rank, size_t i) {
  Rng rng(3, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
  return static_cast<double>(rng.normal()) * std::ldexp(1.0, static_cast<int>(rng.below(12)));
}

template <class T, class Sum>
T stored(int rank, size_t i) {
  return static_cast<T>(static_cast<Sum>(value_of_any_size(rank, i)));
}

template <class T, class Sum>
Sum sum_in_tree(comm::Range node, size_t i) {
  if (node.size() == 1) return static_cast<Sum>(stored<T, Sum>(node.lo, i));
  const int mid = comm::split_point(node);
  return sum_in_tree<T, Sum>({node.lo, mid}, i) + sum_in_tree<T, Sum>({mid, node.hi}, i);
}

size_t run_bits(comm::Communicator& c, const Collected& what) {
  return with_types_of(what.element, [&]<class T, class Sum>(T, Sum) {
    return elements_unlike<T>(c, what, true, stored<T, Sum>, [&](size_t i) {
      Sum sum = sum_in_tree<T, Sum>({0, c.size()}, i);
      if (what.op == comm::ReduceOp::mean) sum /= static_cast<Sum>(c.size());
      return static_cast<T>(sum);
    });
  });
}

}  // namespace

std::vector<MatrixCase> bits_cases(const MatrixAxes& axes) {
  std::vector<MatrixCase> all;
  for_each_reduction(
      axes,
      [](const comm::Algorithm& algorithm, comm::Task task) {
        task.ordered = true;
        return algorithm.reproducible(task);
      },
      [&](Collected what) {
        for (const comm::ReduceOp op : {comm::ReduceOp::sum, comm::ReduceOp::mean})
          for (const size_t chunk : {0, 100}) {
            if (chunk != 0 && what.kind == comm::Collective::reduce_scatter) continue;
            what.op = op;
            what.chunk = chunk;
            all.push_back({"bits of the tree: " + what.name(),
                           [what](comm::Communicator& c) { return run_bits(c, what); }});
          }
      });
  return all;
}

}  // namespace tutti
