#include "tutti/comm/cost/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/numeric/rng.h"

namespace tutti::comm {
namespace {

double exchange_seconds(const LinkCost& link, double bytes, int parts) {
  if (parts < 2) return 0;
  const double rounds = std::ceil(std::log2(static_cast<double>(parts)));
  return 2 * (rounds * link.latency + static_cast<double>(parts - 1) / static_cast<double>(parts) *
                                          bytes * link.seconds_per_byte);
}

}  // namespace

std::string Machine::label() const {
  return fmt::format("{} ({:08x})", name, static_cast<uint32_t>(content));
}

LinkCost Machine::between_cost(bool crosses_switches) const {
  return {between.latency, between.seconds_per_byte * (crosses_switches ? oversubscription : 1)};
}

double Machine::compute_seconds(double flop, int device, int64_t step, uint64_t seed,
                                double measured_seconds) const {
  double seconds = measured           ? measured_seconds
                   : step_seconds > 0 ? step_seconds
                                      : flop / device_flops;
  for (const Slow& entry : slow)
    if (entry.device == device) seconds *= entry.factor;
  if (sigma <= 0) return seconds;
  Rng rng(seed, Purpose::step_times,
          static_cast<uint64_t>(step) << 24 | static_cast<uint64_t>(device));
  const auto normal = static_cast<double>(rng.normal());
  return seconds * std::exp(sigma * normal - sigma * sigma / 2);
}

double Machine::message_seconds(double bytes, int from, int to, int flows) const {
  if (from == to) return 0;
  const int below = std::max(nodes_per_switch, 1);
  const LinkCost link =
      node(from) == node(to)
          ? inside
          : between_cost(nodes_per_switch > 0 && node(from) / below != node(to) / below);
  return link.latency + bytes * link.seconds_per_byte * std::max(flows, 1);
}

double Machine::allreduce_seconds(double bytes, int devices) const {
  const int nodes = (devices - 1) / devices_per_node + 1;
  // A node's devices share its link, each with its part of the bytes.
  return exchange_seconds(inside, bytes, std::min(devices, devices_per_node)) +
         exchange_seconds(between_cost(nodes_per_switch > 0 && nodes > nodes_per_switch), bytes,
                          nodes);
}

}  // namespace tutti::comm
