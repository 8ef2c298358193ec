#pragma once
// The list of models that `model.name` chooses from, and how a program adds its own.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct ModelInfo {
  std::string name, description;
  TaskKind task = TaskKind::classify;  ///< used where the specification gives none
  Shape input{};                       ///< shape of one sample, where the specification gives none
  int64_t classes = 10;                ///< used where the specification gives none
  /// Which members of ModelSpec the model understands besides the common ones.
  bool takes_shortcut = false, takes_width = false, takes_hidden = false, takes_kernel = false,
       takes_dropout = false, takes_attention_dropout = false, takes_depth = false,
       takes_heads = false, takes_context = false, takes_key_heads = false,
       takes_rotary_base = false, takes_tied = false, takes_embeddings = false;
  /// Fields of the input's shape that the model reads besides the first.
  std::vector<std::string> more_inputs{};
  /// Where no data set gives their rows, those fields hold rows of these tables.
  std::vector<int64_t> table_rows{};
  /// Fields that the model also reads where the data set has them.
  std::vector<std::string> inputs_if_there{};
  bool takes_layers = false;
  bool takes_tables = false;  ///< takes pooling and interaction
  /// For models with one input and one prediction: maps the one to the other. The specification is
  /// complete: no member but shortcut, width and hidden stands for "the model's own".
  std::function<Value(Graph&, Value x, const ModelSpec&)> prediction{};
  /// For any other model: builds the whole, and lists its predictions. Without `objectives` there
  /// is one prediction of the specification's task. `objectives` may be called before fields are
  /// known.
  std::function<void(ModelBuilder&)> build{};
  std::function<std::vector<Objective>(const ModelSpec&)> objectives{};
};

/// Adds a model, at the start of a program and before any other thread. Throws ConfigError if the
/// name is taken.
void register_model(ModelInfo model);

/// Returns all models: the built-in ones sorted by family and depth, then the registered ones. Safe
/// from any thread.
const std::vector<ModelInfo>& models();
/// Throws ConfigError listing the existing names if there is no such model.
const ModelInfo& find_model(std::string_view name);
/// Returns `spec` with the model's own input and classes where it has none. Throws ConfigError for
/// members the model does not take.
ModelSpec completed(const ModelSpec& spec);

/// Returns the objectives of a model; all members but the names are filled. The model's name and
/// task are enough; classes that are not given are not limited. Where layers give no task, it
/// follows from their loss, else from the field that they predict, once fields are known.
std::vector<Objective> objectives_of(const ModelSpec& spec);
/// Returns whether the tasks are known before the fields are.
bool tasks_known(const ModelSpec& spec);

/// Builds the graph: forward and, in train mode, the losses. Throws ConfigError naming the layer if
/// the input does not fit. `losses`: adds targets and losses in mode eval, too; a model that writes
/// its own losses in training alone has none then.
ModelGraph build_model(const ModelSpec& spec, bool losses = false);

}  // namespace tutti::models
