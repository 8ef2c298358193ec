#pragma once
// BucketSum: the operations that can sum one bucket, one of which the step uses: the dense sum, and
// where the bucket is compressed a reduction for each density that the run goes through. They share
// memory for what has not been sent yet, for the sum, and for what is chosen: one of them is in
// flight.

#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/compress/compressed_reduction.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti {

/// Not thread-safe.
class BucketSum {
 public:
  /// Collective. `result`: where the dense operation leaves the sum.
  BucketSum(comm::Communicator& communicator, const comm::CollectiveSpec& dense,
            const float* result);

  /// Collective. Adds a reduction for each of `specs` (equal ones once). `base`: all but
  /// compression, result and state.
  void compress(comm::Communicator& communicator, const comm::CompressedReductionSpec& base,
                std::span<const comm::CompressionSpec> specs);

  /// What the next start() does: `spec`, or the dense sum where it is none or the bucket is not
  /// compressed.
  void choose(const comm::CompressionSpec& spec, uint64_t step);
  /// A dense step after compressed ones: adds what was not sent to this rank's first part, before
  /// start().
  void release(std::span<float> gradient);

  comm::Operation& operation() const {
    return chosen_ == nullptr ? static_cast<comm::Operation&>(*dense_) : *chosen_;
  }
  const float* result() const {
    return chosen_ == nullptr ? result_ : compressed_result_.as<float>().data();
  }
  size_t bytes_moved() const {
    return chosen_ == nullptr ? dense_->bytes_received() : chosen_->bytes_received();
  }
  const std::string& algorithm() const { return dense_->algorithm(); }
  bool compressed() const { return !reductions_.empty(); }

  /// Memory that compression needs: residuals, the sum, and what is chosen. The channels' apart.
  size_t compression_bytes() const;
  /// Since the construction, over all of its reductions.
  comm::CompressionReport report() const;
  const comm::StateLayout& state_layout() const { return layout_; }
  std::span<float> state() { return state_; }
  /// Somebody has filled state() from a checkpoint: a dense step releases it.
  void note_restored() { residual_ = true; }

 private:
  struct Choice {
    comm::CompressionSpec spec;
    std::unique_ptr<comm::CompressedReduction> reduction;
  };
  std::unique_ptr<comm::CollectiveOperation> dense_;
  const float* result_;
  std::vector<float> state_;  // outlives the reductions, as does
  Buffer
      compressed_result_;  // each rank has its own, unlike the dense sum of ranks that share memory
  Buffer scratch_;         // as much as the reduction needs that needs most
  comm::StateLayout layout_;
  std::vector<Choice> reductions_;
  comm::CompressedReduction* chosen_ = nullptr;
  bool residual_ = false;  // since the last dense step something may not have been sent
};

}  // namespace tutti
