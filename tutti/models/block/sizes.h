#pragma once
// The sizes that networks of layers with attention have in common: members depth, width, heads,
// hidden, dropout, attention_dropout and mode of their specifications.

#include <string_view>

#include "tutti/models/block/model.h"

namespace tutti::models {

/// Returns `own` with the sizes that the specification gives, its dropout and its mode.
template <class Spec>
Spec with_sizes(Spec own, const ModelSpec& given) {
  own.mode = given.mode;
  if (given.depth > 0) own.depth = given.depth;
  if (given.width > 0) own.width = given.width;
  if (given.heads > 0) own.heads = given.heads;
  if (!given.hidden.empty()) own.hidden = given.hidden.front();
  if (given.dropout) own.dropout = *given.dropout;
  if (given.attention_dropout) own.attention_dropout = *given.attention_dropout;
  return own;
}

/// Throws ConfigError naming the model where the width is no multiple of the heads.
template <class Spec>
void require_whole_heads(std::string_view model, const Spec& spec) {
  require(spec.heads >= 1 && spec.width % spec.heads == 0,
          "{}: a width of {} is not a multiple of {} heads", model, spec.width, spec.heads);
}

}  // namespace tutti::models
