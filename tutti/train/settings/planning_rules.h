#pragma once
// Rules for planning a run before it is run (Zou et al. 2017, docs/advise.md derives them). Times
// are seconds.

#include <cstdint>
#include <optional>

namespace tutti::train {

/// The cost of one worker's step: the time in which all workers compute in parallel, and the time
/// that they spend one after another on a shared resource, such as a server's link.
struct StepCost {
  double compute = 0, overhead = 0;
  double overhead_ratio() const { return overhead / compute; }
};

/// Returns the speed-up with `workers`: W (1 + R) / (1 + W R), where R is the overhead ratio.
double planned_speedup(const StepCost& cost, double workers);

/// Returns the most workers of which each still achieves `efficiency` times its speed alone, ((1 +
/// R) / efficiency - 1) / R rounded down, at least 1. Returns nothing for any number, without
/// overhead.
std::optional<int64_t> workers_for_efficiency(const StepCost& cost, double efficiency);

/// Returns the fewest servers whose links carry all workers' gradients and weights while the
/// workers compute: ceil(2 S W / (B T)). `seconds_per_byte` describes a server's link.
int64_t servers_to_hide(double weight_bytes, int64_t workers, double seconds_per_byte,
                        double compute);

}  // namespace tutti::train
