#pragma once
// The evaluation side of a network, and what both of its sides are made with.

#include <memory>
#include <optional>
#include <vector>

#include "tutti/split/stages.h"
#include "tutti/train/network/network.h"

namespace tutti {

/// Whether predictions of an objective, which is complete, are in the units of the field it learns.
bool is_of_data(const Objective& objective);

/// With the backend's tiles where none are asked for.
SplitSettings with_advice(SplitSettings slabs, const Backend& backend);
std::vector<data::BatchField> batch_of(const Plan& plan, const std::vector<GraphInput>& inputs);
/// Of each input what the graph reads; nothing: all of it.
std::vector<std::optional<data::BatchRows>> rows_of(const Graph& graph,
                                                    const std::vector<GraphInput>& inputs);

/// The forward pass alone, compiled for this rank's place in `split.grid`. `stages`: of a pipeline
/// in training; null: there is none. ConfigError where a stage before the last one would read what
/// the model gives out.
std::unique_ptr<EvaluationNetwork> evaluation_of(const ModelSpec& model, const SplitSettings& split,
                                                 const Backend& backend, const PlanOptions& options,
                                                 const Stages* stages = nullptr);

}  // namespace tutti
