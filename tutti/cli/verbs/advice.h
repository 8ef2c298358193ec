#pragma once
// What `tutti advise` finds out about a configuration: the step as it is here, the planning rules
// (train/settings/planning_rules.h), and the virtual clock beside them. docs/advise.md derives the
// rules.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/json_forward.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/trace/machine_use.h"

namespace tutti {

/// A way in which replicas meet, and the configuration that says so.
struct AdvisedScheme {
  std::string name;
  RunConfig config;
};

struct AdviceQuestion {
  RunConfig config;                         ///< threads chosen
  std::vector<AdvisedScheme> schemes = {};  ///< to be replayed on the machine
  std::optional<comm::Machine> machine{};
  double efficiency = 0.8;            ///< that workers are to reach
  int64_t memory_bytes = 0;           ///< of a rank
  std::vector<int64_t> batches = {};  ///< to look at
  int steps = 5;                      ///< timed ones, of each batch
  std::vector<int64_t> workers = {};  ///< to look at
};

/// A batch of a replica, as its plan and a few steps say.
struct BatchAdvice {
  int64_t batch = 0;
  double planned_bytes = 0;     ///< weights, states, gradients, activations and scratch
  double measured_bytes = 0;    ///< that the process has grown by
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
  /// By the virtual clock, of each scheme; nothing of one that so many workers cannot have.
  std::vector<std::optional<double>> replayed_speedups = {};
};

struct Advice {
  std::string model{}, machine{};
  int64_t batch = 0;                                  ///< the configuration's
  int64_t turns = 1;                                  ///< of a replica in a step: batches added up
  double parameters = 0, weight_bytes = 0, flop = 0;  ///< flop: of a replica's step
  double efficiency = 0, memory_bytes = 0;
  double compute = 0, overhead = 0;  ///< of a step at that batch, on the machine
  bool compute_measured = false;     ///< here, and not the machine's own
  std::vector<BatchAdvice> batches{};
  int64_t best_batch = 0;  ///< of those that fit and are as fast as any, the smallest; 0: none fits
  std::vector<int64_t> as_fast{};       ///< batches whose steps cannot be told from the fastest's
  MachineUse machine_use{};             ///< while steps were timed
  std::vector<WorkerAdvice> workers{};  ///< with a machine
  std::optional<int64_t> workers_by_rule{};
  /// Of a scheme: the most workers of those looked at that reach the efficiency.
  struct ByClock {
    std::string scheme;
    std::optional<int64_t> workers{};
    bool ends = false;  ///< more than were looked at might do as well
  };
  std::vector<ByClock> by_clock{};
  std::string workers_left_out{};  ///< why there are none although there is a machine; else empty
};

/// Compiles the network and times steps of it on random data, alone. Throws as compile_network
/// does.
Advice advise(const AdviceQuestion& question);

/// Fills in `best_batch` and `as_fast`: batches are told apart where their median speeds differ by
/// more than 10 %, or the 90 % interval of the ratio of their speeds leaves 1 out.
void choose_batch(Advice& advice);

std::string advice_text(const Advice& advice);
Json advice_json(const Advice& advice);

}  // namespace tutti
