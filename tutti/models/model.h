#pragma once
// What a model is to the rest of the system: a specification in, a graph out whose inputs are
// fields of a data set and whose ends are predictions and a loss.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/ops/builder.h"

namespace tutti {

/// What is learned from the network's output y and the target t, a field of the data set.
///   classify  y [N, K], t one class number a sample; loss: softmax cross entropy
///   segment   y [N, K, spatial...], t a class number for each position; the same loss
///   regress   y [N, K], t K numbers a sample; loss: a pointwise one
enum class TaskKind : uint8_t { classify, segment, regress };
std::string_view name_of(TaskKind kind);

struct ModelSpec {
  /// Residual shortcut where the shape changes (He et al. 2015, section 4.2): A, every second
  /// position and zero channels before and after, without parameters; B, a 1x1 convolution and
  /// batch norm.
  enum class Shortcut : uint8_t { A, B };

  std::string name = "resnet20";
  std::optional<TaskKind> task{};  ///< none: the model's own
  Shape input{};                   ///< one sample: [C, spatial...]; rank 0: the model's own
  std::string input_field = "image", target_field = "label";
  int64_t batch = 1;                   ///< samples per run
  int64_t classes = 0;                 ///< outputs K; 0: the model's own
  std::optional<Shortcut> shortcut{};  ///< none: the model's own
  int64_t width = 0;                   ///< channels of the first stage; 0: the model's own
  std::vector<int64_t> hidden{};       ///< sizes of the hidden layers; empty: the model's own
  std::optional<float> dropout{};      ///< probability; none: the model's own
  int64_t kernel = 0;                  ///< side of the convolutions' windows; 0: the model's own
  DType activations =
      DType::f32;  ///< f32 or bf16: inputs and everything up to the prediction, which is f32
  Mode mode = Mode::train;
  SoftmaxCrossEntropyAttributes loss{};      ///< of class numbers
  PointwiseLossAttributes pointwise_loss{};  ///< of numbers
};

/// A tensor that is filled before each run from a field: [N, field...].
struct GraphInput {
  std::string field;
  Value value;
};

/// Inputs are named as their fields. Predictions are f32, the loss is a scalar; both are outputs of
/// the graph. In eval mode there are neither targets nor loss. Parameters and statistics bear the
/// names of the usual PyTorch implementations, so that weights load by name.
struct ModelGraph {
  Graph graph;
  std::vector<GraphInput> inputs, targets;
  std::vector<Value> predictions;
  Value loss;
};

}  // namespace tutti
