#pragma once
// Compares a backend's kernels with the reference, and times them.

#include <span>
#include <string>
#include <vector>

#include "tutti/backend/conformance/op_case.h"

namespace tutti::backend {

struct ConformanceReport {
  int runs = 0;                       ///< kernel x layout x tile x threads combinations compared
  std::vector<std::string> failures;  ///< differences, each with the line that repeats it
  std::vector<std::string> refusals;  ///< check_on_devices: layouts that no kernel takes, with why
};

/// Runs the case on every accepted kernel of `backend`, but for slow ones of long cases, in every
/// activation layout that it offers, with the whole batch on one thread and with small tiles on
/// three. A value v may differ from the reference by tolerance * (|v| + root mean square of the
/// operand), 3e-5 for f32 and 1.5e-2 where bf16 takes part.
ConformanceReport check_conformance(const OpCase& op_case, const Backend& backend);

/// Runs the case on every accepted kernel, but for slow ones of long cases, of backends that are
/// alike but for their devices, in every activation layout that they offer, with the limits of
/// check_conformance; all must give the same bits. On the last one the work is recorded and
/// replayed.
ConformanceReport check_on_devices(const OpCase& op_case, std::span<const Backend* const> alike);

struct OpTiming {
  std::string kernel, layout;
  double seconds = 0;  ///< median of one run, whole batch
  double flop = 0;     ///< nominal, 0 if not counted
  size_t bytes = 0;    ///< total of all operands
};

/// Times the first accepted kernel in every layout that the backend offers. At least
/// `least_seconds` are spent on each layout.
std::vector<OpTiming> time_op(const OpCase& op_case, const Backend& backend, int threads,
                              double least_seconds);

}  // namespace tutti::backend
