#pragma once
// DeepCAM of MLPerf HPC: segmentation of climate fields (Kurth et al. 2018, "Exascale deep learning
// for climate analytics"; mlcommons/hpc, deepcam/src/deepCam/architecture). DeepLabv3+ (Chen et al.
// 2018) with an Xception encoder and learned upsampling, at output stride 16.

#include "tutti/models/block/model.h"

namespace tutti::models {

struct DeepCamSpec {
  int64_t classes = 3;
  int64_t divisor = 1;  ///< 1 to 32: all widths but the last are divided by it, rounded up
  int middle_blocks = 16;
  ops::Mode mode = ops::Mode::train;
};

/// fields [N, channels, H, W] with H and W multiples of 16 -> logits [N, classes, H, W], f32. At 16
/// channels it has 56,454,720 parameters. They have the names of the reference, without the leading
/// "module.". The affine layer of the image pooling, "...global_average_pool.2", has weights [C, 1,
/// 1, 1] and bias [C] here; the reference has [C, 1, 1] for each. The encoder and the atrous
/// convolutions start as N(0, 2 / fan_in), the rest as PyTorch's layers. Throws ConfigError if the
/// fields do not fit.
Value deepcam_logits(Graph& graph, Value fields, const DeepCamSpec& spec = {});

}  // namespace tutti::models
