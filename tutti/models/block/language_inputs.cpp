#include "tutti/models/block/language_inputs.h"

namespace tutti::models {
namespace {

constexpr const char *kTokens = "tokens", *kSegments = "segments";

/// Throws ConfigError unless the fields have the expected names, which tell them apart.
void require_fields(const ModelSpec& spec) {
  const std::vector<ModelField>& read = spec.inputs;
  const bool known =
      read.empty() || (read[0].name == kTokens &&
                       (read.size() == 1 || (read.size() == 2 && read[1].name == kSegments)));
  if (known) return;
  std::string names;
  for (const ModelField& field : read) names += (names.empty() ? "" : ", ") + field.name;
  throw ConfigError(
      fmt::format("model '{}' reads the field {}, and behind it {} where data.segments makes it, "
                  "and is given {}: it goes with data.dataset = \"text\" or \"tokens\", without "
                  "data.input",
                  spec.name, kTokens, kSegments, names));
}

}  // namespace

LanguageInputs language_inputs(ModelBuilder& model) {
  require_fields(model.spec());
  LanguageInputs inputs;
  inputs.tokens = model.tokens();
  inputs.next = model.next_tokens();
  if (model.spec().inputs.size() > 1) inputs.segments = model.documents(kSegments);
  return inputs;
}

Value causal_attention(Graph& graph, const std::string& name, std::vector<Value> in,
                       ops::AttentionAttributes a, Value segments) {
  a.causal = true;
  if (segments.valid()) {
    a.mask = ops::AttentionMask::segments;
    in.push_back(segments);
  }
  return ops::attention(graph, name, in, a);
}

}  // namespace tutti::models
