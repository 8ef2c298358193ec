#pragma once
// The ranks that eval and infer run as: groups of parallel.spatial ranks that share each sample. A
// rank that runs alone has whole samples, whatever trained the weights.

#include <optional>

#include "tutti/cli/job/job.h"
#include "tutti/split/grid.h"
#include "tutti/train/network/given_weights.h"

namespace tutti::cli {

/// Works as launch_ranks() for these verbs, with the threads of the weights' run (take_threads).
std::optional<int> launch_evaluation(int ranks, const train::FoundWeights& found,
                                     config::RunConfig& config);

class EvaluationRanks {
 public:
  /// Collective. `one_group`: the first group does all; the other ranks have nothing to do. Sets
  /// run.threads of `config` to the threads of a rank. Throws ConfigError where the ranks cannot be
  /// divided into groups.
  EvaluationRanks(config::RunConfig& config, const train::FoundWeights& found, bool one_group);

  bool idle() const { return idle_; }  ///< this rank has nothing to do
  bool first() const { return communicator().rank() == 0; }
  comm::Communicator& communicator() const { return group_ ? *group_ : job_.communicator(); }
  const split::PartGrid& grid() const { return grid_; }

 private:
  const Job job_;
  split::PartGrid grid_;
  bool idle_ = false;
  std::unique_ptr<comm::Communicator> group_;  // set where one group does all
};

}  // namespace tutti::cli
