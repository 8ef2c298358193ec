#pragma once
// The quantisation hook: sums gradients in the block format of a library that the program names.

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tutti/comm/run/staged_operation.h"
#include "tutti/mlsl/group.h"
#include "tutti/mlsl/residuals.h"
#include "tutti/mlsl/types.h"

namespace tutti::mlsl {

/// Three functions of a shared library, each returning 0 for success:
///   int quantise(const void* floats, void* blocks, size_t floats, void* residual, int type = 2
///     (float), size_t ratio = 4, int method = 1)
///   int dequantise(const void* blocks, void* floats, size_t floats)
///   int reduce_sum(const void* blocks, void* sum_blocks, size_t blocks)
/// `residual` (as many floats) is added before quantising, and then holds the loss. MLSL does not
/// require the library to be thread-safe, so calls are serialised.
class Quantizer {
 public:
  /// Copies the parameters. Throws ConfigError if the library or a function cannot be found.
  explicit Quantizer(const api::QuantParams& params);
  Quantizer(const Quantizer&) = delete;
  Quantizer& operator=(const Quantizer&) = delete;

  /// Return the number of blocks for that many floats, and the bytes of blocks.
  size_t blocks(size_t floats) const {
    return (floats + params_.elem_in_block - 1) / params_.elem_in_block;
  }
  size_t bytes(size_t blocks) const { return blocks * params_.block_size; }
  size_t block_floats() const { return params_.elem_in_block; }
  /// Each throws CommError if the library's function fails.
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
  mutable std::mutex mutex_;  // held during each call of the library
};

/// Sums float vectors over a group, sending them quantised. Rank p gets floats [p * part, (p + 1) *
/// part) of the sum, as many as exist; with `everywhere` every rank gets all of them.
///   each part is quantised by itself -> all_to_all -> the owner adds the blocks in the order of
///     the ranks -> everywhere: allgather -> dequantised
/// Bytes per rank: (n-1)/n of the quantised vector, twice with everywhere. The quantisation error
/// is kept and added later (mlsl/residuals.h).
class QuantizedSum final : public comm::StagedOperation {
 public:
  struct Spec {
    size_t count = 0;
    size_t part = 0;
    bool everywhere = false;
  };
  /// Collective over the group. `quantizer` outlives the object.
  QuantizedSum(Group& group, const Quantizer& quantizer, const Spec& spec);
  ~QuantizedSum() override;
  /// Waits for an earlier start. `values` has count floats; `sum` has count floats with everywhere,
  /// otherwise this rank's part, and is written until completion. The two may be the same.
  void start(const float* values, float* sum);
  size_t bytes() const { return bytes_; }

 private:
  Exchange* next(int stage) override;
  Exchange plan(Group& group, comm::Collective kind, size_t from, size_t to) const;
  void encode();
  void add_up();
  void decode() const;
  std::byte* tile(size_t vector, size_t rank) const {
    return window_->data() + (vector * ranks_ + rank) * tile_bytes_;
  }
  size_t floats_of(size_t rank) const {
    return std::min(spec_.part, spec_.count - std::min(spec_.count, rank * spec_.part));
  }

  Job& job_;
  const Quantizer& quantizer_;
  Spec spec_;
  size_t mine_, ranks_;
  size_t tile_bytes_;
  size_t bytes_;
  Residuals residuals_;
  std::unique_ptr<comm::Window> window_;  // tiles to each rank, tiles from each rank and, with
                                          // everywhere, the sum of each rank
  Exchange tiles_, sums_;                 // sums_ only with everywhere
  const float* values_ = nullptr;
  float* sum_ = nullptr;
};

}  // namespace tutti::mlsl
