#include "tutti/comm/reduction.h"

#include <algorithm>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

Reduction::Reduction(Communicator& communicator, ReductionSpec spec) : Operation(communicator, spec.name), spec_(std::move(spec)) {}

Range Reduction::slice(int rank) const {
  constexpr size_t kLineFloats = 16;
  const size_t lines = (spec_.count + kLineFloats - 1) / kLineFloats;
  const auto bound = [&](int p) {
    return static_cast<int>(std::min(spec_.count, lines * static_cast<size_t>(p) / static_cast<size_t>(communicator().size()) * kLineFloats));
  };
  return {bound(rank), bound(rank + 1)};
}

}  // namespace tutti::comm
