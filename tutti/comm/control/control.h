#pragma once
// The control operations of a communicator, which need no plan: their names and compared numbers.

#include <cstdint>

namespace tutti::comm {

enum class Control : uint32_t { barrier = 1, broadcast, allgather, combine };
/// Returns a name such as "barrier", or "unknown operation" for any other number.
const char* name_of(Control kind);

}  // namespace tutti::comm
