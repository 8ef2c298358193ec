#pragma once
// A small relative of CosmoFlow for small volumes and small computers. Like CosmoFlow it takes a
// volume of matter density through five convolutions that each halve its side. Unlike it, the
// convolutions halve the side themselves, with batch norm and ReLU and without maximum pooling; the
// dense layers see the mean of every channel of every stage over all positions, so they see
// fluctuations of each size of structure, and never positions themselves; there is no dropout.

#include "tutti/models/block/model.h"

namespace tutti::models {

struct CosmoFlowSmallSpec {
  int64_t channels = 16;            ///< channels of the first convolution; the others have twice as
                                    ///< many
  std::vector<int64_t> hidden{64};  ///< dense layers before the last
  int64_t outputs = 4;
  ops::Mode mode = ops::Mode::train;
};

/// volume [N, channels, S, S, S] with S a multiple of 32 -> prediction [N, outputs], f32. Five
/// times "conv1"... of 3x3x3 and stride 2 and "bn1"... with ReLU; "mean1"... over positions, joined
/// and normalised by "bn"; "fc1"... with ReLU; the last dense layer is linear. At 4 channels it has
/// 108,612 parameters. Throws ConfigError if the volume does not fit.
Value cosmoflow_small_prediction(Graph& graph, Value volume, const CosmoFlowSmallSpec& spec = {});

}  // namespace tutti::models
