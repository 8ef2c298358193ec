#include "tutti/ops/named_op.h"

namespace tutti::ops {

Reach pointwise_reach(Types in, int axis, Rows out) {
  Reach reach;
  for (const ValueType& type : in)
    reach.in.push_back(type.batched ? Reach::Input{2 + axis, out} : Reach::Input{});
  return reach;
}

}  // namespace tutti::ops
