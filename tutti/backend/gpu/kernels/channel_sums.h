#pragma once
// Arguments of the kernels of channel_sums.cu, and of every kernel that goes through an activation
// by channel (channel_walk_code.h).

#include <cstdint>

namespace tutti::backend {

/// Threads of a block of every kernel that takes a ChannelWalk or totals what such kernels sum.
constexpr int kChannelThreads = 256;
/// Neighbouring channels whose sums one block totals: a sector of 32 bytes.
constexpr int kTotalledChannels = 8;

/// How blocks share an activation [N, C, positions] of which each thread handles the channels of
/// one pack. Memory is rows of C channels, one for each sample and position, or planes of one
/// channel's positions. A run is one pack of a thread's: of a row, or of a plane. A segment is what
/// sums are over: the batch, or a sample. Grid: groups x chunks x segments, groups fastest.
struct ChannelWalk {
  int64_t runs;       ///< runs of a channel in a segment
  int64_t segment;    ///< elements of a segment
  int32_t per_block;  ///< runs of a block; the last chunk may have fewer
  int32_t chunks;     ///< blocks that share the runs of a channel in a segment
  int32_t groups;     ///< blocks that share a row's packs; planes: C
  int32_t width;      ///< neighbouring packs of a row in a block; planes: 1
  int32_t side;       ///< runs of a channel that a block takes at a time
  int32_t packs;      ///< packs of a row, or of a plane
  int32_t channels;   ///< C
};

/// channel_sums_end.TYPE: y [segments, C] of the type = factor * totals of the partial sums.
struct ChannelSumsEndArgs {
  float* partials;  ///< [segments, chunks, C]
  void* y;
  float factor;
  int32_t chunks, channels;
};

/// channel_sums.TYPE.FORM: sums of x over each segment. With one chunk they may be written to
/// end.y of x's type, times the factor; otherwise this is null, or the counters are not.
struct ChannelSumsArgs {
  ChannelWalk walk;
  const void* x;
  ChannelSumsEndArgs end;
  unsigned* counters;  ///< by segment and group; null: the end is a launch of its own
  bool y_is_f32;       ///< with counters: y is not of x's type
};

/// channel_spread.TYPE.FORM: y [N, C, positions] = factor * x [N, C]; a segment is a sample.
struct ChannelSpreadArgs {
  ChannelWalk walk;
  const void* x;
  void* y;
  float factor;
};

}  // namespace tutti::backend
