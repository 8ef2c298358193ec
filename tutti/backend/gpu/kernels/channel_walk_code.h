#pragma once
// Ways through an activation by channel, and sums on them. Sums are f32 in a block, always in the
// same tree, and double over blocks; which block sums what depends on shapes and layouts alone.

#include "device_code.h"
#include "tutti/backend/gpu/kernels/channel_sums.h"

/// Lists a kernel of a type, a size of packs, a form and what else it is a template of, for all
/// types and forms that hosts ask for. `flat`: threads meet at most where memory is rows.
#define TUTTI_CHANNEL_FORMS(kernel, name, flat, ...)                                       \
  TUTTI_CHANNEL_FORM(kernel, name ".f32.rows4", false, float, 4, true, __VA_ARGS__),       \
      TUTTI_CHANNEL_FORM(kernel, name ".f32.rows1", false, float, 1, true, __VA_ARGS__),   \
      TUTTI_CHANNEL_FORM(kernel, name ".f32.planes4", flat, float, 4, false, __VA_ARGS__), \
      TUTTI_CHANNEL_FORM(kernel, name ".f32.planes1", flat, float, 1, false, __VA_ARGS__), \
      TUTTI_CHANNEL_FORM(kernel, name ".bf16.rows8", false, bf16, 8, true, __VA_ARGS__),   \
      TUTTI_CHANNEL_FORM(kernel, name ".bf16.rows1", false, bf16, 1, true, __VA_ARGS__),   \
      TUTTI_CHANNEL_FORM(kernel, name ".bf16.planes8", flat, bf16, 8, false, __VA_ARGS__), \
      TUTTI_CHANNEL_FORM(kernel, name ".bf16.planes1", flat, bf16, 1, false, __VA_ARGS__)
#define TUTTI_CHANNEL_FORM(kernel, name, flat, type, pack, rows, ...) \
  device_function<kernel<type, pack, rows __VA_OPT__(, ) __VA_ARGS__>>(name, kChannelThreads, flat)

namespace tutti::backend {

/// The runs of this block.
struct ChannelBlock {
  int group, chunk, runs;
  int64_t segment, first;

  TUTTI_DEVICE explicit ChannelBlock(const ChannelWalk& w) {
    const auto groups = static_cast<unsigned>(w.groups), chunks = static_cast<unsigned>(w.chunks);
    const unsigned rest = blockIdx.x / groups;
    group = static_cast<int>(blockIdx.x % groups);
    chunk = static_cast<int>(rest % chunks);
    segment = rest / chunks;
    first = static_cast<int64_t>(chunk) * w.per_block;
    const int64_t left = w.runs - first;
    runs = left < w.per_block ? static_cast<int>(left) : w.per_block;
  }
  /// Returns where the block's partial sums of a channel begin, of `sums` numbers each:
  /// [segments, chunks, sums, C].
  TUTTI_DEVICE int64_t partial(const ChannelWalk& w, int sums, int channel) const {
    return (segment * w.chunks + chunk) * sums * w.channels + channel;
  }
};

/// The part of this thread: packs of N elements, of N channels where memory is rows, of one channel
/// otherwise.
template <int N, bool kRows>
struct ChannelThread {
  static constexpr int kChannels = kRows ? N : 1;
  int row, channel;
  bool works;

  TUTTI_DEVICE ChannelThread(const ChannelWalk& w, const ChannelBlock& b) {
    const int thread = static_cast<int>(threadIdx.x);
    row = thread / w.width;
    const int pack = b.group * w.width + thread % w.width;
    channel = kRows ? pack * N : b.group;
    works = row < w.side && (!kRows || pack < w.packs);
  }
  /// Returns the place of the block's first element of a channel.
  TUTTI_DEVICE static int64_t first_of(const ChannelWalk& w, const ChannelBlock& b, int channel) {
    if constexpr (kRows) {
      return b.segment * w.segment + b.first * w.channels + channel;
    } else {
      const int64_t sample = b.first / w.packs, pack = b.first % w.packs;
      return b.segment * w.segment + ((sample * w.channels + channel) * w.packs + pack) * N;
    }
  }
  /// Calls f(place of the pack's first element) for each of the thread's packs.
  template <class F>
  TUTTI_DEVICE void each(const ChannelWalk& w, const ChannelBlock& b, F f) const {
    if constexpr (kRows) {
      const int64_t step = static_cast<int64_t>(w.side) * w.channels,
                    first = first_of(w, b, channel),
                    end = first + static_cast<int64_t>(b.runs) * w.channels;
      for (int64_t at = first + static_cast<int64_t>(row) * w.channels; at < end; at += step) f(at);
    } else {
      // The next pack of a thread is so many samples and packs further.
      const int samples = kChannelThreads / w.packs, packs = kChannelThreads % w.packs;
      const int64_t of_sample = static_cast<int64_t>(w.channels) * w.packs,
                    step = (samples * of_sample + packs) * N, over = (of_sample - w.packs) * N;
      const int64_t sample = (b.first + row) / w.packs;
      int pack = static_cast<int>((b.first + row) % w.packs);
      int64_t at = b.segment * w.segment +
                   (sample * of_sample + static_cast<int64_t>(channel) * w.packs + pack) * N;
      for (int run = row; run < b.runs; run += kChannelThreads) {
        f(at);
        at += step;
        pack += packs;
        if (pack >= w.packs) {
          pack -= w.packs;
          at += over;
        }
      }
    }
  }
};

/// Some numbers of one channel.
template <int kNumbers>
struct OfChannel {
  float number[kNumbers];
};

/// The numbers of a thread's channels.
template <int kNumbers, int N, bool kRows>
struct OfChannels {
  float of[kNumbers][kRows ? N : 1];
  /// Returns a number of the channel that element k of a pack is in.
  TUTTI_DEVICE float operator()(int number, int k) const { return of[number][kRows ? k : 0]; }
};

/// Returns find(channel), of kNumbers numbers, for the channels of this thread. All threads call
/// it: where memory is rows, the block finds the numbers of each channel once.
template <int kNumbers, int N, bool kRows, class Find>
TUTTI_DEVICE OfChannels<kNumbers, N, kRows> find_numbers(const ChannelWalk& w,
                                                         const ChannelBlock& b, Find find) {
  OfChannels<kNumbers, N, kRows> found;
  if constexpr (kRows) {
    constexpr int kColumns = kChannelThreads / N;  // at least the block's
    constexpr int kShared = kNumbers * kChannelThreads;
    TUTTI_SHARED(float, numbers, kShared);
    const int thread = static_cast<int>(threadIdx.x), column = thread % w.width,
              channel = b.group * w.width * N + thread;
    if (thread < w.width * N && channel < w.channels) {
      const OfChannel<kNumbers> of = find(channel);
      for (int i = 0; i < kNumbers; ++i)
        numbers[(i * N + thread % N) * kColumns + thread / N] = of.number[i];
    }
    __syncthreads();
    for (int i = 0; i < kNumbers; ++i)
      for (int k = 0; k < N; ++k) found.of[i][k] = numbers[(i * N + k) * kColumns + column];
  } else {
    const OfChannel<kNumbers> of = find(b.group);
    for (int i = 0; i < kNumbers; ++i) found.of[i][0] = of.number[i];
  }
  return found;
}

/// Writes numbers of a thread's channels to places that follow each other.
template <int kCount>
TUTTI_DEVICE void write_channels(float* to, const float (&v)[kCount]) {
  constexpr int kPack = kCount % 4 == 0 ? 4 : 1;
  for (int k = 0; k < kCount; k += kPack) {
    Pack<float, kPack> part;
    for (int i = 0; i < kPack; ++i) part.at[i] = v[k + i];
    store<kPack>(to + k, part);
  }
}

/// Adds up each of kSums numbers of each element over the threads of the block that have the same
/// channels. All threads call it; those of row 0 get the sums, by channel.
template <int kSums, int N, bool kRows>
TUTTI_DEVICE void sum_block(const ChannelWalk& w, const float (&v)[kSums][N],
                            float (&sums)[kSums][kRows ? N : 1]) {
  constexpr int kChannels = kRows ? N : 1, kNumbers = kSums * kChannels,
                kShared = kNumbers * kChannelThreads;
  TUTTI_SHARED(float, part, kShared);
  const int thread = static_cast<int>(threadIdx.x), row = thread / w.width;
  for (int s = 0; s < kSums; ++s)
    for (int k = 0; k < kChannels; ++k) {
      float sum = v[s][k];
      if (!kRows)
        for (int i = 1; i < N; ++i) sum += v[s][i];
      part[(s * kChannels + k) * kChannelThreads + thread] = sum;
    }
  __syncthreads();
  for (int rows = w.side; rows > 1;) {
    const int half = (rows + 1) / 2;
    if (row < rows - half)
      for (int i = 0; i < kNumbers; ++i)
        part[i * kChannelThreads + thread] += part[i * kChannelThreads + thread + half * w.width];
    __syncthreads();
    rows = half;
  }
  for (int s = 0; s < kSums; ++s)
    for (int k = 0; k < kChannels; ++k)
      sums[s][k] = part[(s * kChannels + k) * kChannelThreads + thread];
}

/// The channel whose partial sums a thread helps to total. A block has kTotalledChannels channels
/// of a segment; where `ends`, this thread gets the totals.
struct TotalledChannel {
  int64_t segment;
  int channel, row;
  bool works, ends;

  /// Takes channels [first, last), or the first kTotalledChannels of them.
  TUTTI_DEVICE TotalledChannel(int64_t of_segment, int first, int last)
      : segment(of_segment), channel(first + static_cast<int>(threadIdx.x % kTotalledChannels)),
        row(static_cast<int>(threadIdx.x / kTotalledChannels)), works(channel < last),
        ends(works && row == 0) {}
};

/// Returns the channel of a thread where a grid has a block for each kTotalledChannels of them.
TUTTI_DEVICE TotalledChannel totalled_by_grid(int channels) {
  const unsigned groups =
      (static_cast<unsigned>(channels) + kTotalledChannels - 1) / kTotalledChannels;
  return {blockIdx.x / groups, static_cast<int>(blockIdx.x % groups * kTotalledChannels), channels};
}

/// Calls add(chunk, totals) for a thread's chunks and adds up the totals of the threads of a
/// channel. All threads call it.
template <int kSums, class Add>
TUTTI_DEVICE void total_chunks(const TotalledChannel& c, int chunks, double (&totals)[kSums],
                               Add add) {
  constexpr int kTotalledRows = kChannelThreads / kTotalledChannels,
                kShared = kSums * kChannelThreads;
  TUTTI_SHARED(double, part, kShared);
  const int thread = static_cast<int>(threadIdx.x);
  for (int s = 0; s < kSums; ++s) totals[s] = 0;
  if (c.works)
    for (int chunk = c.row; chunk < chunks; chunk += kTotalledRows) add(chunk, totals);
  for (int s = 0; s < kSums; ++s) part[s * kChannelThreads + thread] = totals[s];
  __syncthreads();
  for (int half = kTotalledRows / 2; half > 0; half /= 2) {
    if (c.row < half)
      for (int s = 0; s < kSums; ++s)
        part[s * kChannelThreads + thread] +=
            part[s * kChannelThreads + thread + half * kTotalledChannels];
    __syncthreads();
  }
  for (int s = 0; s < kSums; ++s) totals[s] = part[s * kChannelThreads + thread];
}

/// The blocks that registers are to suffice for in kernels that end their sums: as many as leave no
/// number in memory.
template <int N, bool kRows>
constexpr int kSumBlocks = N == 1  ? 5
                           : kRows ? 4
                                   : 3;

/// The channels of a block's group.
struct ChannelGroup {
  int64_t segment;
  int first, last;
};

/// Returns whether this block, to be asked by all of its threads, ends its group, because it comes
/// last of the group's chunks. Without counters nobody does.
TUTTI_DEVICE bool ends_group(const ChannelWalk& w, const ChannelBlock& b, unsigned* counters) {
  return counters != nullptr &&
         comes_last(counters + b.segment * w.groups + b.group, static_cast<unsigned>(w.chunks));
}
template <int N, bool kRows>
TUTTI_DEVICE ChannelGroup group_of(const ChannelWalk& w, const ChannelBlock& b) {
  const int channels = kRows ? w.width * N : 1, first = b.group * channels;
  return {b.segment, first, first + channels < w.channels ? first + channels : w.channels};
}

}  // namespace tutti::backend
