#include "tutti/exchange/exchange.h"

#include <algorithm>
#include <chrono>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/exchange/shard.h"

namespace tutti::exchange {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void add_into(float* __restrict into, const float* __restrict from, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] += from[i];
}

constexpr size_t kPiece = size_t{32} << 10;  // floats that a thread folds at a time

constexpr size_t kPage = 4096;
constexpr size_t kChunk =
    512 << 10;  // half a millisecond at 10 Gb/s: the longest wait for an urgent bucket

}  // namespace

GradientExchange::GradientExchange(comm::Communicator& communicator, ReplicaMap map,
                                   BucketLayout layout, const ExchangeSettings& settings)
    : communicator_(communicator), map_(std::move(map)), layout_(std::move(layout)),
      plan_(comm::plan_slots(map_.replicas(), map_.owned())),
      stride_((layout_.bytes + kPage - 1) / kPage * kPage),
      window_(communicator.allocate(stride_ * static_cast<size_t>(plan_.slots))),
      folded_(layout_.buckets.size(), 0) {
  CHECK(map_.ranks() == communicator.size() && map_.rank() == communicator.rank(),
        "the replica map is of rank {}/{}, the communicator of {}/{}", map_.rank(), map_.ranks(),
        communicator.rank(), communicator.size());
  plan_sums(settings);
}

void GradientExchange::plan_sums(const ExchangeSettings& settings) {
  // Where ranks see each other's memory, the whole node shares one sum; over a shaped link they
  // behave as if they did not see it.
  const bool visible = communicator_.shares_memory() && !communicator_.shaped();
  const bool on_one = communicator_.neighbours().size() == communicator_.size();
  const bool served = settings.algorithm.empty() ||
                      (on_one ? comm::algorithm_named(settings.algorithm).serves_exchange
                              : settings.algorithm == comm::two_level.name);
  const bool shared = visible && served && !settings.sharded;
  if (map_.ranks() == 1) {
    result_ = slot_memory(0);
  } else {
    results_ = shared ? communicator_.allocate_once(layout_.bytes, my_parts())
                      : communicator_.allocate(layout_.bytes);
    result_ = reinterpret_cast<float*>(shared ? results_->peer(communicator_.neighbours().first())
                                              : results_->data());
  }
  compression_ = settings.compression;
  CHECK(compression_.buckets.empty() || compression_.buckets.size() == layout_.buckets.size(),
        "compression of {} buckets for {}", compression_.buckets.size(), buckets());
  if (std::ranges::any_of(compression_.phases, [](const CompressionPhase& phase) {
        return phase.compression.method == comm::CompressionMethod::hitopk;
      }))
    groups_ = std::make_unique<comm::NodeGroups>(communicator_);
  ExchangeSettings resolved = settings;
  if (resolved.chunk_bytes == 0 && !(visible && on_one))
    resolved.chunk_bytes =
        std::max(kChunk, static_cast<size_t>(map_.ranks()) * comm::kLeastBytesOfARank);
  for (int b = 0; b < buckets(); ++b) plan_sum(b, resolved, shared);
}

// Where the ranks of a node share one copy of the sums: the bytes that this rank sums.
std::vector<comm::Slice> GradientExchange::my_parts() const {
  std::vector<comm::Slice> parts;
  const comm::Neighbours& near = communicator_.neighbours();
  for (const Bucket& bucket : layout_.buckets) {
    const comm::Slice part = comm::balanced_parts(
        bucket.floats(), near.size())[static_cast<size_t>(near.index(map_.rank()))];
    parts.push_back({bucket.begin + part.begin * sizeof(float), part.count * sizeof(float)});
  }
  return parts;
}

void GradientExchange::plan_sum(int b, const ExchangeSettings& settings, bool shared) {
  const Bucket& bucket = layout_.buckets[static_cast<size_t>(b)];
  float* const output = result_ + bucket.begin / sizeof(float);
  comm::CollectiveSpec spec{.name = bucket.name,
                            .kind = comm::Collective::allreduce,
                            .element = comm::Element::f32,
                            .count = bucket.floats(),
                            .input = slot_memory(0) + bucket.begin / sizeof(float),
                            .output = output,
                            .algorithm = settings.algorithm,
                            .reproducible = settings.reproducible,
                            .leaves = {.replicas = map_.replicas(),
                                       .first = map_.first(),
                                       .stride = stride_ / sizeof(float)},
                            .shared_output = shared,
                            .chunk = settings.chunk_bytes / sizeof(float),
                            .priority = settings.priority ? b : 0};
  if (settings.sharded) {
    spec.kind = comm::Collective::reduce_scatter;
    for (const Shard& shard : shard_bounds(layout_, b, map_.ranks()))
      spec.parts.push_back({shard.begin / sizeof(float), shard.bytes() / sizeof(float)});
    spec.output = output + spec.parts[static_cast<size_t>(map_.rank())].begin;
  }
  BucketSum& sum = *sums_.emplace_back(std::make_unique<BucketSum>(communicator_, spec, output));
  const auto index = static_cast<size_t>(b);
  if (map_.ranks() == 1 || compression_.buckets.empty() || !compression_.buckets[index]) return;
  comm::CompressedReductionSpec base;
  base.name = bucket.name;
  base.count = bucket.floats();
  for (int part = 0; part < static_cast<int>(plan_.parts.size()); ++part)
    base.parts.push_back(slot_memory(part) + bucket.begin / sizeof(float));
  if (index < compression_.matrices.size()) base.matrices = compression_.matrices[index];
  base.groups = groups_.get();
  std::vector<comm::CompressionSpec> specs;
  for (const CompressionPhase& phase : compression_.phases) specs.push_back(phase.compression);
  sum.compress(communicator_, base, specs);
}

float* GradientExchange::slot_memory(int slot) const {
  return reinterpret_cast<float*>(window_->data() + static_cast<size_t>(slot) * stride_);
}

float* GradientExchange::slot(int local_replica) const {
  CHECK(0 <= local_replica && local_replica < map_.local_count(), "local replica {} of {}",
        local_replica, map_.local_count());
  return slot_memory(plan_.replicas[static_cast<size_t>(local_replica)].slot);
}

void GradientExchange::fold(int local_replica, const Bucket& bucket) {
  const auto& adds = plan_.replicas[static_cast<size_t>(local_replica)].adds;
  if (adds.empty()) return;
  const auto begin = Clock::now();
  const size_t at = bucket.begin / sizeof(float);
  const size_t count = bucket.floats();
  communicator_.work().run((count + kPiece - 1) / kPiece, [&](size_t i) {
    const size_t from = at + i * kPiece, n = std::min(kPiece, count - i * kPiece);
    for (const auto& add : adds)
      add_into(slot_memory(add.into) + from, slot_memory(add.from) + from, n);
  });
  counters_.folding_seconds += seconds_since(begin);
}

BucketSum& GradientExchange::sum(int bucket) const {
  CHECK(0 <= bucket && bucket < buckets(), "bucket {} of {}", bucket, buckets());
  return *sums_[static_cast<size_t>(bucket)];
}

comm::CompressionReport GradientExchange::compression_report() const {
  comm::CompressionReport all;
  for (const auto& sum : sums_) all += sum->report();
  return all;
}

void GradientExchange::begin_step(int64_t step, bool dense) {
  if (compression_.buckets.empty()) return;
  step_compression_ = dense ? comm::CompressionSpec{} : compression_at(compression_.phases, step);
  step_ = static_cast<uint64_t>(step);
}

void GradientExchange::ready(int local_replica, int bucket) {
  BucketSum& sum = this->sum(bucket);
  int& folded = folded_[static_cast<size_t>(bucket)];
  CHECK(!sum.operation().in_flight(), "{} is still being summed: wait for it before the next step",
        sum.operation().name());
  if (local_replica == 0) sum.choose(step_compression_, step_);
  comm::Operation& operation = sum.operation();
  CHECK(folded == local_replica, "{}: local replica {} is ready, {} was expected", operation.name(),
        local_replica, folded);
  const Bucket& slice = layout_.buckets[static_cast<size_t>(bucket)];
  fold(local_replica, slice);
  if (++folded < map_.local_count()) return;
  const auto begin = Clock::now();
  sum.release({slot_memory(0) + slice.begin / sizeof(float), slice.floats()});
  operation.start();
  counters_.starting_seconds += seconds_since(begin);
  ++counters_.reductions;
  counters_.bytes_moved += sum.bytes_moved();
}

bool GradientExchange::arrived(int bucket) { return sum(bucket).operation().test(); }

void GradientExchange::look_forward(int bucket) {
  comm::Operation& operation = sum(bucket).operation();
  CHECK(is_due(bucket), "{}: waiting with {} of {} local replicas ready", operation.name(),
        folded_[static_cast<size_t>(bucket)], map_.local_count());
  if (operation.test()) return;
  const auto begin = Clock::now();
  operation.wait();
  counters_.exposed_seconds += seconds_since(begin);
}

void GradientExchange::wait(int bucket) {
  look_forward(bucket);
  folded_[static_cast<size_t>(bucket)] = 0;
}

const float* GradientExchange::result(int bucket) const { return sum(bucket).result(); }

}  // namespace tutti::exchange
