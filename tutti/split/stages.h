#pragma once
// Stages of a pipeline: ranks that have the layers of one replica, some each, and compute one
// micro-batch after another. A forward graph is cut into runs of nodes. What a stage makes and a
// later one reads is sent there, whichever it is (ExchangeStages); by differentiation its gradient
// comes back, and so each stage has the backward pass of its own layers.

#include <map>
#include <string>
#include <vector>

#include "tutti/ops/fusion/fuse.h"

namespace tutti {

/// Which nodes of a forward graph each stage has.
struct Stages {
  int count = 1;
  std::vector<int> of_node;
  /// Of parameters and statistics, by name: those who read it, in their order.
  std::map<std::string, std::vector<int>> of_variable;
};

/// A trained parameter that several stages have.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;
  int number = 0;  ///< among those of the model
};

/// Runs of nodes, so that the slowest stage is as fast as can be by the operations of its nodes
/// (Op::flop) and the bytes that come in, and among such cuts fewest bytes cross. All nodes that
/// read a statistic are in one stage, as are those that read a sum over samples with the one that
/// makes it. A parameter that several stages read, each has. ConfigError where there are fewer
/// places to cut at.
Stages cut_into_stages(const Graph& forward, int stages);

/// The same stages of another graph of the same model, as evaluation has it: a node is where its
/// variables are, or else where the last of its inputs is made; of stages that have its variable in
/// the first one that this allows.
Stages stages_like(const Graph& forward, const Stages& cut);

/// The graph of one stage, before differentiate. Inputs and variables are those that its nodes
/// read. `trained`: by value, whether it has a gradient that goes back; empty: nothing has.
Rewritten take_stage(const Graph& forward, const Stages& cut, int stage,
                     const std::vector<bool>& trained);

/// In which order a stage computes the forward and backward passes of its micro-batches.
enum class PipelineOrder {
  one_f_one_b,  ///< in turns, as soon as the last stage has the first one (Narayanan et al. 2019)
  gpipe         ///< all forward passes first (Huang et al. 2018)
};

/// Micro-batches of which a stage keeps activations at a time: it computes the forward passes of as
/// many, then in turns the oldest backward pass and a forward pass. The last stage goes back at
/// once, in either order.
int batches_under_way(PipelineOrder order, int stages, int stage, int batches);

/// The share of a step in which a stage has nothing to do, where all take equally long:
/// (S - 1) / (M + S - 1).
double pipeline_bubble(int stages, int batches);

}  // namespace tutti
