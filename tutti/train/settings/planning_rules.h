#pragma once
// Rules for planning a run before it is run (Zou et al. 2017, docs/advise.md derives them). Times
// are seconds.

#include <cstdint>
#include <optional>

namespace tutti {

/// What one worker's step takes: what all workers do at the same time, and what they do one after
/// another because they share it, as the link of a server.
struct StepCost {
  double compute = 0, overhead = 0;
  double overhead_ratio() const { return overhead / compute; }
};

/// How many times as fast `workers` are: W (1 + R) / (1 + W R), R the overhead ratio.
double planned_speedup(const StepCost& cost, double workers);

/// The most workers of which each still does `efficiency` of what it does alone,
/// ((1 + R) / efficiency - 1) / R rounded down, at least 1. Nothing: any number, there is no
/// overhead.
std::optional<int64_t> workers_for_efficiency(const StepCost& cost, double efficiency);

/// The fewest servers whose links carry all workers' gradients and weights while the workers
/// compute: ceil(2 S W / (B T)). `seconds_per_byte`: of a server's link.
int64_t servers_to_hide(double weight_bytes, int64_t workers, double seconds_per_byte,
                        double compute);

}  // namespace tutti
