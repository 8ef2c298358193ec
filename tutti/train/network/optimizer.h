#pragma once
// Appends the weight updates to a differentiated graph. What the updates compute is written in
// ops/update.h.

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
  bool exclude_bias = false;          ///< no weight decay for biases, those of norms included
  bool exclude_norm = false;          ///< no weight decay for weights and biases of norms
  double beta1 = 0.9, beta2 = 0.999;  ///< adam, adamw, lamb
  double rho = 0.9;                   ///< rmsprop
  double eps = 1e-8;                  ///< adam, adamw, lamb, rmsprop (all > 0), lars
  double trust = 0.001;               ///< lars
  /// Each rank updates its shard of every bucket (exchange/shard.h): norms are summed over ranks,
  /// and new weights given to the others.
  bool sharded = false;
  // Excluded parameters get no trust ratio either: lars leaves them to plain SGD, lamb to Adam, at
  // the full rate.
  /// Weight decay of parameters whose name fits, instead of weight_decay; the first line counts.
  /// Exclusion goes before it.
  std::vector<PatternValue> decay{};
  /// Factors on the learning rate, likewise; above 0.
  std::vector<PatternValue> rates{};
  double clip_norm = 0;   ///< largest norm of the whole gradient (ops/clip.h); 0: it is not clipped
  double clip_value = 0;  ///< largest element of the gradient (ops/update.h), after clip_norm; 0:
                          ///< not so clipped; sgd, adam, adamw, rmsprop
  double average = 0;     ///< decay of the weights' moving average; 0: none is kept
  int64_t average_from = 0;  ///< first updates in which the average is the weights
  bool partial = false;  ///< the graph has some of the model's parameters: lines of decay and rates
                         ///< may decide for others alone
  TableRule tables{};    ///< of tables, whose rows change when samples have read them, and of which
                         ///< nothing above holds
};

/// The kind of state that holds the weights' moving average.
inline constexpr std::string_view kAverageState = "ema";

/// What the caller of updates sets before each, and may read after it.
struct UpdateScalars {
  Value learning_rate;   ///< "lr"
  Value gradient_scale;  ///< "gradient_scale": 1 / replicas turns the sum over replicas into a mean
  Value gradient_norm;   ///< a result: the norm before clipping; invalid where nothing is clipped
};

/// Appends one update per bucket, or several where weight decay and rates divide it; an update is
/// one op, or with lars and lamb two, where updates are sharded with the exchange of norms between
/// them (ops/norm_update.h), and one more where weights are averaged. Where the gradient is
/// clipped, one op a bucket and one for all of them stand before the updates, which take its scale.
/// Where updates are sharded the exchange of the bucket's weights is the last. Norms of parameters
/// of which ranks have `slices` are summed over these, too. `buckets` lists
/// every parameter that has a gradient once, by the bucket that it travels in. Creates the states
/// PARAMETER.momentum, or PARAMETER.m and PARAMETER.v, and PARAMETER.ema. ConfigError for a line of
/// decay or rates that decides for no parameter.
UpdateScalars add_update(Graph& graph, std::span<const std::vector<Value>> buckets,
                         const OptimizerSettings& settings, const TensorSlices& slices = {});

/// Is it the weight or the bias of a normalisation? Those are the layers whose weight has one
/// dimension.
bool is_norm_parameter(const Graph& graph, Value parameter);
bool is_bias(std::string_view name);

}  // namespace tutti
