#pragma once
// Stages of a pipeline: ranks among which the layers of one replica are divided, and which compute
// one micro-batch after another. A forward graph is cut into sequences of nodes. A value that a
// later stage reads is sent directly to that stage (ExchangeStages); by differentiation its
// gradient comes back, so each stage has the backward pass of its own layers.

#include <map>
#include <string>
#include <vector>

#include "tutti/ops/fusion/fuse.h"

namespace tutti::split {

/// The nodes of a forward graph that each stage has.
struct Stages {
  int count = 1;
  std::vector<int> of_node;
  /// The stages that read a parameter or statistic, in order, by its name.
  std::map<std::string, std::vector<int>> of_variable;
};

/// A trained parameter that several stages have.
struct SharedParameter {
  std::string name;
  std::vector<int> stages;
  int number = 0;  ///< index among the model's shared parameters
};

/// Cuts the graph into sequences of nodes such that the slowest stage is as fast as possible,
/// counting the operations of its nodes (Op::flop) and the bytes that it receives; among such cuts
/// the fewest bytes cross. All nodes that read a statistic are in one stage, as are those that read
/// a sum over samples with the node that makes it. Each stage that reads a parameter has it. Throws
/// ConfigError if there are too few places to cut at.
Stages cut_into_stages(const graph::Graph& forward, int stages);

/// Returns the same stages for another graph of the same model, such as that of evaluation: a node
/// is in the stage of its variables, or else where the last of its inputs is made. If several
/// stages have its variable, it is in the first of them that its inputs allow.
Stages stages_like(const graph::Graph& forward, const Stages& cut);

/// Returns the graph of one stage, before differentiate(). Its inputs and variables are those that
/// its nodes read. `trained`: by value, whether its gradient goes back; empty: no gradients.
ops::Rewritten take_stage(const graph::Graph& forward, const Stages& cut, int stage,
                          const std::vector<bool>& trained);

/// The order in which a stage computes the forward and backward passes of its micro-batches.
enum class PipelineOrder {
  one_f_one_b,  ///< alternately, once the last stage has the first one (Narayanan et al. 2019)
  gpipe         ///< all forward passes first (Huang et al. 2018)
};

/// Returns the number of micro-batches whose activations a stage keeps at a time. It computes that
/// many forward passes, then alternately the oldest backward pass and a forward pass. In either
/// order the last stage computes each backward pass at once.
int batches_under_way(PipelineOrder order, int stages, int stage, int batches);

/// Returns the share of a step in which a stage is idle if all stages take equally long: (S - 1) /
/// (M + S - 1).
double pipeline_bubble(int stages, int batches);

}  // namespace tutti::split
