#pragma once
// Runs one forward and backward pass of small CosmoFlow and DeepCAM networks on a plan, with
// results in plain form: for tests, and for a file with which benchmarks/peers/ compare PyTorch.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/plan/rectifiers.h"
#include "tutti/keep/named_tensor.h"
#include "tutti/plan/run/executor.h"
#include "tutti/split/split.h"
#include "tutti/train/step/part_exchange.h"

namespace tutti::test {

/// A network with its loss and gradients, fused as for training.
struct ScienceNetwork {
  graph::Graph graph;
  graph::Value in, target, out, loss;
  std::vector<graph::Value> masks = {};  ///< see Rectified
  graph::Value source = {};              ///< a second input, tokens; invalid: there is none
};

/// Makes "cosmoflow2", "cosmoflow3" (the kernel's size; without dropout), "deepcam" or "resnet50":
/// small ones; with "-full" behind the name those of MLPerf HPC and ImageNet. "resnet44" is
/// CIFAR's. "gpt2", "llama" and "transformer" predict tokens: their `out` is -log p of these.
/// "deepcam-wide" has few channels at a height of which four parts are multiples of all strides.
/// `split`: how samples are cut and shared.
ScienceNetwork science_network(const std::string& name, DType activations, int64_t batch,
                               const split::SplitSettings& split = {.slabs = 1},
                               Rectifiers rectifiers = Rectifiers::relu);

/// Whether convolutions in blocks of 16 channels are fast here, by the instruction set that oneDNN
/// may use (ONEDNN_MAX_CPU_ISA): without AVX-512 there are only reference loops.
bool has_fast_blocks();

/// The results. They are f32, except labels and tokens, i32, and `in`, of the activations' type.
struct ScienceStep {
  std::vector<keep::NamedTensor> model;      ///< parameters and, after the pass, statistics
  std::vector<keep::NamedTensor> gradients;  ///< by the parameter's name
  keep::NamedTensor in, target, out, loss;
  std::vector<keep::NamedTensor> seen = {};  ///< results of ReLUs, for Rectifiers::seen
  keep::NamedTensor source = {};             ///< only if the network has one
  std::string layout = {};                   ///< the plan's
  std::map<std::string, int> kernels = {};   ///< how many steps of the plan each kernel computes
};

/// The data of a step.
struct StepData {
  uint64_t data = 0;                  ///< stream of inputs and targets
  const ScienceStep* held = nullptr;  ///< step whose ReLUs decide, for Rectifiers::held
  std::string weights = {};           ///< a file of an exported model; empty: initial weights
  std::string inputs = {};            ///< a file with `in` and `target`; empty: random ones
};

/// Initial weights, inputs and targets are the same for the same network, batch and `data`.
ScienceStep run_step(const ScienceNetwork& network, const backend::Backend& backend,
                     const plan::PlanOptions& options, const StepData& data = {});

/// Does the same on this rank as a part of its replica: loss and gradients are its share.
ScienceStep run_part(const ScienceNetwork& network, const backend::Backend& backend,
                     const plan::PlanOptions& options, const split::PartGrid& grid,
                     comm::Communicator& communicator, const StepData& data);

std::span<const float> numbers_of(const keep::NamedTensor& t);
/// Returns the relative distance in the 2-norm.
double far(std::span<const float> a, std::span<const float> b);
inline double far(const keep::NamedTensor& a, const keep::NamedTensor& b) {
  return far(numbers_of(a), numbers_of(b));
}

}  // namespace tutti::test
