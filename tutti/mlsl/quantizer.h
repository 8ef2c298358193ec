#pragma once
// The quantisation hook: gradients summed in the blocks of a library that the program names.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tutti/mlsl/exchange.h"
#include "tutti/mlsl/residuals.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {

/// Three functions of a shared library, each returning 0 for success:
///   int quantise(const void* floats, void* blocks, size_t floats, void* residual, int type = 2
///     (float), size_t ratio = 4, int method = 1)
///   int dequantise(const void* blocks, void* floats, size_t floats)
///   int reduce_sum(const void* blocks, void* sum_blocks, size_t blocks)
/// `residual` (as many floats) is added before and holds what was lost afterwards.
class Quantizer {
 public:
  /// Copies the parameters. Throws ConfigError where the library or a function cannot be found.
  explicit Quantizer(const api::QuantParams& params);
  Quantizer(const Quantizer&) = delete;
  Quantizer& operator=(const Quantizer&) = delete;

  /// Blocks that hold so many floats, and their bytes.
  size_t blocks(size_t floats) const {
    return (floats + params_.elem_in_block - 1) / params_.elem_in_block;
  }
  size_t bytes(size_t blocks) const { return blocks * params_.block_size; }
  size_t block_floats() const { return params_.elem_in_block; }
  /// Each throws CommError when the library's function fails.
  void encode(const float* values, size_t count, float* residual, std::byte* blocks) const;
  void add(const std::byte* blocks, std::byte* sum, size_t count) const;
  void decode(const std::byte* blocks, size_t count, float* values) const;

  api::QuantParams* params() { return &params_; }

 private:
  using Quantise = int(const void*, void*, size_t, void*, int, size_t, int);
  using Dequantise = int(const void*, void*, size_t);
  using ReduceSum = int(const void*, void*, size_t);
  template <class Function>
  Function* find(const char* what, const std::string& name) const;

  std::string path_, quantise_name_, dequantise_name_, reduce_sum_name_;
  api::QuantParams params_;
  std::unique_ptr<void, int (*)(void*)> library_;
  Quantise* quantise_ = nullptr;
  Dequantise* dequantise_ = nullptr;
  ReduceSum* reduce_sum_ = nullptr;
};

/// The sum over a group of float vectors that travel quantised. Rank p is to have floats [p * part,
/// (p + 1) * part) of the sum, as many as there are; `everywhere`: everybody is to have all of
/// them.
///   each part is quantised by itself -> all_to_all -> the owner adds the blocks in the order of
///     the ranks -> everywhere: allgather -> dequantised
/// Bytes per rank: (n-1)/n of the quantised vector, twice everywhere. What quantising loses is kept
/// and added later (mlsl/residuals.h).
class QuantizedSum final : public Exchange {
 public:
  /// Collective over the group. `quantizer` outlives it.
  QuantizedSum(Group& group, const Quantizer& quantizer, size_t count, size_t part,
               bool everywhere);
  /// Quantises: `values` (count floats) may change afterwards.
  void start(const float* values);
  /// Everywhere: count floats; otherwise the own part. After completion.
  void deliver(float* values) const;
  size_t bytes() const { return tiles_.bytes() + (sums_ ? sums_->bytes() : 0); }
  comm::Pending pending() const override {
    return added_ && sums_ ? sums_->pending() : tiles_.pending();
  }

 private:
  bool advance() override;
  void add_up();
  std::byte* tile(size_t vector, size_t rank) const {
    return window_->data() + (vector * static_cast<size_t>(group().size()) + rank) * tile_bytes_;
  }
  comm::CollectiveSpec exchange_of(comm::Collective kind, size_t from, size_t to) const;
  size_t floats_of(size_t rank) const {
    return std::min(part_, count_ - std::min(count_, rank * part_));
  }

  const Quantizer& quantizer_;
  size_t count_;
  size_t part_;
  size_t tile_bytes_;
  Residuals residuals_;
  std::unique_ptr<comm::Window>
      window_;  // tiles to each rank, tiles from each rank, and everywhere: the sum of each rank
  Planned tiles_;
  std::unique_ptr<Planned> sums_;
  bool added_ = false;
};

}  // namespace tutti::mlsl
