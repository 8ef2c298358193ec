#include "tutti/ops/sequence/waves.h"

#include <cmath>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/sequence/swiglu.h"

namespace tutti::backend {
namespace {

/// For element i of x [N, C, T]: the number of its position, and its channel.
struct WavePlace {
  int64_t position, channel;

  WavePlace(const RuleCall& call, int64_t i) {
    const int64_t channels = call.in[0].shape()[1], positions = call.in[0].shape()[2],
                  n = i / (channels * positions), t = i % positions;
    channel = i / positions % channels;
    position = call.in.size() == 1 ? t : static_cast<int64_t>(call.in[1][n * positions + t]);
  }
};

void add_sinusoids(double base, const RuleCall& call) {
  const int64_t channels = call.in[0].shape()[1];
  for (int64_t i = 0; i < call.in[0].size(); ++i) {
    const WavePlace place(call, i);
    call.out[0][i] = call.in[0][i] + ops::sinusoid(place.position, place.channel, channels, base);
  }
}

void turn_heads(const ops::RotationAttributes& a, const RuleCall& call) {
  const PlainTensor& x = call.in[0];
  const int64_t half = a.width / 2, positions = x.shape()[2];
  for (int64_t i = 0; i < x.size(); ++i) {
    const WavePlace place(call, i);
    const int64_t in_head = place.channel % a.width;
    if (place.channel >= a.heads * a.width) {
      call.out[0][i] = x[i];
      continue;
    }
    const bool low = in_head < half;
    const double angle = (a.back ? -1 : 1) *
                         ops::wave_angle(place.position, in_head % half, a.width, a.base),
                 other = x[i + (low ? half : -half) * positions];
    call.out[0][i] = x[i] * std::cos(angle) + (low ? -other : other) * std::sin(angle);
  }
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

void gate(const RuleCall& call) {
  for (int64_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = call.in[0][i] * sigmoid_of(call.in[0][i]) * call.in[1][i];
}

void gate_backward(const RuleCall& call) {
  for (int64_t i = 0; i < call.out[0].size(); ++i) {
    const double dy = call.in[0][i], g = call.in[1][i], u = call.in[2][i], s = sigmoid_of(g);
    call.out[0][i] = dy * u * (s + g * s * (1 - s));
    call.out[1][i] = dy * g * s;
  }
}

}  // namespace

void register_wave_rules(RuleTable& table) {
  table.add<ops::AddSinusoids>(
      [](const ops::AddSinusoids& op, const RuleCall& c) { add_sinusoids(op.base(), c); });
  table.add<ops::Rotate>(
      [](const ops::Rotate& op, const RuleCall& c) { turn_heads(op.rotation(), c); });
  table.add<ops::SwiGlu>(gate);
  table.add<ops::SwiGluGrad>(gate_backward);
}

}  // namespace tutti::backend
