#pragma once
// What a model is to the rest of the system: a specification in, a graph with four named values
// out.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/ops/builder.h"

namespace tutti {

struct ModelSpec {
  /// Residual shortcut where the shape changes (He et al. 2015, section 4.2): A, every second
  /// position and zero channels before and after, without parameters; B, a 1x1 convolution and
  /// batch norm.
  enum class Shortcut : uint8_t { A, B };

  std::string name = "resnet20";
  Shape input{};                       ///< one sample: [C, H, W]; rank 0: the model's own
  int64_t batch = 1;                   ///< samples per run
  int64_t classes = 0;                 ///< 0: the model's own
  std::optional<Shortcut> shortcut{};  ///< none: the model's own
  int64_t width = 0;                   ///< channels of the first stage; 0: the model's own
  std::vector<int64_t> hidden{};       ///< sizes of the hidden layers of an mlp; empty: its own
  DType activations =
      DType::f32;  ///< f32 or bf16: images and everything up to the logits, which are f32
  Mode mode = Mode::train;
  SoftmaxCrossEntropyAttributes loss{};
};

/// Inputs are named "images" [batch, C, H, W] and "labels" i32 [batch]; logits [batch, classes] are
/// f32, the loss is a scalar. In train mode logits and loss are outputs; in eval mode logits alone,
/// and labels and loss are invalid Values. Parameters and statistics bear the names of the usual
/// PyTorch implementations, so that weights load by name.
struct ModelGraph {
  Graph graph;
  Value images, labels, logits, loss;
};

}  // namespace tutti
