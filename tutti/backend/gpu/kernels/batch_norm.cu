// Batch normalisation: every kernel goes once through its operands. Statistics are sums of
// differences from a value of the block, so that a large mean costs no digits; moments of blocks
// are merged in double, as in Chan, Golub and LeVeque (1983).

#include "tutti/backend/gpu/kernels/batch_norm.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/channel_walk_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

/// Ends channel c, with `count` values of this mean and sum of squared deviations. A single value
/// has no variance, and does not change the running one.
TUTTI_DEVICE void end_statistics(const NormStatisticsOut& to, int c, double count, double mean,
                                 double deviations) {
  float average = load(to.running_mean + c), spread = load(to.running_var + c);
  if (to.momentum > 0) {  // otherwise a batch that is not finite would change them
    average += to.momentum * (static_cast<float>(mean) - average);
    store(to.running_mean + c, average);
    if (count > 1) {
      spread += to.momentum * (static_cast<float>(deviations / (count - 1)) - spread);
      store(to.running_var + c, spread);
    }
  }
  const double variance = to.running ? static_cast<double>(spread) : deviations / count;
  store(to.mean + c, to.running ? average : static_cast<float>(mean));
  store(to.inv_std + c, static_cast<float>(1 / sqrt(variance + static_cast<double>(to.epsilon))));
}

/// Ends channel c. Chunks' means are counted from the first chunk's. All threads of the block call
/// it.
TUTTI_DEVICE void end_moments(const NormMomentsEndArgs& a, const TotalledChannel& c) {
  const float* const partials = a.partials + c.channel;
  const int64_t step = 2 * static_cast<int64_t>(a.channels);
  const double base = c.works ? load(partials) : 0.0f;
  double totals[2];
  total_chunks<2>(c, a.chunks, totals, [&](int chunk, double(&sums)[2]) {
    const int64_t left = a.runs - static_cast<int64_t>(chunk) * a.per_block;
    const double count = static_cast<double>(left < a.per_block ? left : a.per_block) * a.of_run;
    const double offset = load(partials + chunk * step) - base;
    sums[0] += count * offset;
    sums[1] += load(partials + chunk * step + a.channels) + count * offset * offset;
  });
  if (!c.ends) return;
  const double count = static_cast<double>(a.runs) * a.of_run, offset = totals[0] / count;
  const double left = totals[1] - totals[0] * offset, deviations = left < 0 ? 0 : left;
  if (a.to.running_mean != nullptr)
    return end_statistics(a.to, c.channel, count, base + offset, deviations);
  store(a.to.mean + c.channel, static_cast<float>(base + offset));
  store(a.to.inv_std + c.channel, static_cast<float>(deviations / count));
}

TUTTI_DEVICE void end_group_moments(const NormMomentsEndArgs& a, const ChannelGroup& group) {
  for (int c = group.first; c < group.last; c += kTotalledChannels)
    end_moments(a, TotalledChannel(group.segment, c, group.last));
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads, kSumBlocks<N, kRows>)
norm_moments(NormMomentsArgs a) {
  constexpr int kChannels = ChannelThread<N, kRows>::kChannels;
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const T* const y = static_cast<const T*>(a.y);
  float sums[2][N] = {}, of_block[2][kChannels];
  const auto shift = find_numbers<1, N, kRows>(a.walk, block, [&](int c) -> OfChannel<1> {
    return {{to_float(load(y + ChannelThread<N, kRows>::first_of(a.walk, block, c)))}};
  });
  if (thread.works)
    thread.each(a.walk, block, [&](int64_t at) {
      const Pack<T, N> v = load<N>(y + at);
      for (int k = 0; k < N; ++k) {
        const float d = to_float(v.at[k]) - shift(0, k);
        sums[0][k] += d;
        sums[1][k] += d * d;
      }
    });
  sum_block<2, N, kRows>(a.walk, sums, of_block);
  if (thread.works && thread.row == 0) {
    const float count = static_cast<float>(block.runs) * (kRows ? 1 : N);
    float means[kChannels], deviations[kChannels];
    for (int k = 0; k < kChannels; ++k) {
      const float offset = of_block[0][k] / count, left = of_block[1][k] - of_block[0][k] * offset;
      means[k] = shift(0, k) + offset;
      deviations[k] = left < 0 ? 0.0f : left;
    }
    float* const to = a.end.partials + block.partial(a.walk, 2, thread.channel);
    write_channels(to, means);
    write_channels(to + a.walk.channels, deviations);
  }
  if (ends_group(a.walk, block, a.counters))
    end_group_moments(a.end, group_of<N, kRows>(a.walk, block));
}

TUTTI_KERNEL(kChannelThreads) norm_moments_end(NormMomentsEndArgs a) {
  end_moments(a, totalled_by_grid(a.channels));
}

TUTTI_KERNEL(kChannelThreads) norm_merge(NormMergeArgs a) {
  const int c = static_cast<int>(blockIdx.x * kChannelThreads + threadIdx.x);
  if (c >= a.channels) return;
  double count = 0, mean = 0, deviations = 0;
  for (int r = 0; r < a.ranks; ++r) {
    const double n = static_cast<double>(a.count[r]);
    const double delta = load(a.mean[r] + c) - mean;
    deviations += load(a.variance[r] + c) * n + delta * delta * count * n / (count + n);
    mean += delta * n / (count + n);
    count += n;
  }
  end_statistics(a.to, c, count, mean, deviations);
}

TUTTI_DEVICE float inverse_deviation(const NormSecond& second, float value) {
  return second.variance ? 1.0f / sqrtf(value + second.epsilon) : value;
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads)
norm_apply(NormApplyArgs a) {
  constexpr int kMean = 0, kScale = 1, kBeta = 2;
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const auto of = find_numbers<3, N, kRows>(a.walk, block, [&](int c) -> OfChannel<3> {
    const float inv_std = inverse_deviation(a.second, load(a.second.values + c));
    return {{load(a.mean + c), load(a.gamma + c) * inv_std, load(a.beta + c)}};
  });
  if (!thread.works) return;
  const T* const residual = static_cast<const T*>(a.residual);
  thread.each(a.walk, block, [&](int64_t at) {
    Pack<T, N> v = load<N>(static_cast<const T*>(a.y) + at), added{};
    if (residual != nullptr) added = load<N>(residual + at);
    for (int k = 0; k < N; ++k) {
      float z = (to_float(v.at[k]) - of(kMean, k)) * of(kScale, k) + of(kBeta, k);
      if (residual != nullptr) z += to_float(added.at[k]);
      from_float(a.relu && z < 0 ? 0.0f : z, v.at[k]);
    }
    store<N>(static_cast<T*>(a.z) + at, v);
  });
}

/// Ends channel c. All threads of the block call it.
TUTTI_DEVICE void end_grad_sums(const NormGradSumsEndArgs& a, const TotalledChannel& c) {
  const float* const partials = a.partials + c.channel;
  double totals[2];
  total_chunks<2>(c, a.chunks, totals, [&](int chunk, double(&sums)[2]) {
    const float* const of_chunk = partials + 2 * static_cast<int64_t>(chunk) * a.channels;
    sums[0] += load(of_chunk);
    sums[1] += load(of_chunk + a.channels);
  });
  if (!c.ends) return;
  const float inv_std = inverse_deviation(a.second, load(a.second.values + c.channel));
  store(a.dbeta + c.channel, static_cast<float>(totals[0]));
  store(a.dgamma + c.channel, static_cast<float>(totals[1] * inv_std));
}

TUTTI_DEVICE void end_group_grad_sums(const NormGradSumsEndArgs& a, const ChannelGroup& group) {
  for (int c = group.first; c < group.last; c += kTotalledChannels)
    end_grad_sums(a, TotalledChannel(group.segment, c, group.last));
}

template <class T, int N, bool kRows, bool kRelu, bool kTwo>
TUTTI_KERNEL(kChannelThreads, kSumBlocks<N, kRows>)
norm_grad_sums(NormGradSumsArgs a) {
  constexpr int kChannels = ChannelThread<N, kRows>::kChannels;
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  float sums[2][N] = {}, of_block[2][kChannels];
  const auto mean = find_numbers<1, N, kRows>(
      a.walk, block, [&](int c) -> OfChannel<1> { return {{load(a.mean + c)}}; });
  if (thread.works)
    thread.each(a.walk, block, [&](int64_t at) {
      Pack<T, N> g = load<N>(static_cast<const T*>(a.dz) + at), more{}, z{};
      const Pack<T, N> y = load<N>(static_cast<const T*>(a.y) + at);
      if constexpr (kTwo) more = load<N>(static_cast<const T*>(a.dz2) + at);
      if constexpr (kRelu) z = load<N>(static_cast<const T*>(a.z) + at);
      for (int k = 0; k < N; ++k) {
        float v = to_float(g.at[k]);
        if constexpr (kTwo) v += to_float(more.at[k]);
        if constexpr (kRelu) v = to_float(z.at[k]) > 0 ? v : 0.0f;
        from_float(v, g.at[k]);
        sums[0][k] += v;
        sums[1][k] += v * (to_float(y.at[k]) - mean(0, k));
      }
      store<N>(static_cast<T*>(a.g) + at, g);
    });
  sum_block<2, N, kRows>(a.walk, sums, of_block);
  if (thread.works && thread.row == 0) {
    float* const to = a.end.partials + block.partial(a.walk, 2, thread.channel);
    write_channels(to, of_block[0]);
    write_channels(to + a.walk.channels, of_block[1]);
  }
  if (ends_group(a.walk, block, a.counters))
    end_group_grad_sums(a.end, group_of<N, kRows>(a.walk, block));
}

TUTTI_KERNEL(kChannelThreads) norm_grad_sums_end(NormGradSumsEndArgs a) {
  end_grad_sums(a, totalled_by_grid(a.channels));
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads)
norm_grad_apply(NormGradApplyArgs a) {
  constexpr int kMean = 0, kScale = 1, kSlope = 2, kOffset = 3;
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const auto of = find_numbers<4, N, kRows>(a.walk, block, [&](int c) -> OfChannel<4> {
    const float inv_std = load(a.inv_std + c), scale = load(a.gamma + c) * inv_std,
                per_count = scale * a.inverse_count;
    return {{load(a.mean + c), scale, per_count * inv_std * load(a.dgamma + c),
             per_count * load(a.dbeta + c)}};
  });
  if (!thread.works) return;
  thread.each(a.walk, block, [&](int64_t at) {
    Pack<T, N> g = load<N>(static_cast<const T*>(a.g) + at);
    const Pack<T, N> y = load<N>(static_cast<const T*>(a.y) + at);
    for (int k = 0; k < N; ++k) {
      const float centred = to_float(y.at[k]) - of(kMean, k);
      from_float(of(kScale, k) * to_float(g.at[k]) - of(kOffset, k) - centred * of(kSlope, k),
                 g.at[k]);
    }
    store<N>(static_cast<T*>(a.dy) + at, g);
  });
}

template <class T, int N, bool kRows>
TUTTI_KERNEL(kChannelThreads)
norm_grad_scale(NormGradScaleArgs a) {
  const ChannelBlock block(a.walk);
  const ChannelThread<N, kRows> thread(a.walk, block);
  const auto scale = find_numbers<1, N, kRows>(a.walk, block, [&](int c) -> OfChannel<1> {
    return {{load(a.gamma + c) * inverse_deviation(a.second, load(a.second.values + c))}};
  });
  if (!thread.works) return;
  thread.each(a.walk, block, [&](int64_t at) {
    Pack<T, N> g = load<N>(static_cast<const T*>(a.g) + at);
    for (int k = 0; k < N; ++k) from_float(scale(0, k) * to_float(g.at[k]), g.at[k]);
    store<N>(static_cast<T*>(a.dy) + at, g);
  });
}

}  // namespace

std::span<const device::DeviceFunction> batch_norm_functions() {
  static const device::DeviceFunction list[] = {
      TUTTI_CHANNEL_FORMS(norm_moments, "norm_moments", false),
      device_function<norm_moments_end>("norm_moments_end", kChannelThreads),
      device_function<norm_merge>("norm_merge", kChannelThreads, true),
      TUTTI_CHANNEL_FORMS(norm_apply, "norm_apply", true),
      TUTTI_CHANNEL_FORMS(norm_grad_sums, "norm_grad_sums", false, false, false),
      TUTTI_CHANNEL_FORMS(norm_grad_sums, "norm_grad_sums.relu", false, true, false),
      TUTTI_CHANNEL_FORMS(norm_grad_sums, "norm_grad_sums.two", false, false, true),
      TUTTI_CHANNEL_FORMS(norm_grad_sums, "norm_grad_sums.relu.two", false, true, true),
      device_function<norm_grad_sums_end>("norm_grad_sums_end", kChannelThreads),
      TUTTI_CHANNEL_FORMS(norm_grad_apply, "norm_grad_apply", true),
      TUTTI_CHANNEL_FORMS(norm_grad_scale, "norm_grad_scale", true),
  };
  return list;
}

}  // namespace tutti::backend
