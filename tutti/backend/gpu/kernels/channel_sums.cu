// Sums over samples and positions, or positions alone, for each channel; and what is the same for
// all positions of a channel.

#include "tutti/backend/gpu/kernels/channel_sums.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/channel_walk_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

/// Ends channel c. All threads of the block call it.
template <class T>
TUTTI_DEVICE void end_sum(const ChannelSumsEndArgs& a, const TotalledChannel& c) {
  const float* const partials = a.partials + c.segment * a.chunks * a.channels + c.channel;
  double totals[1];
  total_chunks<1>(c, a.chunks, totals, [&](int chunk, double(&sums)[1]) {
    sums[0] += load(partials + static_cast<int64_t>(chunk) * a.channels);
  });
  if (!c.ends) return;
  T y;
  from_float(static_cast<float>(totals[0]) * a.factor, y);
  store(static_cast<T*>(a.y) + c.segment * a.channels + c.channel, y);
}

template <class T>
TUTTI_DEVICE void end_group_sums(const ChannelSumsEndArgs& a, const ChannelGroup& group) {
  for (int c = group.first; c < group.last; c += kTotalledChannels)
    end_sum<T>(a, TotalledChannel(group.segment, c, group.last));
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads, kSumBlocks<N, kRows>)
channel_sums(ChannelSumsArgs a) {
  constexpr int kChannels = ChannelThread<N, kRows>::kChannels;
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const T* const x = static_cast<const T*>(a.x);
  float sums[1][N] = {}, of_block[1][kChannels];
  if (thread.works)
    thread.each(a.walk, block, [&](int64_t at) {
      const Pack<T, N> v = load<N>(x + at);
      for (int k = 0; k < N; ++k) sums[0][k] += to_float(v.at[k]);
    });
  sum_block<1, N, kRows>(a.walk, sums, of_block);
  const bool whole = a.end.y != nullptr && a.counters == nullptr;
  if (thread.works && thread.row == 0 && !whole)
    write_channels(a.end.partials + block.partial(a.walk, 1, thread.channel), of_block[0]);
  if (thread.works && thread.row == 0 && whole) {
    Pack<T, kChannels> y;
    for (int k = 0; k < kChannels; ++k) from_float(of_block[0][k] * a.end.factor, y.at[k]);
    store<kChannels>(static_cast<T*>(a.end.y) + block.segment * a.walk.channels + thread.channel,
                     y);
  }
  if (!ends_group(a.walk, block, a.counters)) return;
  if (a.y_is_f32)
    end_group_sums<float>(a.end, group_of<N, kRows>(a.walk, block));
  else
    end_group_sums<T>(a.end, group_of<N, kRows>(a.walk, block));
}

template <class T>
TUTTI_KERNEL(kChannelThreads)
channel_sums_end(ChannelSumsEndArgs a) {
  end_sum<T>(a, totalled_by_grid(a.channels));
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads)
channel_spread(ChannelSpreadArgs a) {
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const T* const x = static_cast<const T*>(a.x) + block.segment * a.walk.channels;
  const auto of = find_numbers<1, N, kRows>(
      a.walk, block, [&](int c) -> OfChannel<1> { return {{to_float(load(x + c)) * a.factor}}; });
  if (!thread.works) return;
  Pack<T, N> y;
  for (int k = 0; k < N; ++k) from_float(of(0, k), y.at[k]);
  thread.each(a.walk, block, [&](int64_t at) { store<N>(static_cast<T*>(a.y) + at, y); });
}

}  // namespace

std::span<const device::DeviceFunction> channel_sums_functions() {
  static const device::DeviceFunction list[] = {
      TUTTI_CHANNEL_FORMS(channel_sums, "channel_sums", false),
      device_function<channel_sums_end<float>>("channel_sums_end.f32", kChannelThreads),
      device_function<channel_sums_end<bf16>>("channel_sums_end.bf16", kChannelThreads),
      TUTTI_CHANNEL_FORMS(channel_spread, "channel_spread", true),
  };
  return list;
}

}  // namespace tutti::backend
