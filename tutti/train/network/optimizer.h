#pragma once
// Appends the weight updates to a differentiated graph. ops/update.h describes the computation of
// the updates.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/name_pattern.h"
#include "tutti/config/optimizer_section.h"
#include "tutti/graph/graph.h"
#include "tutti/graph/tensor_slice.h"

namespace tutti::train {

/// The lines of optimizer.decay and optimizer.rates: the first whose pattern fits a parameter's
/// name decides its weight decay, or the factor on its learning rate. Exclusion takes precedence.
struct ParameterLines {
  std::vector<PatternValue> decay{}, rates{};
};
/// Throws ConfigError for a line that cannot be parsed, and for a value out of range.
ParameterLines parameter_lines(const config::OptimizerSection& optimizer);

/// The part of a model's update that one graph makes.
struct UpdateScope {
  /// Each rank updates its shard of every bucket (exchange/shard.h): norms are summed over ranks,
  /// and new weights are sent to the others.
  bool sharded = false;
  bool partial = false;  ///< the graph has only some of the model's parameters: lines of decay
                         ///< and rates may match only others
  graph::TensorSlices slices = {};  ///< parameters of which ranks have slices
};

/// The kind of state that holds the weights' moving average.
inline constexpr std::string_view kAverageState = "ema";

/// The values that the caller of updates sets before each, and may read after it.
struct UpdateScalars {
  graph::Value learning_rate;  ///< "lr"
  graph::Value
      gradient_scale;  ///< "gradient_scale": 1 / replicas turns the sum over replicas into a mean
  graph::Value gradient_norm;  ///< a result: the norm before clipping; invalid without clipping
};

/// Appends one update per bucket, or several where weight decay and rates divide it. An update is
/// one op, or with lars and lamb two; with sharded updates the exchange of norms lies between them
/// (ops/norm_update.h), and averaged weights add one more. If the gradient is clipped, one op per
/// bucket and one for all of them precede the updates, which use its scale. With sharded updates
/// the exchange of the bucket's weights comes last. Norms of sliced parameters are also summed over
/// the ranks that share them. Excluded parameters get no trust ratio: lars updates them by plain
/// SGD, lamb by Adam, at the full rate. Nothing of it applies to tables. `buckets` lists every
/// parameter that has a gradient once, by the bucket in which it is sent. Creates the states
/// PARAMETER.momentum, or PARAMETER.m and PARAMETER.v, and PARAMETER.ema. Throws ConfigError for a
/// line of decay or rates that matches no parameter.
UpdateScalars add_update(graph::Graph& graph, std::span<const std::vector<graph::Value>> buckets,
                         const config::OptimizerSection& optimizer, const UpdateScope& scope = {});

/// Returns whether it is the weight or the bias of a normalisation, a layer whose weight has one
/// dimension.
bool is_norm_parameter(const graph::Graph& graph, graph::Value parameter);
bool is_bias(std::string_view name);

}  // namespace tutti::train
