#include "tutti/ops/named_op.h"

namespace tutti::ops {

graph::Reach pointwise_reach(graph::Types in, int axis, graph::Rows out) {
  graph::Reach reach;
  for (const graph::ValueType& type : in)
    reach.in.push_back(type.batched ? graph::Reach::Input{2 + axis, out} : graph::Reach::Input{});
  return reach;
}

}  // namespace tutti::ops
