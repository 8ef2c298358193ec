#pragma once
// Statistics of a batch norm: shifted sums within a tile; means and squared deviations are combined
// between tiles and threads as in Chan, Golub and LeVeque (1983).

#include <functional>
#include <memory>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/simd/channel_walk.h"
#include "tutti/ops/batch_norm.h"

namespace tutti {

/// Returns the maker of the kernel of BatchNormStats or BatchNormMoments for activations of this
/// type, f32 or bf16; empty for other ops.
std::function<std::unique_ptr<Kernel>()> batch_norm_sums(const Op& op, const ChannelView& view,
                                                         DType activations);

}  // namespace tutti
