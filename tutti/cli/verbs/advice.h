#pragma once
// The facts that `tutti advise` finds about a configuration: the step as it is here, the planning
// rules (train/settings/planning_rules.h), and the virtual clock beside them. docs/advise.md
// derives the rules.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/json_forward.h"
#include "tutti/cli/job/compute_backend.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/trace/machine_use.h"

namespace tutti::cli {

/// A scheme of meetings between replicas, and the configuration that selects it.
struct AdvisedScheme {
  std::string name;
  config::RunConfig config;
};

struct AdviceQuestion {
  config::RunConfig config;                 ///< with the number of threads chosen
  std::vector<AdvisedScheme> schemes = {};  ///< to be replayed on the machine
  std::optional<comm::Machine> machine{};
  double efficiency = 0.8;            ///< the efficiency that workers should reach
  int64_t memory_bytes = 0;           ///< memory of a rank or its device
  std::vector<int64_t> batches = {};  ///< the batches to examine
  int steps = 5;                      ///< timed steps of each batch
  std::vector<int64_t> workers = {};  ///< the numbers of workers to examine
};

/// Results for one batch size of a replica, from its plan and a few steps.
struct BatchAdvice {
  int64_t batch = 0;
  double planned_bytes = 0;     ///< weights, states, gradients, activations, scratch; 0: unknown
  double measured_bytes = 0;    ///< growth of the process, or of what it has of the device
  double step_seconds = 0;      ///< the median; 0: not timed, it does not fit
  std::vector<double> steps{};  ///< seconds of each timed one
  double update_seconds = 0;    ///< the part of it after the backward pass
  double samples_per_s() const {
    return step_seconds > 0 ? static_cast<double>(batch) / step_seconds : 0;
  }
};

struct WorkerAdvice {
  int64_t workers = 0;
  double rule_speedup = 0;
  int64_t servers = 0;
  /// By the virtual clock, for each scheme; empty where a scheme does not allow that many workers.
  std::vector<std::optional<double>> replayed_speedups = {};
};

struct Advice {
  std::string model{}, machine{};
  int64_t batch = 0;                                  ///< the configuration's
  int64_t micro_batches = 1;                          ///< micro-batches of a replica in a
                                                      ///< step, whose gradients are added up
  double parameters = 0, weight_bytes = 0, flop = 0;  ///< flop: in a replica's step
  double efficiency = 0, memory_bytes = 0;
  double compute = 0, overhead = 0;  ///< seconds of a step at that batch, on the machine
  bool compute_measured = false;     ///< measured here, instead of the machine's own value
  std::vector<BatchAdvice> batches{};
  int64_t best_batch = 0;  ///< the smallest of those that fit and are as fast as any; 0: none fits
  std::vector<int64_t> as_fast{};       ///< batches that may be as fast as the fastest
  trace::MachineUse machine_use{};      ///< while steps were timed
  std::vector<WorkerAdvice> workers{};  ///< with a machine
  std::optional<int64_t> workers_by_rule{};
  /// For a scheme: the most workers, of those examined, that reach the efficiency.
  struct ByClock {
    std::string scheme;
    std::optional<int64_t> workers{};
    bool ends = false;  ///< more workers than were examined might reach it, too
  };
  std::vector<ByClock> by_clock{};
  std::string workers_left_out{};  ///< why there are none although there is a machine; else empty
};

/// Compiles the network and times steps of it on random data, alone, with the back end of the
/// question's configuration. Throws as compile_network does, and DeviceError where a device has no
/// memory for the smallest batch.
Advice advise(const AdviceQuestion& question, const ComputeBackend& compute);

/// Fills in `best_batch` and `as_fast`: batches are told apart where their median speeds differ by
/// more than 10 %, or the 90 % interval of the ratio of their speeds leaves 1 out.
void choose_batch(Advice& advice);

std::string advice_text(const Advice& advice);
Json advice_json(const Advice& advice);

}  // namespace tutti::cli
