#pragma once
// The interface of a model to the rest of the system: from a specification it makes a graph whose
// inputs are fields of a data set and whose outputs are predictions and a loss.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tutti/models/block/layer_table.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/shape_check.h"

namespace tutti::models {

// The words of graph/ and ops/ in which networks are written.
using graph::Graph;
using graph::Init;
using graph::Value;
using ops::require;

/// The learning tasks, in terms of the network's output y and the target t, a field of the data
/// set.
///   classify  y [N, K], t one class number a sample; loss: softmax cross entropy
///   segment   y [N, K, spatial...], t a class number for each position; the same loss
///   regress   y [N, ...], t as many numbers in the same shape; loss: a pointwise one
///   language  t the next token at each position of a sequence, -1 where there is none; y
///             [N, 1, positions] is -log of the probability that the network gave it, because
///             logits of a vocabulary are many; loss: the mean of y. In evaluations
///             [N, 2, positions]: y is followed by 1 where no other token is likelier
enum class TaskKind : uint8_t { classify, segment, regress, language };
std::string_view name_of(TaskKind kind);

/// One prediction of a model, with its target, loss and metrics.
struct Objective {
  std::string name{};              ///< name of the prediction; empty where it is the only
                                   ///< one
  std::string target{};            ///< target field; empty: ModelSpec::target_field
  std::optional<TaskKind> task{};  ///< none: the specification's
  std::optional<ops::PointwiseLossKind> loss{};  ///< loss of numbers; none: the specification's
  float weight = 1;                              ///< weight of its loss in the sum of all losses
  bool own_loss = false;  ///< the model adds its losses itself (ModelBuilder::add_loss);
                          ///< evaluations then report the sum of all losses of the model
  std::vector<std::string>
      metrics{};  ///< names of registered metrics (train/metrics/metrics.h), put before the task's
};

/// A field of the data set as models see it.
struct ModelField {
  std::string name;
  Shape sample{};       ///< shape of one sample
  int64_t classes = 0;  ///< it holds class numbers below this; 0: numbers
  std::vector<int64_t>
      rows{};  ///< it holds rows of tables, element i one below rows[i]; empty: none
  std::vector<int64_t> bags{};  ///< number of elements in each bag, which name rows of one table;
                                ///< empty: 1 each
  /// The bytes of each class's name; for a token, the text it stands for; empty: not known.
  std::vector<int32_t> class_bytes{};
  std::string unit{};  ///< unit of its values in the data, "K"; empty: not known
  std::string
      undone{};  ///< the transforms that are undone in its predictions (train/settings/units.h)
  std::string kept{};  ///< the transforms that cannot be undone
};

/// How the rows that a bag names are combined.
enum class Pooling : uint8_t { sum, mean };
constexpr std::array<std::string_view, 2> words(Pooling) { return {"sum", "mean"}; }

/// How the features of a recommendation model are combined: by the dot products of all pairs, or by
/// concatenation.
enum class FeatureInteraction : uint8_t { dot, cat };
constexpr std::array<std::string_view, 2> words(FeatureInteraction) { return {"dot", "cat"}; }

/// LoRA (models/lora.h).
struct LoraSpec {
  int64_t rank = 0;                   ///< 0: none
  double alpha = 0;                   ///< 0: the rank
  std::vector<std::string> layers{};  ///< patterns over names of linear layers
};

/// Whether the tokens of source and target share the same weights.
enum class Embeddings : uint8_t { shared, separate };
constexpr std::array<std::string_view, 2> words(Embeddings) { return {"shared", "separate"}; }

struct ModelSpec {
  /// Residual shortcut where the shape changes (He et al. 2015, section 4.2): A, every second
  /// position and zero channels before and after, without parameters; B, a 1x1 convolution and
  /// batch norm.
  enum class Shortcut : uint8_t { A, B };

  std::string name = "resnet20";
  std::optional<TaskKind> task{};  ///< none: the model's own
  Shape input{};                   ///< one sample: [C, spatial...]; rank 0: the model's own
  std::string input_field = "image", target_field = "label";
  /// All fields to read and to predict, the ones above first; empty: those alone.
  std::vector<ModelField> inputs{}, targets{};
  int64_t batch = 1;                         ///< samples per run
  int64_t classes = 0;                       ///< outputs K; 0: the model's own
  std::optional<Shortcut> shortcut{};        ///< none: the model's own
  int64_t width = 0;                         ///< channels of the first stage; 0: the model's own
  std::vector<int64_t> hidden{};             ///< sizes of the hidden layers; empty: the model's own
  std::optional<float> dropout{};            ///< probability; none: the model's own
  std::optional<float> attention_dropout{};  ///< dropout of attention's probabilities; none: the
                                             ///< model's own
  std::vector<LayerTable> layers{};          ///< layers of the model "layers"
  int64_t depth = 0;                         ///< modules of the stack; 0: the model's own
  int64_t heads = 0;                         ///< heads of attention; 0: the model's own
  int64_t key_heads = 0;           ///< heads that share keys and values; 0: the model's own
  double rotary_base = 0;          ///< base of rotary positions; 0: the model's own
  bool tied = false;               ///< logits use the weights of the tokens
  int64_t context = 0;             ///< learned positions; 0: as many as a sample has
  int64_t kernel = 0;              ///< side of the convolutions' windows; 0: the model's own
  Pooling pooling = Pooling::sum;  ///< how bags of rows are combined
  FeatureInteraction interaction = FeatureInteraction::dot;
  Embeddings embeddings = Embeddings::shared;
  DType activations =
      DType::f32;  ///< f32 or bf16: inputs and everything up to the prediction, which is f32
  ops::Mode mode = ops::Mode::train;
  LoraSpec lora{};
  ops::SoftmaxCrossEntropyAttributes loss{};      ///< loss for class numbers
  ops::PointwiseLossAttributes pointwise_loss{};  ///< loss for numbers
};

/// A tensor that is filled before each run from a field: [N, field...].
struct GraphInput {
  std::string field;
  Value value;
  int64_t classes = 0;  ///< outputs for the class numbers of a target; 0: not class numbers
};

struct ModelOutput {
  Objective objective;  ///< every member is set, except perhaps the name
  Value prediction;
  size_t target = 0;  ///< index in ModelGraph::targets; in eval mode there are none
};

/// A value that a model reports for a sample besides its predictions: it has no target, so it has
/// no loss and no metric.
struct ModelReading {
  std::string name;
  Value value;  ///< [N, ...], f32
};

/// Inputs are named as their fields. Predictions are f32, losses are scalars of which training
/// minimises the sum; all are outputs of the graph. In eval mode there are neither targets nor
/// losses; for language the target is then an input. Parameters and statistics have the names of
/// the usual PyTorch implementations, so that weights load by name.
struct ModelGraph {
  Graph graph;
  std::vector<GraphInput> inputs, targets;
  std::vector<ModelOutput> outputs;
  std::vector<ModelReading> readings;  ///< in eval mode only
  std::vector<Value> losses;
};

}  // namespace tutti::models
