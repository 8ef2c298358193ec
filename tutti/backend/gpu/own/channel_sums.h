#pragma once
// How own kernels go through activations by channel (kernels/channel_walk_code.h).

#include <string>

#include "tutti/backend/backend.h"
#include "tutti/backend/gpu/kernels/channel_sums.h"
#include "tutti/backend/gpu/own/block_counters.h"
#include "tutti/device/device.h"

namespace tutti::backend {

/// The elements that a sum by channel adds.
enum class SumsOver : uint8_t { batch, sample };

/// The way of kernels through activations of one type, shape and layout. It depends on these alone,
/// so sums have the same bits on every device.
struct ChannelWay {
  ChannelWalk walk;
  int64_t segments;   ///< times that sums are made, each over its own elements
  int32_t of_run;     ///< values of a channel in a run
  std::string form;   ///< ends the names of functions: ".bf16.rows8"
  device::Dim3 grid;  ///< the grid of kernels that take the walk
  device::Dim3 ends;  ///< the grid of kernels that total the chunks
  /// By segment and group, where a group's last block totals its chunks; none where that would be
  /// too much for one block, and is a launch of its own.
  BlockCounters counters;

  /// Returns the bytes of so many partial sums of each block and channel.
  size_t partial_bytes(int sums) const;
};

/// Returns why kernels have no way through this activation; empty if they have. They take f32 and
/// bf16, matrices [N, C], and plain or channels last where there are positions.
std::string refusal_of_channels(const TensorDesc& x);
/// Requires an activation that is not refused.
ChannelWay channel_way(const TensorDesc& x, SumsOver over);

}  // namespace tutti::backend
