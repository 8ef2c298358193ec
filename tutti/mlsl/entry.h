#pragma once
// The basis of both interfaces: the one environment of the process, and how an error leaves the
// library.

#include <exception>
#include <utility>

#include "tutti/mlsl/environment.h"

namespace tutti::mlsl {

/// Returns the environment. It is never destroyed: a destructor after main() could not end MPI.
Environment& process_environment();

/// Prints `MLSL: rank r: message` on stderr.
void report(const std::exception& error) noexcept;
/// Does the same, and ends all processes of the job with exit code 1.
[[noreturn]] void end_job(const std::exception& error) noexcept;

/// Returns call(); its exceptions end the job.
template <class Call>
auto guarded(Call&& call) noexcept {
  try {
    return std::forward<Call>(call)();
  } catch (const std::exception& error) {
    end_job(error);
  }
}

}  // namespace tutti::mlsl
