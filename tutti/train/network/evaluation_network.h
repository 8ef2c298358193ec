#pragma once
// The evaluation side of a network, and functions that both of its sides use.

#include <memory>
#include <optional>
#include <vector>

#include "tutti/split/stages.h"
#include "tutti/train/network/network.h"

namespace tutti::train {

/// Returns whether predictions for a complete objective are in the units of the field it learns.
bool is_of_data(const models::Objective& objective);

/// Fills in the backend's tile size where none is given.
split::SplitSettings with_advice(split::SplitSettings slabs, const backend::Backend& backend);
std::vector<data::BatchField> batch_of(const plan::Plan& plan,
                                       const std::vector<models::GraphInput>& inputs);
/// Returns, for each input, the rows that the graph reads; nothing: all of them.
std::vector<std::optional<data::BatchRows>> rows_of(const graph::Graph& graph,
                                                    const std::vector<models::GraphInput>& inputs);

/// Compiles only the forward pass, for this rank's place in `split.grid`. `stages` are those of a
/// pipeline in training; null: there are none. Throws ConfigError if a stage before the last one
/// would read the model's output.
std::unique_ptr<EvaluationNetwork> evaluation_of(const models::ModelSpec& model,
                                                 const split::SplitSettings& split,
                                                 const backend::Backend& backend,
                                                 const plan::PlanOptions& options,
                                                 const split::Stages* stages = nullptr);

}  // namespace tutti::train
