// Tests that updates that each rank makes on its window of the parameters give the same bits as
// updates of everything, for any number of ranks and threads, and leave all else unchanged.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/norm_update.h"

namespace tutti::backend {
namespace {

using UpdatePtr = std::shared_ptr<const ops::Update>;

/// One rule as its ops: one, or two for a rule with norms.
struct Rule {
  std::string name;
  UpdatePtr norms, update;
};

std::vector<Rule> rules() {
  const ops::LambAttributes lamb{.eps = 1e-6, .weight_decay = 0.01};
  return {
      {"sgd", nullptr, std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{})},
      {"momentum", nullptr, std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{0.9, 1e-2, false})},
      {"nesterov", nullptr, std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{0.9, 1e-2, true})},
      {"adam", nullptr,
       std::make_shared<ops::AdamUpdate>(ops::AdamAttributes{.weight_decay = 1e-2})},
      {"adamw", nullptr,
       std::make_shared<ops::AdamUpdate>(
           ops::AdamAttributes{.weight_decay = 1e-2, .decoupled = true})},
      {"rmsprop", nullptr,
       std::make_shared<ops::RmspropUpdate>(ops::RmspropAttributes{.weight_decay = 1e-2})},
      {"average", nullptr,
       std::make_shared<ops::WeightAverage>(ops::WeightAverageAttributes{0.9, 0})},
      {"lars", std::make_shared<ops::ParameterNorms>(),
       std::make_shared<ops::LarsUpdate>(ops::LarsAttributes{.weight_decay = 1e-2, .trust = 0.5})},
      {"lamb", std::make_shared<ops::LambMoments>(lamb), std::make_shared<ops::LambUpdate>(lamb)}};
}

constexpr int64_t kSizes[] = {10, kSumBlock, 5000, 17, 3333, 1, 2 * kSumBlock};
constexpr float kRate = 0.1f, kScale = 0.25f;

int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }
int64_t total() {
  int64_t floats = 0;
  for (const int64_t n : kSizes) floats += padded(n);
  return floats;
}

/// w, g and two states of all parameters, each array on a cache line as in the arenas.
struct Arenas {
  std::vector<float> of[4];
  Window window(int64_t begin, int64_t end) {
    const auto* const w = reinterpret_cast<const std::byte*>(of[0].data());
    return {w + begin * 4, w + end * 4};
  }
};

/// Returns the arrays before the first step: random weights and gradients; states and gaps between
/// parameters are zero.
Arenas first_arenas() {
  static const Arenas made = [] {
    Arenas arenas;
    for (size_t a = 0; a < 4; ++a) {
      Rng rng(5, Purpose::test, a);
      arenas.of[a].assign(static_cast<size_t>(total()), 0.0f);
      int64_t at = 0;
      for (const int64_t n : kSizes) {
        for (int64_t i = 0; i < n; ++i)
          arenas.of[a][static_cast<size_t>(at + i)] = a < 2 ? rng.normal() : 0.0f;
        at += padded(n);
      }
    }
    return arenas;
  }();
  return made;
}

/// Runs one op, the shares of `parts` threads one after another.
void run(const Backend& backend, const ops::Update& op, Arenas& arenas, std::vector<float>& sums,
         int step, int parts, const Window& window) {
  float rate = kRate, scale = kScale;
  KernelRequest request{.op = &op, .in = {{}, {}}, .out = {}, .in_free = {}, .out_free = {}};
  std::vector<void*> in{&rate, &scale}, out{sums.data()};
  if (op.sums() == ops::Update::Sums::reads) {
    request.in.push_back({DType::f32, Shape{static_cast<int64_t>(sums.size()) / 2, 2}, {}});
    in.push_back(sums.data());
  }
  int64_t at = 0, blocks = 0;
  for (const int64_t n : kSizes) {
    for (int a = 0; a < op.arity(); ++a) {
      request.in.push_back({DType::f32, Shape{n}, {}});
      in.push_back(arenas.of[a].data() + at);
    }
    at += padded(n);
    blocks += sum_blocks(n);
  }
  if (op.sums() == ops::Update::Sums::writes) {
    request.out.push_back({DType::f32, Shape{blocks, 2}, {}});
    sums.assign(static_cast<size_t>(2 * blocks), -1.0f);
    out[0] = sums.data();
  }
  request.in_free.assign(request.in.size(), false);
  request.out_free.assign(request.out.size(), false);
  const KernelCandidate candidate = backend.candidates(request).front();
  ASSERT_EQ(candidate.refusal, "");
  const std::unique_ptr<Kernel> kernel = candidate.make();
  StepInfo info;
  info.step = step;
  for (int part = parts; part-- > 0;)
    kernel->run({.in = in.data(),
                 .out = out.data(),
                 .thread = part,
                 .threads = parts,
                 .step = &info,
                 .window = window});
}

constexpr int kSteps = 3;

Arenas whole(const Backend& backend, const Rule& rule, int parts) {
  Arenas arenas = first_arenas();
  std::vector<float> sums;
  for (int step = 0; step < kSteps; ++step) {
    if (rule.norms) run(backend, *rule.norms, arenas, sums, step, parts, {});
    run(backend, *rule.update, arenas, sums, step, parts, {});
  }
  return arenas;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

/// Every rank holds its own stretch [bounds[r], bounds[r + 1]) of all four arrays and poison
/// elsewhere; norms are exchanged as a sum over ranks. Returns the joined stretches; expects the
/// poison to be untouched.
Arenas sharded(const Backend& backend, const Rule& rule, const std::vector<int64_t>& bounds,
               int parts) {
  const size_t count = bounds.size() - 1;
  std::vector<Arenas> ranks(count, first_arenas());
  std::vector<Window> windows;
  for (size_t r = 0; r < count; ++r) {
    for (auto& array : ranks[r].of) {
      std::fill(array.begin(), array.begin() + bounds[r], kPoison);
      std::fill(array.begin() + bounds[r + 1], array.end(), kPoison);
    }
    windows.push_back(ranks[r].window(bounds[r], bounds[r + 1]));
  }
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> sums, own;
    for (size_t r = 0; rule.norms && r < count; ++r) {
      run(backend, *rule.norms, ranks[r], own, step, parts, windows[r]);
      sums.resize(own.size(), 0.0f);
      for (size_t i = 0; i < own.size(); ++i) sums[i] += own[i];
    }
    for (size_t r = 0; r < count; ++r)
      run(backend, *rule.update, ranks[r], sums, step, parts, windows[r]);
  }
  Arenas joined = first_arenas();
  for (size_t r = 0; r < count; ++r)
    for (size_t a = 0; a < 4; ++a) {
      const std::vector<float>& array = ranks[r].of[a];
      const auto begin = array.begin() + bounds[r], end = array.begin() + bounds[r + 1];
      std::copy(begin, end, joined.of[a].begin() + bounds[r]);
      const auto touched = [](float x) {
        return std::bit_cast<uint32_t>(x) != std::bit_cast<uint32_t>(kPoison);
      };
      EXPECT_FALSE(std::any_of(array.begin(), begin, touched) ||
                   std::any_of(end, array.end(), touched))
          << rule.name << " wrote outside of its window in array " << a;
    }
  return joined;
}

/// Returns random ascending cuts out of the allowed ones.
std::vector<int64_t> random_bounds(const std::vector<int64_t>& allowed, int ranks, Rng& rng) {
  std::vector<int64_t> bounds{0, total()};
  for (int r = 1; r < ranks; ++r)
    bounds.push_back(allowed[rng.below(static_cast<uint32_t>(allowed.size()))]);
  std::ranges::sort(bounds);
  return bounds;
}

void expect_same_bits(const Arenas& got, const Arenas& want, const std::string& how) {
  for (size_t a = 0; a < 4; ++a)
    EXPECT_TRUE(same_bits(got.of[a], want.of[a])) << how << ", array " << a;
}

void expect_shards_make_no_difference(const Backend& backend, int most_threads, int repeats) {
  std::vector<int64_t> on_blocks, on_lines;
  int64_t start = 0;
  for (const int64_t n : kSizes) {
    for (int64_t at = 0; at < n; at += kSumBlock) on_blocks.push_back(start + at);
    start += padded(n);
  }
  for (int64_t at = 0; at < total(); at += 16) on_lines.push_back(at);
  Rng rng(11, Purpose::test, 0);
  for (const Rule& rule : rules()) {
    const Arenas want = whole(backend, rule, 1);
    EXPECT_FALSE(same_bits(want.of[0], first_arenas().of[0]) &&
                 same_bits(want.of[2], first_arenas().of[2]))
        << rule.name << " changed nothing";
    for (int parts = 1; parts <= most_threads; ++parts) {
      expect_same_bits(whole(backend, rule, parts), want,
                       fmt::format("{}, {} threads", rule.name, parts));
      for (int ranks = 1; ranks <= 5; ++ranks)
        for (int repeat = 0; repeat < repeats; ++repeat) {
          const std::vector<int64_t> bounds =
              random_bounds(rule.norms ? on_blocks : on_lines, ranks, rng);
          expect_same_bits(
              sharded(backend, rule, bounds, parts), want,
              fmt::format("{}, {} threads, bounds {}", rule.name, parts, fmt::join(bounds, " ")));
        }
    }
  }
}

TEST(ShardedUpdate, HasTheBitsOfTheWholeOnCpuKernels) {
  expect_shards_make_no_difference(CpuBackend(), 3, 3);
}
TEST(ShardedUpdate, HasTheBitsOfTheWholeOnReferenceKernels) {
  expect_shards_make_no_difference(ReferenceBackend(), 1, 1);
}

/// Elementwise rules allow cuts between any two elements.
TEST(ShardedUpdate, ElementwiseRulesMayBeCutAnywhere) {
  Rng rng(12, Purpose::test, 0);
  std::vector<int64_t> anywhere;
  for (int64_t at = 0; at < total(); ++at) anywhere.push_back(at);
  for (const Rule& rule : rules()) {
    if (rule.norms) continue;
    const Arenas want = whole(CpuBackend(), rule, 1);
    for (int repeat = 0; repeat < 10; ++repeat)
      expect_same_bits(sharded(CpuBackend(), rule, random_bounds(anywhere, 5, rng), 3), want,
                       rule.name);
  }
}

/// LAMB in double precision, parameter by parameter, written as for a single array.
Arenas lamb_in_double(const ops::LambAttributes& a) {
  Arenas arenas = first_arenas();
  size_t at = 0;
  for (const int64_t n : kSizes) {
    const auto count = static_cast<size_t>(n);
    std::vector<double> w(count), m(count), v(count), u(count);
    for (size_t i = 0; i < count; ++i) w[i] = arenas.of[0][at + i];
    for (int t = 1; t <= kSteps; ++t) {
      double w2 = 0, u2 = 0;
      for (size_t i = 0; i < count; ++i) {
        const double g = static_cast<double>(arenas.of[1][at + i]) * kScale;
        m[i] = a.beta1 * m[i] + (1 - a.beta1) * g;
        v[i] = a.beta2 * v[i] + (1 - a.beta2) * g * g;
        u[i] = m[i] / (1 - std::pow(a.beta1, t)) /
                   (std::sqrt(v[i] / (1 - std::pow(a.beta2, t))) + a.eps) +
               a.weight_decay * w[i];
        w2 += w[i] * w[i];
        u2 += u[i] * u[i];
      }
      for (size_t i = 0; i < count; ++i) w[i] -= kRate * std::sqrt(w2 / u2) * u[i];
    }
    for (size_t i = 0; i < count; ++i)
      arenas.of[0][at + i] = static_cast<float>(w[i]),
                        arenas.of[2][at + i] = static_cast<float>(m[i]),
                        arenas.of[3][at + i] = static_cast<float>(v[i]);
    at += static_cast<size_t>(padded(n));
  }
  return arenas;
}

TEST(Lamb, AgreesWithALoopInDoublePrecision) {
  const ops::LambAttributes a{.eps = 1e-6, .weight_decay = 0.01};
  const Arenas want = lamb_in_double(a);
  const Arenas got = whole(
      CpuBackend(),
      {"lamb", std::make_shared<ops::LambMoments>(a), std::make_shared<ops::LambUpdate>(a)}, 3);
  for (const size_t array : {0, 2, 3})
    for (size_t i = 0; i < want.of[array].size(); ++i)
      EXPECT_NEAR(got.of[array][i], want.of[array][i], 1e-5 * (0.1 + std::abs(want.of[array][i])))
          << "array " << array << " element " << i;
}

/// Where a norm is 0 the ratio is 1, and a weight that starts at 0 moves.
TEST(Lamb, AParameterOfZerosMovesAtTheFullRate) {
  const ops::LambAttributes a{.eps = 1e-6, .weight_decay = 0.01};
  for (const auto& backend :
       {std::unique_ptr<Backend>(new CpuBackend), std::unique_ptr<Backend>(new ReferenceBackend)}) {
    Arenas arenas = first_arenas();
    std::ranges::fill(arenas.of[0], 0.0f);
    std::vector<float> sums;
    run(*backend, ops::LambMoments(a), arenas, sums, 0, 1, {});
    run(*backend, ops::LambUpdate(a), arenas, sums, 0, 1, {});
    EXPECT_NEAR(arenas.of[0][0], arenas.of[1][0] > 0 ? -kRate : kRate, 1e-5);
  }
}

}  // namespace
}  // namespace tutti::backend
