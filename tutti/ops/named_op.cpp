#include "tutti/ops/named_op.h"

namespace tutti {

Reach pointwise_reach(std::span<const ValueType> in, int axis, Rows out) {
  Reach reach;
  for (const ValueType& type : in)
    reach.in.push_back(type.batched ? Reach::Input{2 + axis, out} : Reach::Input{});
  return reach;
}

}  // namespace tutti
