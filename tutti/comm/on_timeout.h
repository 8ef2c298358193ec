#pragma once
// OnTimeout: how a wait reacts when its time-out passes.

#include <cstdint>

namespace tutti::comm {

enum class OnTimeout : uint8_t {
  abort,  ///< it fails with a CommError
  go_on,  ///< it logs its report as a warning, once per time-out, and goes on
};

}  // namespace tutti::comm
