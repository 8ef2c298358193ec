#pragma once
// The loop all per-channel passes share. Activations are [N, C/b, positions, b]
// (Layout::channel_block). Two orders of lanes:
//   b == 1: the 16 lanes are positions of one channel; a channel's parameters are splat
//   b > 1:  the 16 lanes are channels at one position; parameters are loaded, sums stay in lanes
//
// A Pass is a struct with
//   struct Params, struct Sums     registers of a channel's lanes (Sums may be empty)
//   Params params(ChannelLanes)    reads the parameters
//   void step(const Params&, Sums&, int64_t offset, lanes)
//                                  handles one vector at an element offset; lanes:
//                                  simd::AllLanes or SomeLanes
//   static void merge(Sums& into, const Sums& from)
//   void done(ChannelLanes, const Params&, const Sums&)      called after the tile's last position
// step() is inlined at a dozen places, so that its loop is as tight as it can be; work that is done
// once per channel is kept out of line, or the compiler would spend most of its time there.

#include <algorithm>
#include <cstdint>

#include "tutti/backend/backend.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"

namespace tutti::backend {

struct ChannelView {
  int64_t samples = 0, channels = 0, positions = 0, block = 0;
};

/// Returns the view of a layout that has a channel_block: a kernel that walks channels refuses
/// others.
inline ChannelView channel_view(const TensorDesc& desc) {
  const int64_t block = desc.layout.channel_block(desc.shape);
  CHECK(block > 0, "{} is not [N, C/b, positions, b]", desc.to_string());
  return {desc.shape[0], desc.shape[1], desc.shape.elements_from(2), block};
}

/// This part's channels in finish().
struct ChannelShare {
  int64_t begin, end;
  ChannelShare(int64_t channels, const FinishArgs& args)
      : begin(channels * args.thread / args.threads),
        end(channels * (args.thread + 1) / args.threads) {}
};

template <class T>
const T* input_of(const KernelArgs& args, size_t i) {
  return static_cast<const T*>(args.in[i]);
}

/// The channels in the lanes of a vector.
struct ChannelLanes {
  int64_t channel;
  int count;       ///< lanes in use: that many channels; 0 = all lanes are positions of `channel`
  int64_t offset;  ///< element offset of the first sample's first position

  simd::Floats read(const float* p) const {
    simd::Floats values;
    read(p, &values);
    return values;
  }
  /// Returns one number per channel, from lanes of the tile's first element of each channel.
  template <class T>
  simd::Floats first(const T* p) const {
    if (count == 0) return simd::splat(static_cast<float>(p[offset]));
    return count == simd::kLanes ? simd::load(p + offset, simd::AllLanes{})
                                 : simd::load(p + offset, simd::SomeLanes{count});
  }
  /// Calls add(channel, value of lane) with the sum over lanes where lanes are positions.
  template <class Add>
  [[gnu::noinline]] void each(const simd::Floats& sums, Add add) const {
    if (count == 0) return add(channel, simd::sum(sums));
    float values[simd::kLanes];
    simd::store(values, sums, simd::AllLanes{});
    for (int i = 0; i < count; ++i) add(channel + i, values[i]);
  }

 private:
  [[gnu::noinline]] void read(const float* p, simd::Floats* values) const {
    if (count == 0)
      *values = simd::splat(p[channel]);
    else
      *values = count == simd::kLanes ? simd::load(p + channel, simd::AllLanes{})
                                      : simd::load(p + channel, simd::SomeLanes{count});
  }
};

namespace detail {

template <class Pass>
void walk_positions(const ChannelView& v, Pass& pass) {
  constexpr int kUnroll = 4;  // independent sums hide the latency of addition
  for (int64_t c = 0; c < v.channels; ++c) {
    const ChannelLanes lanes{c, 0, c * v.positions};
    const auto params = pass.params(lanes);
    typename Pass::Sums sums[kUnroll]{};
    for (int64_t n = 0; n < v.samples; ++n) {
      const int64_t row = (n * v.channels + c) * v.positions;
      int64_t i = 0;
      for (; i + kUnroll * simd::kLanes <= v.positions; i += kUnroll * simd::kLanes)
#pragma GCC unroll 4
        for (int u = 0; u < kUnroll; ++u)
          pass.step(params, sums[u], row + i + u * simd::kLanes, simd::AllLanes{});
      for (; i + simd::kLanes <= v.positions; i += simd::kLanes)
        pass.step(params, sums[0], row + i, simd::AllLanes{});
      if (i < v.positions)
        pass.step(params, sums[0], row + i, simd::SomeLanes{static_cast<int>(v.positions - i)});
    }
    for (int u = 1; u < kUnroll; ++u) Pass::merge(sums[0], sums[u]);
    pass.done(lanes, params, sums[0]);
  }
}

/// Walks kVectors whole vectors of channels side by side, kUnroll positions at once. `rows`
/// positions lie `stride` elements apart, in `groups` groups `group_stride` apart.
struct RowLoop {
  int64_t groups, group_stride, rows, stride;
};

template <int kVectors, int kUnroll, class Lanes, class Pass>
void walk_channels(const RowLoop& r, int64_t channel, int64_t offset, Lanes lanes, Pass& pass) {
  typename Pass::Params params[kVectors];
  typename Pass::Sums sums[kUnroll][kVectors]{};
  const auto lanes_of = [&](int v) {
    return ChannelLanes{channel + v * simd::kLanes, lanes.n, offset + v * simd::kLanes};
  };
  for (int v = 0; v < kVectors; ++v) params[v] = pass.params(lanes_of(v));
  for (int64_t g = 0; g < r.groups; ++g) {
    int64_t at = offset + g * r.group_stride;
    int64_t i = 0;
    for (; i + kUnroll <= r.rows; i += kUnroll, at += kUnroll * r.stride) {
#pragma GCC unroll 8
      for (int u = 0; u < kUnroll; ++u)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          pass.step(params[v], sums[u][v], at + u * r.stride + v * simd::kLanes, lanes);
    }
    for (; i < r.rows; ++i, at += r.stride)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        pass.step(params[v], sums[0][v], at + v * simd::kLanes, lanes);
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int u = 1; u < kUnroll; ++u) Pass::merge(sums[0][v], sums[u][v]);
    pass.done(lanes_of(v), params[v], sums[0][v]);
  }
}

constexpr int64_t kFour = 4 * simd::kLanes, kMostOfRow = 32 * kFour;

/// Returns how many of these channels walk_rows() takes: fours of vectors, two of them at least.
inline int64_t channels_of_rows(int64_t left) {
  const int64_t channels = std::min(left, kMostOfRow) / kFour * kFour;
  return channels < 2 * kFour ? 0 : channels;
}

/// Walks whole rows one after the other, so that memory is read contiguously: if it does not come
/// from the second-level cache, this takes two thirds of the time of walking all rows for some
/// channels after others, though sums and parameters go through the first-level cache.
template <class Pass>
void walk_rows(const RowLoop& r, int64_t channel, int64_t offset, int64_t channels, Pass& pass) {
  typename Pass::Params params[kMostOfRow / simd::kLanes];
  typename Pass::Sums sums[kMostOfRow / simd::kLanes];
  const int64_t vectors = channels / simd::kLanes;
  const auto lanes_of = [&](int64_t v) {
    return ChannelLanes{channel + v * simd::kLanes, simd::kLanes, offset + v * simd::kLanes};
  };
  for (int64_t v = 0; v < vectors; ++v) {
    params[v] = pass.params(lanes_of(v));
    sums[v] = typename Pass::Sums{};
  }
  for (int64_t g = 0; g < r.groups; ++g)
    for (int64_t i = 0; i < r.rows; ++i) {
      const int64_t at = offset + g * r.group_stride + i * r.stride;
      for (int64_t v = 0; v < vectors; v += 4)
#pragma GCC unroll 4
        for (int64_t k = v; k < v + 4; ++k)
          pass.step(params[k], sums[k], at + k * simd::kLanes, simd::AllLanes{});
    }
  for (int64_t v = 0; v < vectors; ++v) pass.done(lanes_of(v), params[v], sums[v]);
}

}  // namespace detail

/// Runs the pass over a tile.
template <class Pass>
void walk_tile(const ChannelView& v, Pass& pass) {
  using simd::AllLanes, simd::kLanes;
  if (v.block == 1) return detail::walk_positions(v, pass);
  const bool last = v.block == v.channels;  // samples and positions then form one long run
  const detail::RowLoop rows =
      last ? detail::RowLoop{1, 0, v.samples * v.positions, v.block}
           : detail::RowLoop{v.samples, v.channels * v.positions, v.positions, v.block};
  for (int64_t block = 0; block < v.channels / v.block; ++block) {
    const int64_t channel = block * v.block, offset = channel * v.positions;
    int64_t i = 0;
    for (int64_t n; (n = detail::channels_of_rows(v.block - i)) > 0; i += n)
      detail::walk_rows(rows, channel + i, offset + i, n, pass);
    for (; i + 4 * kLanes <= v.block; i += 4 * kLanes)
      detail::walk_channels<4, 1>(rows, channel + i, offset + i, AllLanes{}, pass);
    for (; i + 2 * kLanes <= v.block; i += 2 * kLanes)
      detail::walk_channels<2, 2>(rows, channel + i, offset + i, AllLanes{}, pass);
    for (; i + kLanes <= v.block; i += kLanes)
      detail::walk_channels<1, 4>(rows, channel + i, offset + i, AllLanes{}, pass);
    // There is no latency to hide without sums, nor where loading some lanes takes longer than
    // adding.
    constexpr int kUnroll = TUTTI_AVX512 && !std::is_empty_v<typename Pass::Sums> ? 4 : 1;
    if (i < v.block)
      detail::walk_channels<1, kUnroll>(rows, channel + i, offset + i,
                                        simd::SomeLanes{static_cast<int>(v.block - i)}, pass);
  }
}

}  // namespace tutti::backend
