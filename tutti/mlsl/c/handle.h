#pragma once
// Common parts of the functions of mlsl.h: a handle is the address of an object of tutti::mlsl, and
// an exception becomes CMLSL_FAILURE.

#include <type_traits>

#include "tutti/mlsl/entry.h"
#include "tutti/mlsl/mlsl.h"

namespace tutti::mlsl::c {

using Handle = unsigned long long;

// Returns the object of a handle, or null for handle 0.
template <class T>
T* or_null(Handle handle) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

template <class T>
T& object(Handle handle) {
  demand(handle != 0, "an object is needed, and the handle is 0");
  return *or_null<T>(handle);
}

template <class T>
Handle handle_or_zero(T* object) {
  return static_cast<Handle>(reinterpret_cast<uintptr_t>(object));
}

template <class T>
Handle handle_of(T& object) {
  return handle_or_zero(&object);
}

inline api::CommReq* request(mlsl_comm_req handle) { return or_null<api::CommReq>(handle); }
inline api::DataType data(mlsl_data_type type) { return static_cast<api::DataType>(type); }
inline api::GroupType group(mlsl_group_type type) { return static_cast<api::GroupType>(type); }
inline api::ReductionType reduction(mlsl_reduction_type type) {
  return static_cast<api::ReductionType>(type);
}

template <class T>
void put(T* place, std::type_identity_t<T> value) {
  demand(place != nullptr, "there is nowhere to put the answer: an argument is null");
  *place = value;
}

template <class Call>
int attempt(Call&& call) noexcept {
  try {
    call();
    return CMLSL_SUCCESS;
  } catch (const std::exception& error) {
    report(error);
    return CMLSL_FAILURE;
  }
}

// Calls call(object) with the object of the handle.
template <class T, class Call>
int with(Handle handle, Call&& call) noexcept {
  return attempt([&] { call(object<T>(handle)); });
}

// Calls start(distribution), and stores the handle of the request that it returns in `req`.
template <class Start>
int start_in(mlsl_distribution dist, mlsl_comm_req* req, Start&& start) noexcept {
  return attempt([&] {
    demand(req != nullptr, "there is nowhere to put the request");
    *req = handle_of(*start(object<Distribution>(dist)));
  });
}

}  // namespace tutti::mlsl::c
