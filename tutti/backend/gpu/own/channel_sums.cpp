// Sums by channel, over the batch or over each sample, and their gradients.

#include "tutti/backend/gpu/own/channel_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "tutti/backend/gpu/own/own_kernels.h"
#include "tutti/base/error.h"
#include "tutti/device/launch.h"
#include "tutti/ops/broadcast.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/sequence/lookup.h"

namespace tutti::backend {
namespace {

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Whether memory is planes of one channel's positions, not rows of all channels.
bool has_planes(const TensorDesc& x) {
  return x.shape[1] == 1 || (x.layout.is_plain() && x.shape.elements_from(2) > 1);
}

/// Sets how blocks share rows of channels, whose packs have `pack` elements.
void share_rows(ChannelWalk& w, int pack) {
  // Neighbouring packs fill sectors; few of them leave room for rows, which are more work at hand.
  const int64_t most = pack > 1 ? 32 : 128, packs = w.channels / pack;
  const int64_t width = quotient_up(packs, quotient_up(packs, most));
  w.packs = static_cast<int32_t>(packs);
  w.width = static_cast<int32_t>(width);
  w.groups = static_cast<int32_t>(quotient_up(packs, width));
  w.side = static_cast<int32_t>(kChannelThreads / width);
}

/// Sets which block has which runs of a channel.
void share_runs(ChannelWalk& w, int64_t segments) {
  constexpr int64_t kBlocks = 2048;           // more than a GPU runs at a time
  constexpr int64_t kMostSteps = 256;         // numbers that a thread adds up in f32
  constexpr int64_t kSteps = 4, kRows = 160;  // at least, so that partial sums are few
  const int64_t steps = quotient_up(w.runs, w.side),
                least = std::max(kSteps, quotient_up(kRows, w.side)),
                chunks = std::max<int64_t>(kBlocks / (w.groups * segments), 1);
  const int64_t per_block = std::clamp(quotient_up(steps, chunks), least, kMostSteps) * w.side;
  w.per_block = static_cast<int32_t>(per_block);
  w.chunks = static_cast<int32_t>(quotient_up(w.runs, per_block));
}

/// Returns the counters of a way whose `share` of a row's channels is a block's.
BlockCounters counters_of(const ChannelWalk& w, int64_t segments, int64_t share) {
  constexpr int64_t kMostCounters = 64;  // they travel with each pass
  constexpr int64_t kMostLoads = 64;     // that follow each other in a thread, of each sum
  const int64_t rows = kChannelThreads / kTotalledChannels,
                loads = quotient_up(share, kTotalledChannels) * quotient_up(w.chunks, rows);
  const int64_t groups = w.groups * segments;
  return BlockCounters(groups <= kMostCounters && loads <= kMostLoads ? groups : 0);
}

/// The sums over a batch or over samples, times a factor. `y` and `x` may have different types
/// where the sums are over a batch.
class ChannelSumsKernel final : public Kernel {
 public:
  struct Problem {
    TensorDesc x;
    SumsOver over;
    DType y;
    float factor = 1;
    int64_t first = 0, all = 0;  ///< where the sums begin in y, and y's elements, the others of
                                 ///< which become 0; 0: there are no others
  };
  ChannelSumsKernel(const Problem& p, const device::Device& device)
      : p_(p), way_(channel_way(p.x, p.over)),
        sums_(&device::function_named(device, "channel_sums" + way_.form)),
        ends_(&device::function_named(device, fmt::format("channel_sums_end.{}", name_of(p.y)))) {}

  size_t workspace_bytes() const override { return is_whole() ? 0 : way_.partial_bytes(1); }
  size_t number_bytes() const override { return counters().bytes(); }
  void write_numbers(const StepInfo&, std::byte* to) const override { counters().write(to); }

  void run(const KernelArgs& args) override {
    auto* y = static_cast<std::byte*>(args.out[0]);
    if (p_.all > 0) args.stream->fill(y, std::byte{0}, static_cast<size_t>(p_.all) * size_of(p_.y));
    y += p_.first * static_cast<int64_t>(size_of(p_.y));
    ChannelSumsArgs sums{.walk = way_.walk,
                         .x = args.in[0],
                         .end = {.partials = static_cast<float*>(args.workspace),
                                 .y = y,
                                 .factor = p_.factor,
                                 .chunks = way_.walk.chunks,
                                 .channels = way_.walk.channels},
                         .counters = counters().in(args),
                         .y_is_f32 = p_.y == DType::f32};
    const bool in_one = is_whole() || sums.counters != nullptr;
    if (is_whole() && p_.y != p_.x.dtype) sums.end.partials = reinterpret_cast<float*>(y);
    if (!in_one || (is_whole() && p_.y != p_.x.dtype)) sums.end.y = nullptr;
    device::launch(*args.stream, *sums_, way_.grid, sums);
    sums.end.y = y;
    if (!in_one) device::launch(*args.stream, *ends_, way_.ends, sums.end);
  }

 private:
  /// Returns whether a block's sums are those of y.
  bool is_whole() const {
    return way_.walk.chunks == 1 && p_.first % 4 == 0 &&  // packs
           (p_.y == p_.x.dtype || (p_.y == DType::f32 && p_.factor == 1));
  }
  BlockCounters counters() const { return is_whole() ? BlockCounters() : way_.counters; }

  Problem p_;
  ChannelWay way_;
  const device::DeviceFunction *sums_, *ends_;
};

class ChannelSpreadKernel final : public Kernel {
 public:
  ChannelSpreadKernel(const TensorDesc& y, float factor, const device::Device& device)
      : factor_(factor), way_(channel_way(y, SumsOver::sample)),
        spread_(&device::function_named(device, "channel_spread" + way_.form)) {}
  void run(const KernelArgs& args) override {
    device::launch(
        *args.stream, *spread_, way_.grid,
        ChannelSpreadArgs{.walk = way_.walk, .x = args.in[0], .y = args.out[0], .factor = factor_});
  }

 private:
  float factor_;
  ChannelWay way_;
  const device::DeviceFunction* spread_;
};

KernelCandidate sums_candidate(KernelCandidate c, const ChannelSumsKernel::Problem& p,
                               const device::Device& device) {
  c.refusal = refusal_of_channels(p.x);
  if (c.refusal.empty())
    c.make = [p, &device] { return std::make_unique<ChannelSumsKernel>(p, device); };
  return c;
}

/// Returns why a tensor [N, C] or [N, C, 1...] is not a matrix in memory; empty if it is.
std::string refusal_of_padding(const TensorDesc& d) {
  return d.layout.channel_block(d.shape) == 1 || d.layout.channel_block(d.shape) == d.shape[1]
             ? ""
             : fmt::format("{} is padded", d.to_string());
}

float inverse_positions(const TensorDesc& x) {
  return 1.0f / static_cast<float>(x.shape.elements_from(2));
}

KernelCandidate own_sums_of_samples(const KernelRequest& r, float factor,
                                    const device::Device& device) {
  KernelCandidate c = own_candidate(r, "channel_sums");
  if (c.refusal = refusal_of_padding(r.out[0]); !c.refusal.empty()) return c;
  return sums_candidate(
      std::move(c), {.x = r.in[0], .over = SumsOver::sample, .y = r.out[0].dtype, .factor = factor},
      device);
}

KernelCandidate own_spread(const KernelRequest& r, float factor, const device::Device& device) {
  KernelCandidate c = own_candidate(r, "channel_spread");
  const TensorDesc y = r.out[0];
  c.refusal = refusal_of_channels(y);
  if (c.refusal.empty()) c.refusal = refusal_of_padding(r.in[0]);
  if (c.refusal.empty())
    c.make = [y, factor, &device] {
      return std::make_unique<ChannelSpreadKernel>(y, factor, device);
    };
  return c;
}

/// The rows of a sequence's channels are the channels of this sum.
KernelCandidate own_add_positions_grad(const KernelRequest& r, const ops::AddPositionsGrad& op,
                                       const device::Device& device) {
  KernelCandidate c = own_candidate(r, "channel_sums");
  const TensorDesc& dy = r.in[0];
  if (dy.layout != Layout::channels_last(dy.shape.rank()) || !c.out[0].layout.is_plain()) {
    c.refusal = fmt::format("{} is not channels last, or its gradient not plain", dy.to_string());
    return c;
  }
  const int64_t channels = dy.shape[1], row = dy.shape.elements_from(1), all = c.out[0].elements();
  return sums_candidate(std::move(c),
                        {.x = {dy.dtype, {dy.shape[0], row}, Layout::plain()},
                         .over = SumsOver::batch,
                         .y = DType::f32,
                         .first = op.first() * channels,
                         .all = all == row ? 0 : all},
                        device);
}

}  // namespace

size_t ChannelWay::partial_bytes(int sums) const {
  return static_cast<size_t>(segments * walk.chunks * walk.channels * sums) * sizeof(float);
}

std::string refusal_of_channels(const TensorDesc& x) {
  if (x.dtype != DType::f32 && x.dtype != DType::bf16)
    return fmt::format("no sums by channel of {}", name_of(x.dtype));
  const int64_t block = x.layout.channel_block(x.shape);
  if (x.shape.rank() < 2 || (block != 1 && block != x.shape[1]))
    return fmt::format("{} is neither plain nor channels last", x.to_string());
  if (std::max(x.shape[1], x.shape.elements_from(2)) > std::numeric_limits<int32_t>::max())
    return fmt::format("{} has too many channels or positions", x.to_string());
  return {};
}

ChannelWay channel_way(const TensorDesc& x, SumsOver over) {
  const int64_t samples = x.shape[0], positions = x.shape.elements_from(2);
  const bool planes = has_planes(x), by_sample = over == SumsOver::sample;
  const int whole = static_cast<int>(16 / size_of(x.dtype));
  const int pack = (planes ? positions : x.shape[1]) % whole == 0 ? whole : 1;
  ChannelWay way{};
  ChannelWalk& w = way.walk;
  w.channels = static_cast<int32_t>(x.shape[1]);
  w.segment = by_sample ? x.shape.elements_from(1) : x.elements();
  w.runs = (by_sample ? 1 : samples) * positions / (planes ? pack : 1);
  if (planes) {
    w.groups = w.channels;
    w.width = 1;
    w.side = kChannelThreads;
    w.packs = static_cast<int32_t>(positions / pack);
  } else {
    share_rows(w, pack);
  }
  way.segments = by_sample ? samples : 1;
  share_runs(w, way.segments);
  way.of_run = planes ? pack : 1;
  way.form = fmt::format(".{}.{}{}", name_of(x.dtype), planes ? "planes" : "rows", pack);
  const auto blocks = [](int64_t count) {
    CHECK(count <= std::numeric_limits<int32_t>::max(), "{} blocks of a kernel", count);
    return device::Dim3{.x = static_cast<unsigned>(count)};
  };
  way.grid = blocks(int64_t{w.groups} * w.chunks * way.segments);
  way.ends = blocks(quotient_up(w.channels, kTotalledChannels) * way.segments);
  way.counters = counters_of(w, way.segments, planes ? 1 : w.width * pack);
  return way;
}

void register_channel_sums(OwnKernels& table) {
  table.add<ops::BiasBackward>(
      [](const KernelRequest& r, const ops::BiasBackward&, device::Device& device) {
        KernelCandidate c = own_candidate(r, "channel_sums");
        return sums_candidate(std::move(c),
                              {.x = r.in[0], .over = SumsOver::batch, .y = DType::f32}, device);
      });
  table.add<ops::AddPositionsGrad>(own_add_positions_grad);
  table.add<ops::SpatialSum>(
      [](const KernelRequest& r, const ops::SpatialSum&, device::Device& device) {
        return own_sums_of_samples(r, 1, device);
      });
  table.add<ops::GlobalAveragePool>(
      [](const KernelRequest& r, const ops::GlobalAveragePool&, device::Device& device) {
        return own_sums_of_samples(r, inverse_positions(r.in[0]), device);
      });
  table.add<ops::Broadcast>([](const KernelRequest& r, const ops::Broadcast&,
                               device::Device& device) { return own_spread(r, 1, device); });
  table.add<ops::GlobalAveragePoolGrad>(
      [](const KernelRequest& r, const ops::GlobalAveragePoolGrad&, device::Device& device) {
        return own_spread(r, inverse_positions(r.out[0]), device);
      });
}

}  // namespace tutti::backend
