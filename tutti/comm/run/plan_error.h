#pragma once
// PlanError: a request is refused before anything is sent.

#include "tutti/base/error.h"

namespace tutti::comm {

/// The request cannot be done, or is not the same on every rank. Nothing is planned, and the
/// communicator stays usable: so the caller has to change something, while any other CommError
/// reports that communication has failed. For a collective every rank gets an error; for a request
/// that concerns one rank alone, such as a message, only that rank.
class PlanError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace tutti::comm
