#pragma once
// Positions as waves, without learned parameters: sinusoids that are added (Vaswani et al. 2017,
// section 3.5), and rotations (RoFormer, Su et al. 2021). Position p has, at frequency i of C
// channels, the angle
//   a(p, i) = p / base^(2 i / C)
// Positions are 0, 1, ... unless a second input i32 [N, T] numbers them.

#include <cmath>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

inline double wave_angle(int64_t position, int64_t frequency, int64_t channels, double base) {
  return static_cast<double>(position) *
         std::pow(base, -2.0 * static_cast<double>(frequency) / static_cast<double>(channels));
}

/// Returns what sinusoids add to a channel: sines at even channels, cosines at odd ones.
inline double sinusoid(int64_t position, int64_t channel, int64_t channels, double base) {
  const double a = wave_angle(position, channel / 2, channels, base);
  return channel % 2 == 0 ? std::sin(a) : std::cos(a);
}

/// x [N, C, T] -> x[n, c, t] + sinusoid(position of t, c).
class AddSinusoids : public NamedOp<"add_sinusoids", Walk::per_sample> {
 public:
  explicit AddSinusoids(double base = 10000) : base_(base) {}
  double base() const { return base_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }

 private:
  double base_;
};

struct RotationAttributes {
  int64_t heads = 1;  ///< how many heads are rotated: the first ones
  int64_t width = 0;  ///< channels of each head, D, even
  double base = 10000;
  bool back = false;  ///< rotates by -a
  std::string to_string() const;
};

/// x [N, C, T], C >= heads D -> y: the two halves of a head are the axes of D / 2 planes, as in
/// Llama's published files, and plane i of position p is rotated by a(p, i), with C = D:
///   y[i] = x[i] cos a - x[i + D / 2] sin a,  y[i + D / 2] = x[i + D / 2] cos a + x[i] sin a
/// Channels after these heads stay as they are, as the values after queries and keys do. The
/// gradient is the rotation back.
class Rotate : public OpWith<"rotate", Walk::per_sample, RotationAttributes> {
 public:
  using OpWith::OpWith;
  const RotationAttributes& rotation() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

}  // namespace tutti::ops
