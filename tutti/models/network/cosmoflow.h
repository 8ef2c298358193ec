#pragma once
// CosmoFlow of MLPerf HPC: cosmological parameters from a volume of matter density (Mathuriya et
// al. 2018, "CosmoFlow: using deep learning to learn the universe at scale"; mlcommons/hpc,
// cosmoflow/models). The reference is a Keras network, so weights start as Glorot's uniform
// distribution and biases as zeros.

#include "tutti/models/block/model.h"

namespace tutti::models {

struct CosmoFlowSpec {
  int64_t kernel = 3;     ///< 3 since round v1.0, 2 in v0.7; an even kernel is padded after x
  int64_t channels = 32;  ///< channels of the first convolution; each of the other four doubles
                          ///< them
  std::vector<int64_t> hidden{128, 64};  ///< dense layers before the last
  int64_t outputs = 4;
  float dropout = 0.5f;  ///< after each hidden layer, in training
  ops::Mode mode = ops::Mode::train;
};

/// volume [N, channels, S, S, S] with S a multiple of 32 -> prediction [N, outputs], f32, within
/// +-1.2. Five times "conv1"... convolution, leaky ReLU of slope 0.3 and maximum of 2x2x2; then
/// "fc1", "fc2" with leaky ReLU and dropout, and "fc3" with 1.2 * tanh. At 4x128x128x128 it has
/// 8,907,556 parameters, with kernel 2 5,597,604. fc1 reads channels first, while the reference
/// reads channels last. Throws ConfigError if the volume does not fit.
Value cosmoflow_prediction(Graph& graph, Value volume, const CosmoFlowSpec& spec = {});

}  // namespace tutti::models
