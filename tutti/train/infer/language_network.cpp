#include "tutti/train/infer/language_network.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/fusion/fuse.h"
#include "tutti/train/network/plain_copy.h"

namespace tutti::train {
namespace {

ConfigError no_language_model(const std::string& name, const std::string& why) {
  return ConfigError(fmt::format(
      "the model '{}' {}: text comes from a language model, which learns the field next of "
      "data.dataset = \"text\" or \"tokens\"",
      name, why));
}

/// The inputs of a loss over tokens.
struct TokenOutputs {
  graph::Value logits, labels;
};

TokenOutputs token_outputs(const models::ModelSpec& spec, const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes())
    if (node.op->name() == "token_loss") return {node.in[0], node.in[1]};
  throw no_language_model(spec.name, "predicts no tokens");
}

}  // namespace

LanguageNetwork::LanguageNetwork(const models::ModelSpec& model, const backend::Backend& backend,
                                 const plan::PlanOptions& options) {
  models::ModelSpec spec = model;
  spec.mode = ops::Mode::eval;
  spec.batch = 1;
  models::ModelGraph built = models::build_model(spec);
  const TokenOutputs outputs = token_outputs(spec, built.graph);
  const graph::Value logits = ops::convert(built.graph, "next", outputs.logits, DType::f32);
  built.graph.mark_output(logits);
  for (const models::GraphInput& input : built.inputs)
    if (input.value != outputs.labels && input.field != spec.input_field)
      throw no_language_model(spec.name, fmt::format("reads '{}' besides", input.field));
  const ops::Rewritten fused = ops::fuse_forward(built.graph);
  plan_ = plan::compile(fused.graph, backend, options);
  const auto bound = [&](graph::Value value) {
    return Bound{fused.of[static_cast<size_t>(value.id)], built.graph.shape(value)[1]};
  };
  tokens_ = bound(built.inputs.front().value);
  labels_ = bound(outputs.labels);
  labels_.numbers.assign(static_cast<size_t>(labels_.size), -1);
  logits_ = fused.of[static_cast<size_t>(logits.id)];
  vocabulary_ = built.graph.shape(logits)[1];
  executor_ = plan::make_executor(plan_, backend);
  if (tokens_.size == model.input[0])
    steps_ = TokenSteps::of(model, model.input_field, {}, backend, options, plan_.variables);
}

void LanguageNetwork::bind(const plan::ReplicaState& model) {
  executor_->bind(model);
  executor_->pack();
  executor_->settle(plan::Kept::statistics);  // others read the same weights
  stepped_.clear();
  if (!steps_) return;
  steps_->bind(model);
  steps_->begin();
}

std::span<const float> LanguageNetwork::logits(std::span<const int32_t> tokens) {
  CHECK(!tokens.empty(), "no tokens");
  const auto [differs, more] = std::ranges::mismatch(stepped_, tokens);
  const bool goes_on = differs == stepped_.end() && more != tokens.end();
  if (!steps_ || std::ssize(tokens) > window()) return whole_pass(tokens);
  // A window that has moved has new positions throughout: no stored value fits. After a full first
  // window nothing stored would be used again.
  if ((!goes_on || stepped_.empty()) && std::ssize(tokens) == window()) return whole_pass(tokens);
  if (!goes_on) {
    stepped_.clear();
    steps_->begin();
  }
  std::span<const float> next;
  for (const int32_t token : tokens.subspan(stepped_.size())) {
    next = steps_->step({&token, 1});
    stepped_.push_back(token);
  }
  return next;
}

std::span<const float> LanguageNetwork::whole_pass(std::span<const int32_t> tokens) {
  CHECK(!tokens.empty() && std::ssize(tokens) <= window(), "{} tokens for a window of {}",
        tokens.size(), window());
  tokens_.numbers.assign(static_cast<size_t>(window()), 0);
  std::ranges::copy(tokens, tokens_.numbers.begin());
  executor_->bind_input(tokens_.value, tokens_.numbers.data());
  executor_->bind_input(labels_.value, labels_.numbers.data());
  executor_->run({});
  to_plain(plan_.desc(logits_), static_cast<const float*>(executor_->result(logits_)), plain_);
  last_.resize(static_cast<size_t>(vocabulary_));
  for (size_t v = 0; v < last_.size(); ++v)
    last_[v] = plain_[v * static_cast<size_t>(window()) + tokens.size() - 1];
  return last_;
}

}  // namespace tutti::train
