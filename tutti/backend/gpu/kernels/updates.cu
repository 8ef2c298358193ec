// Optimizer updates and the norms that some of them need, with the arithmetic of the CPU's kernels,
// operation by operation: compiled without contraction they have the same bits.

#include "tutti/backend/gpu/kernels/updates.h"

#include "device_code.h"
#include "tutti/backend/gpu/kernels/device_functions.h"

namespace tutti::backend {
namespace {

/// Returns the last of a launch's stretches that begins at this block or before it.
template <class Stretch, class Block>
TUTTI_DEVICE const Stretch& stretch_of(const Stretch* at, uint32_t count, Block block) {
  uint32_t first = 0, last = count;
  while (last - first > 1) {
    const uint32_t middle = (first + last) / 2;
    if (at[middle].first_block <= block)
      first = middle;
    else
      last = middle;
  }
  return at[first];
}

/// Limits a gradient to between -limit and limit; NaN stays NaN.
TUTTI_DEVICE float limited(float g, float limit) {
  g = g < -limit ? -limit : g;
  return limit < g ? limit : g;
}

/// One element with its states; those that a rule has not are 0.
struct Element {
  float w, g, s1, s2;
};

/// A step of each rule: what all elements of a parameter share, and the rule for one of them.
struct SgdStep {
  SgdRule r;
  float lr, scale;
  TUTTI_DEVICE SgdStep(const SgdRule& rule, float rate, float s, uint32_t)
      : r(rule), lr(rate * rule.factor), scale(s) {}
  TUTTI_DEVICE void operator()(Element& e) const {
    const float d = limited(e.g * scale, r.limit) + r.decay * e.w;
    if (r.momentum == 0) {
      e.w -= lr * d;
      return;
    }
    const float buf = r.momentum * e.s1 + d;
    e.s1 = buf;
    e.w -= lr * (r.nesterov ? d + r.momentum * buf : buf);
  }
};

struct AdamStep {
  AdamRule r;
  float scale, step, root, shrink;
  TUTTI_DEVICE AdamStep(const AdamRule& rule, float rate, float s, uint32_t) : r(rule), scale(s) {
    const float lr = rate * rule.factor;
    step = static_cast<float>(static_cast<double>(lr) / load(&rule.numbers->unseen));
    root = load(&rule.numbers->root);
    shrink = static_cast<float>(1 - static_cast<double>(lr) * rule.weight_decay);
  }
  TUTTI_DEVICE void operator()(Element& e) const {
    const float g = limited(e.g * scale, r.limit) + r.decay * e.w;
    const float m = r.beta1 * e.s1 + r.new1 * g, v = r.beta2 * e.s2 + r.new2 * g * g;
    e.s1 = m;
    e.s2 = v;
    e.w = shrink * e.w - step * m / (sqrtf(v) * root + r.eps);
  }
};

struct RmspropStep {
  RmspropRule r;
  float lr, scale;
  TUTTI_DEVICE RmspropStep(const RmspropRule& rule, float rate, float s, uint32_t)
      : r(rule), lr(rate * rule.factor), scale(s) {}
  TUTTI_DEVICE void operator()(Element& e) const {
    const float g = limited(e.g * scale, r.limit) + r.decay * e.w,
                v = r.rho * e.s1 + r.fresh * g * g;
    e.s1 = v;
    e.w -= lr * g / (sqrtf(v) + r.eps);
  }
};

struct AverageStep {
  float part;
  TUTTI_DEVICE AverageStep(const AverageRule& rule, float, float, uint32_t)
      : part(load(&rule.numbers->part)) {}
  TUTTI_DEVICE void operator()(Element& e) const {
    e.s1 = part == 1 ? e.w : e.s1 + part * (e.w - e.s1);
  }
};

struct LarsStep {
  LarsRule r;
  float scale, rate;
  TUTTI_DEVICE LarsStep(const LarsRule& rule, float given, float s, uint32_t parameter)
      : r(rule), scale(s) {
    const Pack<double, 2> squares = load<2>(rule.squares + 2 * parameter);
    const double w_norm = sqrt(squares.at[0]),
                 g_norm = fabs(static_cast<double>(s)) * sqrt(squares.at[1]);
    const double local =
        w_norm > 0 && g_norm > 0
            ? rule.trust * w_norm / (g_norm + rule.weight_decay * w_norm + rule.eps)
            : 1;
    rate = static_cast<float>(static_cast<double>(given * rule.factor) * local);
  }
  TUTTI_DEVICE void operator()(Element& e) const {
    const float v = r.momentum * e.s1 + rate * (e.g * scale + r.decay * e.w);
    e.s1 = v;
    e.w -= v;
  }
};

/// Both halves of LAMB compute u from the same new m and v.
struct LambU {
  float correction, root, eps, decay;
  TUTTI_DEVICE explicit LambU(const LambDirection& d) : eps(d.eps), decay(d.decay) {
    const Pack<float, 2> numbers = load<2>(reinterpret_cast<const float*>(d.numbers));
    correction = numbers.at[0];
    root = numbers.at[1];
  }
  TUTTI_DEVICE float operator()(float w, float m, float v) const {
    return correction * m / (sqrtf(v) * root + eps) + decay * w;
  }
};

struct LambStep {
  LambU u;
  float rate;
  TUTTI_DEVICE LambStep(const LambRule& rule, float given, float, uint32_t parameter)
      : u(rule.direction) {
    const Pack<double, 2> squares = load<2>(rule.squares + 2 * parameter);
    const double w_norm = sqrt(squares.at[0]), u_norm = sqrt(squares.at[1]);
    rate = static_cast<float>(static_cast<double>(given * rule.factor) *
                              (w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1));
  }
  TUTTI_DEVICE void operator()(Element& e) const { e.w -= rate * u(e.w, e.s1, e.s2); }
};

template <class Rule, class Step>
TUTTI_KERNEL(kUpdateThreads)
update(UpdateArgs<Rule> a) {
  constexpr int kEach = kUpdateBlock / kUpdateThreads;
  const UpdateStretch& s = stretch_of(a.stretches.at, a.stretches.count, blockIdx.x);
  const int64_t first =
      static_cast<int64_t>(blockIdx.x - s.first_block) * kUpdateBlock + threadIdx.x;
  const UpdateOperands& all = a.stretches.first;
  const Step step(a.rule, load(a.rate), load(a.scale), s.parameter);
  Element e[kEach];
  for (int k = 0; k < kEach; ++k) {
    const int64_t i = first + k * kUpdateThreads;
    if (i >= s.count) continue;
    e[k] = {load(all.w + s.w + i), Rule::kReadsGradient ? load(all.g + s.g + i) : 0,
            all.s1 ? load(all.s1 + s.s + i) : 0, all.s2 ? load(all.s2 + s.s + i) : 0};
  }
  for (int k = 0; k < kEach; ++k) {
    const int64_t i = first + k * kUpdateThreads;
    if (i >= s.count) continue;
    step(e[k]);
    if (Rule::kWritesWeight) store(all.w + s.w + i, e[k].w);
    if (Rule::kWritesStates && all.s1) store(all.s1 + s.s + i, e[k].s1);
    if (Rule::kWritesStates && all.s2) store(all.s2 + s.s + i, e[k].s2);
  }
}

/// The block of kUpdateBlock elements whose squares a thread helps to add.
struct SquareThread {
  int64_t block;  ///< in the launch
  int lane;
  bool inside;  ///< there is such a block

  TUTTI_DEVICE explicit SquareThread(int64_t blocks)
      : block(static_cast<int64_t>(blockIdx.x) * (kUpdateThreads / kSquareLanes) +
              threadIdx.x / kSquareLanes),
        lane(static_cast<int>(threadIdx.x % kSquareLanes)), inside(block < blocks) {}
  /// Returns the sum over the block's threads, on lane 0. All threads call it.
  TUTTI_DEVICE static double total(double sum) {
    for (unsigned width = kSquareLanes / 2; width > 0; width /= 2)
      sum += __shfl_down_sync(0xFFFFFFFFu, sum, width);
    return sum;
  }
};

TUTTI_DEVICE double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

TUTTI_KERNEL(kUpdateThreads) squares(SquaresArgs a) {
  const SquareThread t(a.blocks);
  const SquareStretch& s = stretch_of(a.at, a.count, t.inside ? t.block : a.blocks - 1);
  const int64_t own = t.block - s.first_block, first = own * kUpdateBlock;
  float sums[2] = {};
  for (uint32_t column = 0; column < 2; ++column) {
    double sum = 0;
    for (int64_t i = first + t.lane;
         t.inside && column < a.columns && i < s.count && i < first + kUpdateBlock;
         i += kSquareLanes)
      sum += square(load((column == 0 ? s.x[0] : s.x[1]) + i));
    sums[column] = static_cast<float>(SquareThread::total(sum));
  }
  if (!t.inside || t.lane != 0) return;
  for (uint32_t column = 0; column < a.columns; ++column)
    store(s.sums + own * a.columns + column, sums[column]);
}

TUTTI_KERNEL(kUpdateThreads) lamb_moments(LambMomentsArgs a) {
  const SquareThread t(a.blocks);
  const LambStretch& s = stretch_of(a.at, a.count, t.inside ? t.block : a.blocks - 1);
  const int64_t own = t.block - s.first_block, first = own * kUpdateBlock;
  const float scale = load(a.scale);
  const LambU u(a.direction);
  double of_w = 0, of_u = 0;
  for (int64_t i = first + t.lane; t.inside && i < s.count && i < first + kUpdateBlock;
       i += kSquareLanes) {
    const float w = load(s.w + i), g = load(s.g + i) * scale;
    const float m = a.beta1 * load(s.m + i) + a.new1 * g,
                v = a.beta2 * load(s.v + i) + a.new2 * g * g;
    store(s.m + i, m);
    store(s.v + i, v);
    of_w += square(w);
    of_u += square(u(w, m, v));
  }
  of_w = SquareThread::total(of_w);
  of_u = SquareThread::total(of_u);
  if (!t.inside || t.lane != 0) return;
  store(s.sums + 2 * own, static_cast<float>(of_w));
  store(s.sums + 2 * own + 1, static_cast<float>(of_u));
}

/// Adds v[0] ... v[count - 1], `step` apart, in the tree of tree_sum.h: neighbours, then neighbours
/// of those sums, and so on. The sum is in v[0] then, for all threads of the block.
TUTTI_DEVICE void add_in_tree(double* v, int64_t count, int64_t step) {
  for (int64_t half = 1; half < count; half *= 2) {
    __syncthreads();
    for (int64_t i = threadIdx.x * 2 * half; i + half < count; i += kUpdateThreads * 2 * half)
      store(v + i * step, load(v + i * step) + load(v + (i + half) * step));
  }
  __syncthreads();
}

TUTTI_KERNEL(kUpdateThreads) trees(TreesArgs a) {
  const TreeStretch& s = a.at[blockIdx.x];
  double* const work = a.work + s.first * a.columns;
  for (int64_t i = threadIdx.x; i < s.count * a.columns; i += kUpdateThreads)
    store(work + i, static_cast<double>(load(s.sums + i)));
  for (uint32_t column = 0; column < a.columns; ++column) {
    add_in_tree(work + column, s.count, a.columns);
    if (threadIdx.x == 0)
      store(a.totals + (a.first_parameter + blockIdx.x) * a.columns + column, load(work + column));
  }
}

TUTTI_KERNEL(kUpdateThreads) clip(ClipArgs a) {
  add_in_tree(a.totals, a.parameters, 1);
  if (threadIdx.x > 0) return;
  const float scale = load(a.scale);
  const double norm = fabs(static_cast<double>(scale)) * sqrt(load(a.totals)),
               factor = a.limit / (norm + a.eps);
  store(a.clipped, factor < 1 ? static_cast<float>(static_cast<double>(scale) * factor) : scale);
  store(a.norm, static_cast<float>(norm));
}

}  // namespace

std::span<const device::DeviceFunction> updates_functions() {
  static const device::DeviceFunction list[] = {
      device_function<update<SgdRule, SgdStep>>("sgd", kUpdateThreads, true),
      device_function<update<AdamRule, AdamStep>>("adam", kUpdateThreads, true),
      device_function<update<RmspropRule, RmspropStep>>("rmsprop", kUpdateThreads, true),
      device_function<update<AverageRule, AverageStep>>("average", kUpdateThreads, true),
      device_function<update<LarsRule, LarsStep>>("lars", kUpdateThreads, true),
      device_function<update<LambRule, LambStep>>("lamb", kUpdateThreads, true),
      device_function<lamb_moments>("lamb_moments", kUpdateThreads),
      device_function<squares>("squares", kUpdateThreads),
      device_function<trees>("trees", kUpdateThreads),
      device_function<clip>("clip", kUpdateThreads)};
  return list;
}

}  // namespace tutti::backend
