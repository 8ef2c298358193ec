#pragma once
// Turns errors of libtutticomm into exceptions that Python knows.

#include <tutti_comm.h>

#include <c10/util/Exception.h>

namespace tutti_torch {

/// Throws the exception for the `status` of the call just made: ValueError, MemoryError-like
/// RuntimeError or torch.distributed.DistBackendError, with the library's message.
inline void check(int status) {
  if (status == TUTTI_COMM_OK) return;
  if (status == TUTTI_COMM_ERROR_ARGUMENT)
    TORCH_CHECK_VALUE(false, "tutti: ", tutti_comm_last_error());
  TORCH_CHECK_WITH(DistBackendError, status != TUTTI_COMM_ERROR_FAILED,
                   "tutti: ", tutti_comm_last_error());
  TORCH_CHECK(false, "tutti: ", tutti_comm_status_name(status), ": ", tutti_comm_last_error());
}

}  // namespace tutti_torch
