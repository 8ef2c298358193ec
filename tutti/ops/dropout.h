#pragma once
// Dropout (Srivastava et al. 2014), inverted: y = x * keep / (1 - probability). The mask is a pure
// function of (seed, step, replica, sample, element, salt), so nothing is stored: the gradient is
// the same op applied to dy.

#include <array>
#include <string_view>

#include "tutti/base/numeric/rng.h"
#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// x -> y of the same type. `salt` names the layer: two layers with different salts drop
/// independently. x may hold only a part of a sequence, the positions from `first` on of `all`;
/// these are dropped as in the whole sequence.
class Dropout : public NamedOp<"dropout", Walk::per_sample> {
 public:
  Dropout(float probability, uint32_t salt) : probability_(probability), salt_(salt) {}
  Dropout(float probability, uint32_t salt, int64_t first, int64_t all)
      : probability_(probability), salt_(salt), first_(first), all_(all) {}
  int64_t first() const { return first_; }
  int64_t all() const { return all_; }  ///< 0: x has all positions
  float probability() const { return probability_; }
  uint32_t salt() const { return salt_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }

 private:
  float probability_;
  uint32_t salt_;
  int64_t first_ = 0, all_ = 0;
};

/// Returns the salt for the random draws of a layer of this name: the same on every machine.
uint32_t salt_of(std::string_view name);

/// Names the step, sample and layer that numbers are drawn for.
struct SampleKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int32_t replica = 0;
  int64_t sample = 0;  ///< index in the replica's batch
  uint32_t salt = 0;
};

/// Returns block `quad` of the random bits.
inline std::array<uint32_t, 4> sample_bits(Purpose purpose, const SampleKey& key, uint32_t quad) {
  return philox({quad, static_cast<uint32_t>(key.sample), static_cast<uint32_t>(key.step),
                 static_cast<uint32_t>(key.replica)},
                {static_cast<uint32_t>(key.seed) ^ (static_cast<uint32_t>(purpose) * 0x85EBCA6Bu),
                 static_cast<uint32_t>(key.seed >> 32) ^ key.salt});
}

/// Block q holds the numbers of elements 4 q ... 4 q + 3 (row-major index in the sample). An
/// element is dropped when its number is below this threshold.
inline uint32_t dropout_threshold(float probability) {
  return static_cast<uint32_t>(static_cast<double>(probability) * 0x1p32);
}

}  // namespace tutti::ops
