#include "tutti/exchange/bucket_sum.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::exchange {

BucketSum::BucketSum(comm::Communicator& communicator, const comm::CollectiveSpec& dense,
                     const float* result)
    : dense_(communicator.plan(dense)), result_(result) {}

void BucketSum::compress(comm::Communicator& communicator,
                         const comm::CompressedReductionSpec& base,
                         std::span<const comm::CompressionSpec> specs) {
  comm::CompressedReductionSpec spec = base;
  size_t scratch = 0;
  for (const comm::CompressionSpec& compression : specs) {
    if (!compression.compresses()) continue;
    spec.compression = compression;
    scratch = std::max(scratch, comm::scratch_bytes(communicator, spec));
  }
  scratch_ = device::Buffer(scratch);
  for (const comm::CompressionSpec& compression : specs) {
    if (!compression.compresses() ||
        std::ranges::find(reductions_, compression, &Choice::spec) != reductions_.end())
      continue;
    spec.compression = compression;
    if (reductions_.empty()) {
      layout_ = comm::state_layout(communicator, spec);
      state_.resize(layout_.floats);
      compressed_result_ = device::Buffer(spec.count * sizeof(float));
    }
    spec.state = state_;
    spec.result = compressed_result_.as<float>().data();
    spec.scratch = {scratch_.data(), scratch};
    reductions_.push_back({compression, comm::plan_compressed(communicator, spec)});
    reductions_.back().reduction->set_priority(dense_->priority());
  }
}

void BucketSum::choose(const comm::CompressionSpec& spec, uint64_t step) {
  chosen_ = nullptr;
  if (!spec.compresses() || reductions_.empty()) return;
  const auto at = std::ranges::find(reductions_, spec, &Choice::spec);
  CHECK(at != reductions_.end(), "{}: no reduction was planned for {}", dense_->name(),
        to_string(spec));
  chosen_ = at->reduction.get();
  chosen_->set_step(step);
  residual_ = true;
}

void BucketSum::release(std::span<float> gradient) {
  if (chosen_ != nullptr || !residual_) return;
  residual_ = false;
  // After a resume it is not known whether the step before was compressed.
  if (std::ranges::all_of(state_, [](float x) { return x == 0; })) return;
  comm::release_residuals(layout_, state_, gradient);
}

size_t BucketSum::compression_bytes() const {
  size_t bytes = state_.size() * sizeof(float) + compressed_result_.bytes() + scratch_.bytes();
  for (const Choice& choice : reductions_) bytes += choice.reduction->own_bytes();
  return bytes;
}

comm::CompressionReport BucketSum::report() const {
  comm::CompressionReport all;
  for (const Choice& choice : reductions_) all += choice.reduction->report();
  return all;
}

}  // namespace tutti::exchange
