#pragma once
// For tests: what models are made of, and that some cannot be made.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/sequence/attention.h"

namespace tutti::models {

/// Returns a language model of two small layers that reads eight of eleven tokens.
inline ModelSpec tiny_gpt2(ops::Mode mode = ops::Mode::train) {
  return {.name = "gpt2",
          .input = {8},
          .input_field = "tokens",
          .target_field = "next",
          .batch = 2,
          .classes = 11,
          .width = 12,
          .depth = 2,
          .heads = 3,
          .mode = mode};
}

inline int64_t parameters_of(const ModelSpec& spec) {
  return build_model(spec).graph.parameter_count();
}

struct AttentionNode {
  std::string name;
  ops::AttentionAttributes attention;
  std::vector<Value> in;
};

inline std::vector<AttentionNode> attentions_in(const Graph& graph) {
  std::vector<AttentionNode> found;
  for (const graph::Node& node : graph.nodes())
    if (const auto* op = dynamic_cast<const ops::Attention*>(node.op.get()))
      found.push_back({node.name, op->attention(), node.in});
  return found;
}

/// Expects that no model can be made of `spec` after the change.
template <class Change>
void expect_refused(ModelSpec spec, Change change) {
  change(spec);
  EXPECT_THROW(build_model(spec), ConfigError);
}

}  // namespace tutti::models
