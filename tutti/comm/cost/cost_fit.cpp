#include "tutti/comm/cost/cost_fit.h"

#include <algorithm>
#include <array>
#include <limits>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

constexpr int kNumbers = 6;
using Numbers = std::array<double, kNumbers>;

// A slow memory's numbers, with which the search begins.
constexpr Numbers kStart{1e-6, 1e-10, 1e-6, 1e-10, 1e-10, 1e-10};

NetworkCost network_of(const Numbers& x) { return {{x[0], x[1]}, {x[2], x[3]}, x[4], x[5]}; }

double price_of(const MeasuredSchedules& measured, const Numbers& x, std::span<const int> node_of) {
  return price(measured.schedules, network_of(x), node_of, measured.element_bytes,
               measured.accumulator_bytes);
}

// Returns the amount of each number on the critical path at x, over the measured time: by small
// steps, as a price is linear while the path stays.
Numbers path_of(const MeasuredSchedules& measured, const Numbers& x, std::span<const int> node_of) {
  Numbers path{};
  const double here = price_of(measured, x, node_of);
  for (size_t k = 0; k < kNumbers; ++k) {
    if (node_of.empty() && (k == 2 || k == 3)) continue;
    Numbers moved = x;
    const double step = 1e-3 * std::max(x[k], 1e-3 * kStart[k]);
    moved[k] += step;
    path[k] = (price_of(measured, moved, node_of) - here) / step / measured.seconds;
  }
  return path;
}

double error_of(std::span<const MeasuredSchedules> measured, const Numbers& x,
                std::span<const int> node_of) {
  double sum = 0;
  for (const MeasuredSchedules& m : measured) {
    const double off = price_of(m, x, node_of) / m.seconds - 1;
    sum += off * off;
  }
  return sum;
}

// Solves the least squares of paths * x = 1 with x >= 0: one number after the other, each exactly.
Numbers solve(const std::vector<Numbers>& paths, Numbers x) {
  std::array<Numbers, kNumbers> products{};
  Numbers right{};
  for (const Numbers& path : paths)
    for (size_t j = 0; j < kNumbers; ++j) {
      right[j] += path[j];
      for (size_t k = 0; k < kNumbers; ++k) products[j][k] += path[j] * path[k];
    }
  for (int sweep = 0; sweep < 1000; ++sweep)
    for (size_t j = 0; j < kNumbers; ++j) {
      if (products[j][j] == 0) continue;
      double rest = right[j];
      for (size_t k = 0; k < kNumbers; ++k) rest -= k == j ? 0 : products[j][k] * x[k];
      x[j] = std::max(0.0, rest / products[j][j]);
    }
  return x;
}

}  // namespace

NetworkCost fit_network(std::span<const MeasuredSchedules> measured, std::span<const int> node_of) {
  for (const MeasuredSchedules& m : measured) CHECK(m.seconds > 0, "a measured time is positive");
  Numbers x = kStart, best = kStart;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 6; ++i) {
    std::vector<Numbers> paths;
    for (const MeasuredSchedules& m : measured) paths.push_back(path_of(m, x, node_of));
    x = solve(paths, x);
    const double error = error_of(measured, x, node_of);
    if (error < least) least = error, best = x;
  }
  NetworkCost network = network_of(best);
  if (node_of.empty()) network.between = network.inside;
  return network;
}

}  // namespace tutti::comm
