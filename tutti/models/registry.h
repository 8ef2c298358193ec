#pragma once
// The list of models that `model.name` chooses from.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/model.h"

namespace tutti {

struct ModelInfo {
  std::string name, description;
  TaskKind task = TaskKind::classify;  ///< where the specification gives none
  Shape input{};                       ///< one sample, where the specification gives none
  int64_t classes = 10;                ///< where the specification gives none
  /// Which of ModelSpec's members it understands besides the common ones.
  bool takes_shortcut = false, takes_width = false, takes_hidden = false, takes_kernel = false,
       takes_dropout = false;
  /// From the input to the prediction. The specification is complete: no member stands for "the
  /// model's own" but shortcut, width and hidden.
  std::function<Value(Graph&, Value x, const ModelSpec&)> prediction;
};

/// All models, sorted by family and depth. Immutable, made once; safe from any thread.
const std::vector<ModelInfo>& models();
/// Throws ConfigError listing the names there are.
const ModelInfo& find_model(std::string_view name);
/// `spec` with the model's own input and classes where it has none. Throws ConfigError for members
/// the model does not take.
ModelSpec completed(const ModelSpec& spec);

/// Builds the graph: forward and, in train mode, the loss. Throws ConfigError naming the layer if
/// the input does not fit.
ModelGraph build_model(const ModelSpec& spec);

}  // namespace tutti
