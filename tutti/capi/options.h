#pragma once
// Reads options structs of callers that were compiled with this, an earlier or a later header.

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tutti/capi/status.h"

namespace tutti::capi {

/// Returns the given options, with zeros for members that the caller's header did not have; null:
/// all zeros. `first_size` is the size of the struct in the first header that had it. Throws
/// ConfigError for a smaller size, and if a member of a later header is set, because it cannot be
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
