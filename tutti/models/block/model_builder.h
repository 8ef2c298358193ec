#pragma once
// ModelBuilder: the interface that a model's own function writes its graph with.

#include <string>
#include <vector>

#include "tutti/models/block/model.h"
#include "tutti/ops/sequence/sequence.h"

namespace tutti::models {

/// Used once, by one thread.
class ModelBuilder {
 public:
  /// `spec` is complete (registry.h) and must outlive the builder. `losses`: add losses in mode
  /// eval, too.
  ModelBuilder(const ModelSpec& spec, std::vector<Objective> objectives, bool losses = false);

  Graph& graph() { return built_.graph; }
  const ModelSpec& spec() const { return spec_; }
  /// Returns whether there are targets and losses: in training, and where the losses of a
  /// validation set are requested, in which layers follow spec().mode.
  bool training() const { return losses_; }
  const std::vector<Objective>& objectives() const { return objectives_; }

  /// Returns a field of data.input as [N, sample...], in the type of the activations. Throws
  /// ConfigError listing the fields. Without a name: the first field.
  Value input(const std::string& field);
  Value input() { return input(spec_.input_field); }

  /// Returns a field of rows of tables as i32 [N, sample...].
  Value rows(const std::string& field);
  /// Returns a field of tokens as i32 [N, positions]; `vocabulary`, if given, replaces the
  /// specification's classes. Without a name: the first field.
  Value tokens(const std::string& field, int64_t vocabulary = 0);
  Value tokens() { return tokens(spec_.input_field); }
  /// Returns a field of the numbers of documents (ops/sequence/attention.h) as i32 [N, positions].
  Value documents(const std::string& field);
  /// Returns a field of numbers that stay f32 whatever the activations are, [N, sample...].
  Value weights(const std::string& field);

  /// Adds the prediction of an objective: makes it f32, and in training adds its target and its
  /// loss. Throws ConfigError where the shape does not fit the task. Without a name: the only
  /// objective's.
  void predict(const std::string& objective, Value y);
  void predict(Value y) { predict("", y); }
  /// Returns the tokens of a language objective: a target, or in evaluations an input. Call it
  /// before the network is written (ops/sequence/sequence.h).
  ops::TokenLabels next_tokens(const std::string& objective = "");
  /// Adds its prediction: from logits [N, vocabulary, positions] the loss, with the specification's
  /// label smoothing, and -log p of each token that is there; in evaluations also whether it is the
  /// likeliest.
  void predict_tokens(const std::string& objective, Value logits, const ops::TokenLabels& next);
  void predict_tokens(Value logits, const ops::TokenLabels& next) {
    predict_tokens("", logits, next);
  }
  /// Adds a value that evaluations write beside the predictions, such as the latent numbers of an
  /// autoencoder: [N, ...] without a target. Does nothing in training.
  void read_out(const std::string& name, Value y);
  /// Returns a field to write losses with, in training: [N, sample...], i32 or f32.
  Value target(const std::string& field, const TensorDesc& desc);
  /// Adds a loss besides those of the objectives, in training: an f32 scalar (ops/builder.h).
  void add_loss(Value loss);

  /// Throws ConfigError where an objective has no prediction or training no loss.
  ModelGraph finish() &&;

 private:
  const Objective& objective_named(const std::string& name) const;
  Value bound(const std::string& field, DType dtype);
  Value of_positions(const std::string& field, const char* what);
  size_t target_index(const std::string& field, const TensorDesc& desc);

  const ModelSpec& spec_;
  std::vector<Objective> objectives_;
  bool losses_;
  ModelGraph built_;
};

/// Returns the field with the sample and classes that the specification gives, if any.
ModelField input_named(const ModelSpec& spec, const std::string& field);
ModelField target_named(const ModelSpec& spec, const std::string& field);

}  // namespace tutti::models
