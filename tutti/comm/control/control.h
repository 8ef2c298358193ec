#pragma once
// The control operations of a communicator, which need no plan: their names, as messages compare
// them.

#include <cstdint>

namespace tutti::comm {

enum class Control : uint32_t { barrier = 1, broadcast, allgather, combine };
/// "barrier"; of a number that is none of them, "unknown operation".
const char* name_of(Control kind);

}  // namespace tutti::comm
