#pragma once
// Options structs of callers that were compiled with this header, an earlier or a later one.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tutti/capi/status.h"

namespace tutti::capi {

/// What `given` says, with zeros for members that the caller's header did not know; null: all
/// zeros. `first_size`: of the struct in the first header that had it. Throws ConfigError for a
/// size that no header had, and for a member of a later header that is in use: it cannot be
/// honoured.
template <class Options>
Options read_options(const Options* given, size_t first_size) {
  Options options{};
  if (given != nullptr) {
    if (given->size < first_size)
      throw ConfigError(
          fmt::format("options of {} bytes, there are at least {}: `size` has to be set",
                      given->size, first_size));
    const auto* bytes = reinterpret_cast<const unsigned char*>(given);
    if (std::any_of(bytes + std::min(sizeof options, given->size), bytes + given->size,
                    [](unsigned char byte) { return byte != 0; }))
      throw ConfigError(fmt::format("an option is set that this library, {}.{}.{}, does not have",
                                    TUTTI_COMM_VERSION_MAJOR, TUTTI_COMM_VERSION_MINOR,
                                    TUTTI_COMM_VERSION_PATCH));
    std::memcpy(&options, given, std::min(sizeof options, given->size));
  }
  options.size = sizeof options;
  return options;
}

}  // namespace tutti::capi
