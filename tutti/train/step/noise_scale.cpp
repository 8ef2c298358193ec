#include "tutti/train/step/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/exchange/average.h"

namespace tutti::train {
namespace {

/// Each lane has its own sum, so that the compiler can vectorise the loop.
double squares_of(const float* x, size_t count) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (size_t l = 0; l < kLanes; ++l) {
      const auto value = static_cast<double>(x[i + l]);
      lanes[l] += value * value;
    }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

}  // namespace

NoiseEstimate estimate_noise(double small_squares, double large_squares, double small,
                             double large) {
  CHECK(0 < small && small < large, "batches of {} and {} samples", small, large);
  return {(large * large_squares - small * small_squares) / (large - small),
          (small_squares - large_squares) / (1 / small - 1 / large)};
}

void NoiseAverage::add(const NoiseEstimate& mean, int64_t steps) {
  const double kept = std::pow(kKept, static_cast<double>(steps));
  sum_.signal = kept * sum_.signal + (1 - kept) * mean.signal;
  sum_.noise = kept * sum_.noise + (1 - kept) * mean.noise;
  weight_ = kept * weight_ + (1 - kept);
}

double NoiseAverage::critical_batch() const {
  return sum_.signal > 0 && sum_.noise > 0 ? sum_.noise / sum_.signal
                                           : std::numeric_limits<double>::quiet_NaN();
}

void NoiseAverage::save(const std::string& name, std::map<std::string, double>& metrics) const {
  if (weight_ == 0) return;
  metrics[name + ".signal"] = sum_.signal;
  metrics[name + ".noise"] = sum_.noise;
  metrics[name + ".weight"] = weight_;
}

void NoiseAverage::restore(const std::string& name, const std::map<std::string, double>& metrics) {
  if (!metrics.contains(name + ".weight")) return;
  sum_ = {metrics.at(name + ".signal"), metrics.at(name + ".noise")};
  weight_ = metrics.at(name + ".weight");
}

NoiseMeter::NoiseMeter(comm::Communicator& communicator, const exchange::ReplicaMap& micro_batches,
                       const plan::Variables& variables, const exchange::BucketLayout& layout,
                       const NoiseSettings& settings)
    : communicator_(communicator), micro_batches_(micro_batches), layout_(layout),
      settings_(settings), due_(layout.buckets.size(), 0) {
  CHECK(micro_batches.replicas() > 1 && settings.every > 0, "{} batches a step",
        micro_batches.replicas());
  size_t blocks = 0;
  for (const plan::Variable& variable : variables.parameters) {
    if (!variables.is_trained(variable)) continue;
    const size_t floats = variable.desc.bytes() / sizeof(float);
    const auto count = static_cast<size_t>(tutti::sum_blocks(static_cast<int64_t>(floats)));
    members_.push_back({variable.offset / sizeof(float), floats, blocks, count});
    if (settings.layers) names_.push_back(variable.name);
    blocks += count;
  }
  for (size_t b = 0; b < layout.buckets.size(); ++b)
    mine_.push_back(
        exchange::shard_bounds(layout, static_cast<int>(b),
                               communicator.size())[static_cast<size_t>(communicator.rank())]);
  scratch_.resize(blocks);
  large_.resize(blocks);
  all_large_.resize(blocks);
  small_.resize(static_cast<size_t>(micro_batches.local_count()) * members_.size());
  if (communicator.size() > 1)
    sum_ = communicator.plan({.name = "squares of the gradient",
                              .kind = comm::Collective::allreduce,
                              .element = comm::Element::f64,
                              .count = blocks,
                              .input = large_.data(),
                              .output = all_large_.data()});
}

void NoiseMeter::begin_step(int64_t step) {
  measuring_ = (step + 1) % settings_.every == 0;
  measured_ += measuring_;
}

/// Writes to scratch_: squares for the bucket's blocks in this part of it, and 0 for others.
void NoiseMeter::square_blocks(int bucket, const float* arena, const exchange::Shard& part) {
  constexpr auto kBlock = static_cast<size_t>(kSumBlock);
  const exchange::Bucket& whole = layout_.buckets[static_cast<size_t>(bucket)];
  for (const int index : whole.members) {
    const Member& member = members_[static_cast<size_t>(index)];
    constexpr size_t kTogether = 64;  // blocks per thread at a time
    communicator_.work().run((member.blocks + kTogether - 1) / kTogether, [&](size_t piece) {
      const size_t last = std::min(member.blocks, (piece + 1) * kTogether);
      for (size_t b = piece * kTogether; b < last; ++b) {
        const size_t at = member.at + b * kBlock, byte = at * sizeof(float) - whole.begin;
        const bool inside = part.begin <= byte && byte < part.end;
        scratch_[member.block + b] =
            inside ? squares_of(arena + at, std::min(kBlock, member.floats - b * kBlock)) : 0;
      }
    });
  }
}

double NoiseMeter::of_member(const Member& member, const double* blocks) const {
  return tree_sum(0, static_cast<int64_t>(member.blocks),
                  [&](int64_t b) { return blocks[member.block + static_cast<size_t>(b)]; });
}

void NoiseMeter::add_micro_batch(int local_micro_batch, int bucket, const float* arena) {
  if (!measuring_) return;
  const exchange::Bucket& whole = layout_.buckets[static_cast<size_t>(bucket)];
  square_blocks(bucket, arena, {0, whole.bytes});
  double* const row = small_.data() + static_cast<size_t>(local_micro_batch) * members_.size();
  for (const int index : whole.members)
    row[index] += of_member(members_[static_cast<size_t>(index)], scratch_.data());
  due_[static_cast<size_t>(bucket)] = 1;
}

void NoiseMeter::add_sum(int bucket, const float* sum) {
  if (!std::exchange(due_[static_cast<size_t>(bucket)], 0)) return;
  const exchange::Bucket& whole = layout_.buckets[static_cast<size_t>(bucket)];
  square_blocks(bucket, sum - whole.begin / sizeof(float), mine_[static_cast<size_t>(bucket)]);
  for (const int index : whole.members) {
    const Member& member = members_[static_cast<size_t>(index)];
    for (size_t b = member.block; b < member.block + member.blocks; ++b) large_[b] += scratch_[b];
  }
}

NoiseMeter::Reading NoiseMeter::read() {
  if (measured_ == 0) return {};
  if (sum_) {
    sum_->start();
    sum_->wait();
  } else {
    all_large_ = large_;
  }
  // For each micro-batch: every parameter, or their sum in the order of the parameters.
  const size_t width = settings_.layers ? members_.size() : 1;
  std::vector<double> sums(static_cast<size_t>(micro_batches_.local_count()) * width);
  for (size_t i = 0; i < small_.size(); ++i)
    sums[settings_.layers ? i : i / members_.size()] += small_[i];
  const Reading result =
      reading(exchange::sum_over_replicas(communicator_, micro_batches_, sums, width));
  std::ranges::fill(small_, 0.0);
  std::ranges::fill(large_, 0.0);
  measured_ = 0;
  return result;
}

NoiseMeter::Reading NoiseMeter::reading(std::span<const double> small) {
  const auto micro_batches = static_cast<double>(micro_batches_.replicas()),
             steps = static_cast<double>(measured_),
             batch = static_cast<double>(settings_.micro_batch_samples);
  const auto estimate = [&](double of_micro_batches, double of_sum) {
    return estimate_noise(of_micro_batches / (micro_batches * steps),
                          of_sum / (micro_batches * micro_batches * steps), batch,
                          micro_batches * batch);
  };
  Reading result{.steps = measured_, .all = {}, .layers = {}};
  double small_all = 0, large_all = 0;
  for (size_t m = 0; m < members_.size(); ++m) {
    const double large = of_member(members_[m], all_large_.data());
    large_all += large;
    if (settings_.layers) result.layers.push_back(estimate(small[m], large));
  }
  for (const double value : small) small_all += value;
  result.small_squares = small_all / (micro_batches * steps);
  result.large_squares = large_all / (micro_batches * micro_batches * steps);
  result.all = estimate(small_all, large_all);
  return result;
}

}  // namespace tutti::train
