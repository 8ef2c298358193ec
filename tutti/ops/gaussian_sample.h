#pragma once
// Numbers drawn from normal distributions whose means and variances the network computes: the
// reparameterisation of variational autoencoders (Kingma and Welling 2014, section 2.4).

#include <cmath>
#include <numbers>

#include "tutti/base/numeric/rng.h"
#include "tutti/graph/graph.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// (mean, logvar) -> z = mean + exp(factor * logvar) * e, all of one shape and type. e is from N(0,
/// 1), a pure function of (seed, step, replica, sample, element, salt). factor is 1/2 where logvar
/// is the logarithm of the variance; published autoencoders of contact maps have 1.
class GaussianSample : public NamedOp<"gaussian_sample", Walk::per_sample> {
 public:
  GaussianSample(float factor, uint32_t salt) : factor_(factor), salt_(salt) {}
  float factor() const { return factor_; }
  uint32_t salt() const { return salt_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  float factor_;
  uint32_t salt_;
};

/// Returns the number e of an element (row-major index in the sample), by Box and Muller's rule.
inline double gaussian_draw(const SampleKey& key, int64_t element) {
  const auto bits = sample_bits(Purpose::latent, key, static_cast<uint32_t>(element / 2));
  const auto pair = static_cast<size_t>(element % 2 * 2);
  const double u = (bits[pair] + 1.0) * 0x1p-32, v = bits[pair + 1] * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

}  // namespace tutti::ops
