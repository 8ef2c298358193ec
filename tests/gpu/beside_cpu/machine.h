#pragma once
// Machine: a network's plan on one backend, which makes single steps from weights that it is given,
// and shows all that a step makes.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/gpu/beside_cpu/networks.h"
#include "tutti/backend/backend.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/network/weights.h"

namespace tutti::test {

/// Tensors by the names that they have in the graph.
using Named = std::map<std::string, Numbers>;

/// All that one step makes.
struct MadeStep {
  double loss = 0;
  Named gradients;
  Named variables;  ///< parameters, statistics and optimizer state after the update
  std::map<int32_t, Numbers> compared;  ///< by value; only from a watched machine
};

/// Whether two steps have the same bits.
bool same_bits(const MadeStep& a, const MadeStep& b);

/// Whether the op ends in a ReLU, leaky ones included, which compares each element with 0.
bool is_rectifier(const graph::Op& op);
/// Whether the op finds the largest element of windows.
bool is_maximum(const graph::Op& op);

/// A step that is to be made.
struct StepToMake {
  int64_t number = 0;  ///< counts updates from 0
  double rate = 0;     ///< learning rate
};

/// Whether a machine keeps the results of ReLUs and what maxima are taken of. For that its graph
/// has more nodes, which change nothing else, and a pass runs band by band.
enum class Watched { no, yes };

class Machine {
 public:
  /// Plans for one thread, whole batches and channels last. `backend` must outlive it.
  Machine(train::TrainingGraph training, const backend::Backend& backend,
          Watched watched = Watched::no);
  ~Machine();

  /// Returns parameters, statistics and optimizer state.
  Named variables() const;
  void set_variables(const Named& variables);
  MadeStep make(const StepToMake& step, const std::vector<Numbers>& batch);
  const plan::Plan& plan() const { return plan_; }

 private:
  class Gradients;
  /// Calls f(name, variable, arena) for all that training keeps.
  template <class F>
  void for_each_variable(F f) const;
  void bind(const std::vector<Numbers>& batch);
  void pass(const backend::StepInfo& info, MadeStep& made);
  /// Keeps what the band makes and nodes compare.
  void keep_compared(const plan::PlanBand& band, MadeStep& made);

  const std::vector<int32_t> compared_;  // numbers of values; empty: the machine is not watched
  const train::TrainingGraph training_;
  const plan::Plan plan_;
  train::Weights weights_;
  device::Buffer gradients_;
  std::vector<std::vector<std::byte>> inputs_;
  std::unique_ptr<Gradients> exchange_;
  std::unique_ptr<plan::Executor> executor_;
};

}  // namespace tutti::test
