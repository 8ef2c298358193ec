#pragma once
// Where the time of a training step goes, kernel by kernel: `tutti bench step --profile`.

#include <cstdint>

#include "tutti/cli/bench/step_bench.h"

namespace tutti {

/// Collective. Runs the steps once more, with clocks around every kernel; those cost time, so
/// nothing else is reported of them. The table goes to standard error where `print` is set.
void print_profile(StepBench& bench, int64_t steps, bool print);

}  // namespace tutti
