#pragma once
// The list of models that `model.name` chooses from, and how a program adds its own.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/block/model_builder.h"

namespace tutti {

struct ModelInfo {
  std::string name, description;
  TaskKind task = TaskKind::classify;  ///< where the specification gives none
  Shape input{};                       ///< one sample, where the specification gives none
  int64_t classes = 10;                ///< where the specification gives none
  /// Which of ModelSpec's members it understands besides the common ones.
  bool takes_shortcut = false, takes_width = false, takes_hidden = false, takes_kernel = false,
       takes_dropout = false, takes_attention_dropout = false, takes_depth = false,
       takes_heads = false, takes_context = false, takes_key_heads = false,
       takes_rotary_base = false, takes_tied = false, takes_embeddings = false;
  /// Fields of the input's shape that it reads besides the first.
  std::vector<std::string> more_inputs{};
  /// Those are rows of these tables instead, where no data set says which.
  std::vector<int64_t> table_rows{};
  /// Fields that it reads, too, where the data set has them.
  std::vector<std::string> inputs_if_there{};
  bool takes_layers = false;
  bool takes_tables = false;  ///< pooling and interaction
  /// Of one input and one prediction: from one to the other. The specification is complete: no
  /// member stands for "the model's own" but shortcut, width and hidden.
  std::function<Value(Graph&, Value x, const ModelSpec&)> prediction{};
  /// Of any other: the whole, and what it predicts. Without objectives: one prediction of the
  /// specification's task. `objectives` may be asked before fields are known.
  std::function<void(ModelBuilder&)> build{};
  std::function<std::vector<Objective>(const ModelSpec&)> objectives{};
};

/// Adds a model, at the start of a program and before any other thread. ConfigError for a name that
/// there is.
void register_model(ModelInfo model);

/// All models: the built-in ones sorted by family and depth, then the registered ones. Safe from
/// any thread.
const std::vector<ModelInfo>& models();
/// Throws ConfigError listing the names there are.
const ModelInfo& find_model(std::string_view name);
/// `spec` with the model's own input and classes where it has none. Throws ConfigError for members
/// the model does not take.
ModelSpec completed(const ModelSpec& spec);

/// What a model predicts; all members but the names are filled. The model's name and task are
/// enough; where classes are not given there is no limit to them. Of layers that say no task it
/// follows from their loss, else from the field that they predict, once fields are known.
std::vector<Objective> objectives_of(const ModelSpec& spec);
/// Whether the tasks are known as long as fields are not.
bool tasks_known(const ModelSpec& spec);

/// Builds the graph: forward and, in train mode, the losses. Throws ConfigError naming the layer if
/// the input does not fit. `losses`: also in mode eval, with targets; a model that writes its own
/// in training alone has none then.
ModelGraph build_model(const ModelSpec& spec, bool losses = false);

}  // namespace tutti
