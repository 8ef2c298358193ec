#include "tutti/ops/pool.h"
#include "tutti/ops/broadcast.h"

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// One window: the elements of x inside it, in order of position, with their places in the whole
/// window, and the divisor of an average.
struct Window {
  std::vector<int64_t> x, place;
  double divisor = 1;
};

/// Three spatial dimensions; the first is 1 in a 2-D pooling.
struct PoolGeometry {
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, low{0, 0, 0};
  bool count_include_pad;

  explicit PoolGeometry(const ops::PoolAttributes& a) : count_include_pad(a.count_include_pad) {
    for (int d = 0; d < a.spatial; ++d) {
      const auto to = static_cast<size_t>(3 - a.spatial + d), from = static_cast<size_t>(d);
      kernel[to] = a.kernel[from];
      stride[to] = a.stride[from];
      low[to] = a.pad_low[from];
    }
  }
};

/// Calls f(window, y index) for every output.
template <class F>
void for_each_window(const PoolGeometry& g, const PlainTensor& x, const PlainTensor& y, F f) {
  Window window;
  for (int64_t yi = 0; yi < y.size(); ++yi) {
    const int64_t w = yi % y.extent(4), h = yi / y.extent(4) % y.extent(3),
                  d = yi / y.extent(4) / y.extent(3) % y.extent(2);
    const int64_t plane = yi / y.shape().elements_from(2), c = plane % y.extent(1),
                  n = plane / y.extent(1);
    window.x.clear();
    window.place.clear();
    int64_t place = -1;
    for (int64_t kd = d * g.stride[0] - g.low[0], ed = kd + g.kernel[0]; kd < ed; ++kd)
      for (int64_t kh = h * g.stride[1] - g.low[1], eh = kh + g.kernel[1]; kh < eh; ++kh)
        for (int64_t kw = w * g.stride[2] - g.low[2], ew = kw + g.kernel[2]; kw < ew; ++kw) {
          ++place;
          if (kd < 0 || kd >= x.extent(2) || kh < 0 || kh >= x.extent(3) || kw < 0 ||
              kw >= x.extent(4))
            continue;
          window.x.push_back(x.at(n, c, kd, kh, kw));
          window.place.push_back(place);
        }
    window.divisor =
        static_cast<double>(g.count_include_pad ? g.kernel[0] * g.kernel[1] * g.kernel[2]
                                                : static_cast<int64_t>(window.x.size()));
    f(window, yi);
  }
}

/// Returns the first of the largest elements, as an index into window.x; a NaN is largest.
size_t largest(const PlainTensor& x, const Window& window) {
  size_t best = 0;
  for (size_t k = 1; k < window.x.size(); ++k) {
    const double value = x[window.x[k]], most = x[window.x[best]];
    if (value > most || (value != value && most == most)) best = k;
  }
  return best;
}

Rule pool_forward(const ops::PoolAttributes& a) {
  return {.run = [g = PoolGeometry(a), kind = a.kind](const RuleCall& call) {
    const PlainTensor& x = call.in[0];
    PlainTensor& y = call.out[0];
    for_each_window(g, x, y, [&](const Window& window, int64_t yi) {
      if (kind == ops::PoolKind::max) {
        const size_t winner = largest(x, window);
        y[yi] = x[window.x[winner]];
        call.out[1][yi] = static_cast<double>(window.place[winner]);
      } else {
        y[yi] = 0;
        for (const int64_t i : window.x) y[yi] += x[i] / window.divisor;
      }
    });
  }};
}

Rule pool_backward(const ops::PoolAttributes& a) {
  return {.run = [g = PoolGeometry(a), kind = a.kind](const RuleCall& call) {
    const PlainTensor& dy = call.in[0];
    PlainTensor& dx = call.out[0];
    dx.fill(0);
    for_each_window(g, dx, dy, [&](const Window& window, int64_t yi) {
      for (size_t k = 0; k < window.x.size(); ++k)
        if (kind == ops::PoolKind::average)
          dx[window.x[k]] += dy[yi] / window.divisor;
        else if (call.in[1][yi] == static_cast<double>(window.place[k]))
          dx[window.x[k]] += dy[yi];
    });
  }};
}

/// The divisor of a sum over all positions, or of its gradient.
enum class Divisor { none, positions };

double value_of(Divisor divisor, int64_t positions) {
  return divisor == Divisor::none ? 1 : static_cast<double>(positions);
}

Rule over_positions(Divisor divisor) {
  return {.run = [divisor](const RuleCall& call) {
    const PlainTensor& x = call.in[0];
    const int64_t positions = x.shape().elements_from(2);
    call.out[0].fill(0);
    for (int64_t i = 0; i < x.size(); ++i)
      call.out[0][i / positions] += x[i] / value_of(divisor, positions);
  }};
}

Rule to_positions(Divisor divisor) {
  return {.run = [divisor](const RuleCall& call) {
    PlainTensor& dx = call.out[0];
    const int64_t positions = dx.shape().elements_from(2);
    for (int64_t i = 0; i < dx.size(); ++i)
      dx[i] = call.in[0][i / positions] / value_of(divisor, positions);
  }};
}

}  // namespace

void register_pool_rules(RuleTable& table) {
  table.add<ops::Pool>([](const ops::Pool& op) { return pool_forward(op.pool()); });
  table.add<ops::PoolGrad>([](const ops::PoolGrad& op) { return pool_backward(op.pool()); });
  table.add<ops::GlobalAveragePool>(over_positions(Divisor::positions));
  table.add<ops::GlobalAveragePoolGrad>(to_positions(Divisor::positions));
  table.add<ops::SpatialSum>(over_positions(Divisor::none));
  table.add<ops::Broadcast>(to_positions(Divisor::none));
}

}  // namespace tutti::backend
