#pragma once
// PlanError: what is asked for is refused before anything is sent.

#include "tutti/base/error.h"

namespace tutti::comm {

/// What is asked for cannot be done, or is not the same on every rank. Nothing is planned, and the
/// communicator stays usable: so it is the caller who is to change something, while any other
/// CommError says that communication has failed. Of a collective every rank gets an error; of what
/// concerns one rank alone, such as a message, only that one.
class PlanError : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace tutti::comm
