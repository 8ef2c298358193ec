#pragma once
// Converts C++ exceptions into status codes and a text, at the border of the library.

#include <atomic>

#include "tutti/base/error.h"
#include "tutti/capi/tutti_comm.h"

namespace tutti::capi {

/// A call in the wrong order.
class StateError : public Error {
 public:
  using Error::Error;
};

/// Returns the status for the exception being handled: ARGUMENT for ConfigError and PlanError,
/// FAILED for any other CommError. Its text becomes this thread's last error; texts beyond 4 KiB
/// are cut. A CommError sets `failed`, which may be null.
int fail(std::atomic<bool>* failed) noexcept;

/// Runs the body of an interface function. `failed` is failure_of() the handle that it uses, which
/// outlives the call.
template <class Body>
int guarded(std::atomic<bool>* failed, Body&& body) noexcept {
  try {
    body();
    return TUTTI_COMM_OK;
  } catch (...) {
    return fail(failed);
  }
}
template <class Body>
int guarded(Body&& body) noexcept {
  return guarded(nullptr, body);
}

/// Returns *pointer. Throws ConfigError with the parameter's name if the pointer is null.
template <class T>
T& given(T* pointer, const char* parameter) {
  if (pointer == nullptr) throw ConfigError(fmt::format("{} is NULL", parameter));
  return *pointer;
}

}  // namespace tutti::capi
