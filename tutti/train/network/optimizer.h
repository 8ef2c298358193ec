#pragma once
// Appends the weight updates to a differentiated graph. ops/update.h describes the computation of
// the updates.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/name_pattern.h"
#include "tutti/graph/graph.h"
#include "tutti/graph/tensor_slice.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti {

struct OptimizerSettings {
  enum class Kind : uint8_t { sgd, lars, adam, adamw, lamb, rmsprop };

  Kind kind = Kind::sgd;
  double momentum = 0;  ///< sgd, lars
  bool nesterov = false;
  double weight_decay = 0;
  bool exclude_bias = false;          ///< no weight decay for biases, including those of norms
  bool exclude_norm = false;          ///< no weight decay for weights and biases of norms
  double beta1 = 0.9, beta2 = 0.999;  ///< adam, adamw, lamb
  double rho = 0.9;                   ///< rmsprop
  double eps = 1e-8;                  ///< adam, adamw, lamb, rmsprop (all > 0), lars
  double trust = 0.001;               ///< lars
  /// Each rank updates its shard of every bucket (exchange/shard.h): norms are summed over ranks,
  /// and new weights are sent to the others.
  bool sharded = false;
  // Excluded parameters get no trust ratio either: lars updates them by plain SGD, lamb by Adam, at
  // the full rate.
  /// Weight decay for parameters whose name matches, instead of weight_decay; the first match
  /// counts. Exclusion takes precedence.
  std::vector<PatternValue> decay{};
  /// Factors on the learning rate, chosen in the same way; above 0.
  std::vector<PatternValue> rates{};
  double clip_norm = 0;   ///< largest norm of the whole gradient (ops/clip.h); 0: no clipping
  double clip_value = 0;  ///< largest element of the gradient (ops/update.h), after clip_norm; 0:
                          ///< no limit; sgd, adam, adamw, rmsprop
  double average = 0;     ///< decay of the weights' moving average; 0: none is kept
  int64_t average_from = 0;  ///< number of first updates in which the average equals the weights
  bool partial = false;  ///< the graph has only some of the model's parameters: lines of decay and
                         ///< rates may match only others
  TableRule tables{};    ///< rule for tables, whose rows change when samples have read them;
                         ///< nothing above applies to them
};

/// The kind of state that holds the weights' moving average.
inline constexpr std::string_view kAverageState = "ema";

/// The values that the caller of updates sets before each, and may read after it.
struct UpdateScalars {
  Value learning_rate;   ///< "lr"
  Value gradient_scale;  ///< "gradient_scale": 1 / replicas turns the sum over replicas into a mean
  Value gradient_norm;   ///< a result: the norm before clipping; invalid without clipping
};

/// Appends one update per bucket, or several where weight decay and rates divide it. An update is
/// one op, or with lars and lamb two; with sharded updates the exchange of norms lies between them
/// (ops/norm_update.h), and averaged weights add one more. If the gradient is clipped, one op per
/// bucket and one for all of them precede the updates, which use its scale. With sharded updates
/// the exchange of the bucket's weights comes last. Norms of parameters of which ranks have
/// `slices` are also summed over these ranks. `buckets` lists every parameter that has a gradient
/// once, by the bucket in which it is sent. Creates the states PARAMETER.momentum, or PARAMETER.m
/// and PARAMETER.v, and PARAMETER.ema. Throws ConfigError for a line of decay or rates that matches
/// no parameter.
UpdateScalars add_update(Graph& graph, std::span<const std::vector<Value>> buckets,
                         const OptimizerSettings& settings, const TensorSlices& slices = {});

/// Returns whether it is the weight or the bias of a normalisation, a layer whose weight has one
/// dimension.
bool is_norm_parameter(const Graph& graph, Value parameter);
bool is_bias(std::string_view name);

}  // namespace tutti
