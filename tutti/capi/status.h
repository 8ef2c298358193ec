#pragma once
// The border of the library: C++ exceptions become status codes and a text, here and nowhere else.

#include <atomic>

#include "tutti/base/error.h"
#include "tutti/capi/tutti_comm.h"

namespace tutti::capi {

/// A call out of order.
class StateError : public Error {
 public:
  using Error::Error;
};

/// The status for the exception being handled: ARGUMENT for ConfigError and PlanError, FAILED for
/// any other CommError. Its text becomes this thread's last error; texts beyond 4 KiB are cut.
/// `failed`, which may be null, is set by a CommError.
int fail(std::atomic<bool>* failed) noexcept;

/// Runs the body of a function of the interface. `failed`: failure_of() what it works with, which
/// lives longer than the call.
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

/// *pointer, where the caller had to give one. Throws ConfigError with the parameter's name.
template <class T>
T& given(T* pointer, const char* parameter) {
  if (pointer == nullptr) throw ConfigError(fmt::format("{} is NULL", parameter));
  return *pointer;
}

}  // namespace tutti::capi
