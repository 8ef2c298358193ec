#pragma once
// BucketSum: the operations that can sum one bucket, one per step: the dense sum and, for a
// compressed bucket, one reduction for each density that the run uses. They share memory for
// residuals (values not sent yet), for the sum and for the selected elements, since only one of
// them is in flight.

#include <memory>
#include <span>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/comm/compress/compressed_reduction.h"
#include "tutti/device/cpu/buffer.h"

namespace tutti::exchange {

/// Not thread-safe.
class BucketSum {
 public:
  /// Collective. `result` is the memory into which the dense operation writes the sum.
  BucketSum(comm::Communicator& communicator, const comm::CollectiveSpec& dense,
            const float* result);

  /// Collective. Adds a reduction for each of `specs`; equal ones share one. `base` holds
  /// everything except compression, result and state.
  void compress(comm::Communicator& communicator, const comm::CompressedReductionSpec& base,
                std::span<const comm::CompressionSpec> specs);

  /// Selects the operation of the next start(): `spec`, or the dense sum if `spec` is none or the
  /// bucket is not compressed.
  void choose(const comm::CompressionSpec& spec, uint64_t step);
  /// Before the start() of a dense step that follows compressed ones, adds the residuals to this
  /// rank's first part.
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

  /// Returns the memory for compression: residuals, the sum and the selected elements; excludes the
  /// channels' memory.
  size_t compression_bytes() const;
  /// Sums up all of its reductions since the construction.
  comm::CompressionReport report() const;
  const comm::StateLayout& state_layout() const { return layout_; }
  std::span<float> state() { return state_; }
  /// Records that state() was filled from a checkpoint: a dense step then releases it.
  void note_restored() { residual_ = true; }

 private:
  struct Choice {
    comm::CompressionSpec spec;
    std::unique_ptr<comm::CompressedReduction> reduction;
  };
  std::unique_ptr<comm::CollectiveOperation> dense_;
  const float* result_;
  std::vector<float> state_;  // outlives the reductions, as does
  device::Buffer
      compressed_result_;  // each rank has its own, unlike the dense sum of ranks that share memory
  device::Buffer scratch_;  // sized for the reduction that needs most
  comm::StateLayout layout_;
  std::vector<Choice> reductions_;
  comm::CompressedReduction* chosen_ = nullptr;
  bool residual_ = false;  // something may be left unsent since the last dense step
};

}  // namespace tutti::exchange
