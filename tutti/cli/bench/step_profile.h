#pragma once
// Shows where the time of a training step goes, kernel by kernel: `tutti bench step --profile`.

#include <cstdint>

#include "tutti/cli/bench/step_bench.h"

namespace tutti::cli {

/// Runs the steps once more, with clocks around every kernel; the clocks cost time, so nothing else
/// is reported about these steps. The table goes to standard error where `print` is set.
/// Collective.
void print_profile(StepBench& bench, int64_t steps, bool print);

}  // namespace tutti::cli
