// Tests the reference itself against numbers worked out by hand or by an independent program from
// PyTorch's documented formulas.

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/backend/conformance/op_case.h"
#include "tutti/backend/conformance/op_run.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/interaction.h"
#include "tutti/ops/losses.h"
#include "tutti/ops/norm_update.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/sequence/embedding.h"
#include "tutti/ops/sequence/token_slice.h"

namespace tutti {
namespace {

using backend::OpRun;
using backend::Values;
using graph::OpPtr;
using graph::ValueType;

ValueType batched(const Shape& shape, DType dtype = DType::f32) {
  return {{dtype, shape, {}}, true};
}
ValueType fixed(const Shape& shape) { return {{DType::f32, shape, {}}, false}; }

void expect_near(const Values& got, const Values& want, double tolerance = 1e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], tolerance) << "element " << i;
}

OpRun run(OpPtr op, std::vector<ValueType> types, const std::vector<Values>& in,
          const backend::StepInfo& step = {}) {
  backend::OpRunOptions options;
  options.step = step;
  OpRun made({std::move(op), std::move(types), {}}, backend::ReferenceBackend(), options);
  for (size_t i = 0; i < in.size(); ++i) made.set_in(i, in[i]);
  made.run();
  return made;
}

TEST(Values, ConvolutionIsACrossCorrelation) {
  const ops::ConvAttributes a{.spatial = 2, .pad_low = {1, 0, 0}, .pad_high = {0, 0, 0}};
  const OpRun y = run(std::make_shared<ops::Conv>(a, true),
                      {batched({1, 1, 2, 3}), fixed({1, 1, 2, 2}), fixed({1})},
                      {{1, 2, 3, 4, 5, 6}, {1, 10, 100, 1000}, {0.5}});
  EXPECT_EQ(y.out_types()[0].desc.shape, (Shape{1, 1, 2, 2}));
  expect_near(y.out(0), {2100.5, 3200.5, 5400.5 + 21, 6500.5 + 32});
}

TEST(Values, InteractionIsTheLowerTriangleRowByRow) {
  const Values x = {1, 2, 3, 4, 5, 6};
  const auto of = [&](bool itself) {
    return run(std::make_shared<ops::Interaction>(ops::InteractionAttributes{2, itself}),
               {batched({1, 6})}, {x});
  };
  expect_near(of(false).out(0), {11, 17, 39});
  expect_near(of(true).out(0), {5, 11, 25, 17, 39, 61});
}

TEST(Values, ATableChangesWhereItWasRead) {
  const std::vector<ValueType> types = {fixed({}), fixed({}), fixed({4, 2}), batched({3, 2}),
                                        batched({3, 2}, DType::i32)};
  const OpRun t =
      run(std::make_shared<ops::TableUpdate>(ops::Bag{.first = 1}), types,
          {{0.5}, {2}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 10, 2, 20, 4, 40}, {0, 2, 3, 1, 0, 2}});
  expect_near(t.in(2), {1, 2, 3 - 2, 4 - 20, 5 - 5, 6 - 50, 7, 8});
  const OpRun y = run(std::make_shared<ops::EmbeddingBag>(ops::Bag{.count = 2}),
                      {fixed({4, 2}), batched({3, 2}, DType::i32)},
                      {{1, 2, 3, 4, 5, 6, 7, 8}, {0, 2, 3, 3, 1, 0}});
  expect_near(y.out(0), {6, 8, 14, 16, 4, 6});
}

/// Numbers below 0 name no row, so one tensor can hold bags of several lengths.
TEST(Values, BagsMayBeShorterThanTheirColumns) {
  const Values table = {1, 2, 3, 4, 5, 6, 7, 8}, rows = {0, 2, 3, -1, -1, -1};
  const auto pooled = [&](const ops::Bag& bag) {
    return run(std::make_shared<ops::EmbeddingBag>(bag),
               {fixed({4, 2}), batched({3, 2}, DType::i32)}, {table, rows})
        .out(0);
  };
  expect_near(pooled({.count = 2}), {6, 8, 7, 8, 0, 0});
  expect_near(pooled({.count = 2, .mean = true}), {3, 4, 7, 8, 0, 0});
  const OpRun t =
      run(std::make_shared<ops::TableUpdate>(ops::Bag{.count = 2, .mean = true}),
          {fixed({}), fixed({}), fixed({4, 2}), batched({3, 2}), batched({3, 2}, DType::i32)},
          {{1}, {1}, table, {1, 10, 2, 20, 4, 40}, rows});
  expect_near(t.in(2), {0.5, -3, 3, 4, 4.5, 1, 5, -12});
}

/// Adagrad as in torch.optim.Adagrad; by rows, with the mean of a row's squares.
TEST(Values, AdagradOfTables) {
  const auto updated = [](ops::TableRule::Kind kind, const Values& sums) {
    const int64_t kept = kind == ops::TableRule::Kind::adagrad ? 2 : 1;
    return run(std::make_shared<ops::TableUpdate>(ops::Bag{}, ops::TableRule{kind}),
               {fixed({}), fixed({}), fixed({2, 2}), fixed({2, kept}), batched({2, 2}),
                batched({2, 1}, DType::i32)},
               {{0.5}, {2}, {1, 2, 3, 4}, sums, {1, 1, 0.5, 1}, {1, 1}});
  };
  const OpRun each = updated(ops::TableRule::Kind::adagrad, {9, 9, 7, 9});  // g = 3, 4
  expect_near(each.in(3), {9, 9, 16, 25});
  expect_near(each.in(2), {1, 2, 3 - 0.5 * 3 / 4, 4 - 0.5 * 4 / 5});
  const OpRun rows = updated(ops::TableRule::Kind::rowwise_adagrad, {1, 3.5});
  expect_near(rows.in(3), {1, 16});
  expect_near(rows.in(2), {1, 2, 3 - 0.5 * 3 / 4, 4 - 0.5 * 4 / 4});
}

/// Each row belongs to one thread, and its terms have the order of the batch.
TEST(Values, TablesHaveTheSameBitsOnAnyNumberOfThreads) {
  const backend::OpCase made = backend::parse_op_case("table_update f32 n300c4w17 count4 rows40");
  const std::vector<Values> in = backend::random_inputs(made, 1);
  std::vector<Values> tables;
  for (const int threads : {1, 2, 3, 7}) {
    backend::OpRunOptions options;
    options.threads = threads;
    OpRun run(made.problem, backend::CpuBackend(), options);
    for (size_t i = 0; i < in.size(); ++i) run.set_in(i, in[i]);
    run.run();
    tables.push_back(run.in(2));
    EXPECT_EQ(tables.back(), tables.front()) << threads;
  }
}

/// Among equal logits the first is the likeliest, wherever ranks cut the vocabulary.
TEST(Values, OfEqualLogitsTheFirstIsAHit) {
  struct Position {
    Values logits;
    double label, hit;
  };
  const std::vector<Position> positions = {
      {{2, 2, 0, 1}, 0, 1},     {{2, 2, 0, 1}, 1, 0},     {{2, 0, 2, 1}, 0, 1},
      {{2, 0, 2, 1}, 2, 0},     {{0, 1, 3, 3}, 2, 1},     {{0, 1, 3, 3}, 3, 0},
      {{-3, -3, -3, -3}, 0, 1}, {{-3, -3, -3, -3}, 1, 0}, {{-3, -3, -3, -3}, 3, 0},
      {{-4, -4, -3, -3}, 2, 1}, {{5, 1, 1, 1}, 0, 1},     {{5, 1, 1, 1}, -1, 0}};
  const auto t = static_cast<int64_t>(positions.size());
  const auto logits_of = [&](int64_t first, int64_t last) {
    Values x;
    for (int64_t k = first; k < last; ++k)
      for (const Position& position : positions)
        x.push_back(position.logits[static_cast<size_t>(k)]);
    return x;
  };
  Values labels, hits;
  for (const Position& position : positions) {
    labels.push_back(position.label);
    hits.push_back(position.hit);
  }
  const auto run_by = [](const backend::Backend& backend, OpPtr op, std::vector<ValueType> types,
                         const std::vector<Values>& in) {
    backend::OpRunOptions how;
    how.layout = "last";
    OpRun made({std::move(op), std::move(types), {}}, backend, how);
    for (size_t i = 0; i < in.size(); ++i) made.set_in(i, in[i]);
    made.run();
    return made.out(0);
  };
  const ValueType label_type = batched({1, t}, DType::i32);
  const backend::ReferenceBackend reference;
  const backend::CpuBackend cpu;
  for (const backend::Backend* backend : {static_cast<const backend::Backend*>(&reference),
                                          static_cast<const backend::Backend*>(&cpu)}) {
    expect_near(run_by(*backend, std::make_shared<ops::TokenHits>(),
                       {batched({1, 4, t}), label_type}, {logits_of(0, 4), labels}),
                hits);
    for (const std::vector<int64_t>& cuts :
         {std::vector<int64_t>{0, 4}, {0, 2, 4}, {0, 1, 4}, {0, 3, 4}}) {
      const size_t ranks = cuts.size() - 1;
      std::vector<ValueType> types{label_type};
      std::vector<Values> in{labels};
      for (size_t r = 0; r < ranks; ++r) {
        const ops::VocabularySlice slice{
            .first = cuts[r], .count = cuts[r + 1] - cuts[r], .all = 4};
        types.push_back(batched({1, 3, t}));
        in.push_back(run_by(*backend, std::make_shared<ops::TokenRivals>(slice),
                            {batched({1, slice.count, t}), label_type},
                            {logits_of(cuts[r], cuts[r + 1]), labels}));
      }
      SCOPED_TRACE(fmt::format("{} rank(s), the first with {} tokens", ranks, cuts[1]));
      expect_near(
          run_by(*backend, std::make_shared<ops::TokenHitsOfRanks>(4, static_cast<int>(ranks)),
                 types, in),
          hits);
    }
  }
}

TEST(Values, SoftmaxCrossEntropyWithSmoothingAndWeights) {
  const auto loss = [](const ops::SoftmaxCrossEntropyAttributes& a) {
    return run(std::make_shared<ops::SoftmaxCrossEntropy>(a),
               {batched({2, 3}), batched({2}, DType::i32)}, {{1, 2, 3, 0.5, -1, 2}, {1, 2}});
  };
  ops::SoftmaxCrossEntropyAttributes a{
      .label_smoothing = 0.1f, .class_weights = {1, 2, 0.5f}, .scale = 1};
  const OpRun y = loss(a);
  expect_near(y.out(0), {1.240528468});
  expect_near(y.out(1), {2.5});
  a.mean_over = ops::MeanOver::labels;
  const OpRun over_labels = loss(a);
  expect_near(over_labels.out(0), {1.240528468 * 2.5 / 2});
  expect_near(over_labels.out(1), {2});
  expect_near(loss({}).out(0), {0.824458631});
}

TEST(Values, PointwiseLosses) {
  const auto loss = [](ops::PointwiseLossAttributes a) {
    return run(std::make_shared<ops::PointwiseLoss>(a), {batched({2, 2}), batched({2, 2})},
               {{0.5, -2, 3, 0}, {1, 0, 1, 0.25}})
        .out(0)[0];
  };
  EXPECT_NEAR(loss({.kind = ops::PointwiseLossKind::mse, .scale = 2}),
              2 * (0.25 + 4 + 4 + 0.0625) / 4, 1e-6);
  EXPECT_NEAR(loss({.kind = ops::PointwiseLossKind::mae}), (0.5 + 2 + 2 + 0.25) / 4, 1e-6);
  EXPECT_NEAR(loss({.kind = ops::PointwiseLossKind::huber, .delta = 1}),
              (0.125 + 1.5 + 1.5 + 0.03125) / 4, 1e-6);
  EXPECT_NEAR(loss({.kind = ops::PointwiseLossKind::bce_with_logits, .pos_weight = 3}), 0.683660447,
              1e-6);
}

/// Takes the statistics of y, of one channel, with running averages of 1 and 2.
OpRun statistics_of(const Values& y, const Shape& shape, const ops::NormStatistics& statistics) {
  return run(std::make_shared<ops::BatchNormStats>(statistics),
             {batched(shape), fixed({1}), fixed({1})}, {y, {1}, {2}});
}

TEST(Values, BatchNormStatisticsAndRunningAverages) {
  const OpRun y = statistics_of({1, 2, 3, 6}, {2, 1, 2}, {.epsilon = 0});
  expect_near(y.out(0), {3});
  expect_near(y.out(1), {1 / std::sqrt(3.5)});
  expect_near(y.in(1), {1.2});
  expect_near(y.in(2), {0.9 * 2 + 0.1 * 14.0 / 3});
}

TEST(Values, BatchNormByRunningAveragesTakesThemWithThisBatchInThem) {
  const OpRun y = statistics_of({1, 2, 3, 6}, {2, 1, 2}, {.epsilon = 0, .running = true});
  const double spread = 0.9 * 2 + 0.1 * 14.0 / 3;
  expect_near(y.in(1), {1.2});
  expect_near(y.in(2), {spread});
  expect_near(y.out(0), {1.2});
  expect_near(y.out(1), {1 / std::sqrt(spread)});
}

TEST(Values, OneValueOfAChannelHasNoVariance) {
  for (const bool running : {false, true}) {
    const OpRun y = statistics_of({3}, {1, 1, 1}, {.running = running});
    expect_near(y.in(1), {1.2});
    expect_near(y.in(2), {2});
  }
}

TEST(Values, WithoutMomentumNothingReachesTheAverages) {
  const OpRun y = statistics_of({3, INFINITY}, {2, 1, 1}, {.momentum = 0});
  expect_near(y.in(1), {1});
  expect_near(y.in(2), {2});
}

TEST(Values, GradientThroughConstantStatistics) {
  const auto dy = [](std::optional<float> epsilon) {
    return run(std::make_shared<ops::BatchNormGradScale>(epsilon),
               {batched({1, 2, 2}), fixed({2}), fixed({2})}, {{1, 2, 3, -4}, {0.25, 4}, {3, 2}})
        .out(0);
  };
  expect_near(dy(std::nullopt), {0.75, 1.5, 24, -32});
  expect_near(dy(0.0f), {6, 12, 3, -4});
}

/// One parameter with its gradient and states, as operands of an update's ops.
struct Updated {
  std::vector<Values> operands;  ///< w, g, states

  /// Runs an op on them, after the scalars and, if it reads any, the block sums; returns those that
  /// it writes.
  Values apply(const std::shared_ptr<const ops::Update>& op, int step, const Values& sums = {}) {
    std::vector<ValueType> types{fixed({}), fixed({})};
    std::vector<Values> in{{0.1}, {0.5}};
    if (op->sums() == ops::Update::Sums::reads) types.push_back(fixed({1, 2})), in.push_back(sums);
    for (int i = 0; i < op->arity(); ++i)
      types.push_back(fixed({2})), in.push_back(operands[static_cast<size_t>(i)]);
    const OpRun y = run(op, types, in, {.step = step});
    for (int i = 0; i < op->arity(); ++i)
      operands[static_cast<size_t>(i)] = y.in(static_cast<size_t>(op->leading() + i));
    return op->sums() == ops::Update::Sums::writes ? y.out(0) : Values();
  }
};

/// Returns w after some steps with the same gradient.
Values updated(const std::shared_ptr<const ops::Update>& op, int steps,
               const std::shared_ptr<const ops::Update>& norms = nullptr) {
  Updated parameter{{{1, -2}, {0.4, 0.8}, {0, 0}, {0, 0}}};
  for (int step = 0; step < steps; ++step) {
    const Values sums = norms ? parameter.apply(norms, step) : Values();
    parameter.apply(op, step, sums);
  }
  return parameter.operands[0];
}

TEST(Values, UpdatesFollowPyTorch) {
  expect_near(updated(std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{0, 0, false}), 2),
              {1 - 0.04, -2 - 0.08});
  expect_near(updated(std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{0.9, 0.01, false}), 3),
              {0.882290779, -2.212997638});
  expect_near(updated(std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{0.9, 0.01, true}), 3),
              {0.831262924, -2.305333757});
  expect_near(
      updated(std::make_shared<ops::AdamUpdate>(ops::AdamAttributes{.weight_decay = 0.01}), 3),
      {0.700046728, -2.299974483});
  expect_near(updated(std::make_shared<ops::AdamUpdate>(
                          ops::AdamAttributes{.weight_decay = 0.1, .decoupled = true}),
                      3),
              {0.673289015, -2.237607993});
  expect_near(
      updated(std::make_shared<ops::RmspropUpdate>(ops::RmspropAttributes{.weight_decay = 0.1}), 3),
      {0.291765849, -2.691282046});
}

TEST(Values, LarsAndLambFollowTheirPapers) {
  expect_near(updated(std::make_shared<ops::LarsUpdate>(ops::LarsAttributes{0.9, 0.01, 0.02, 1e-9}),
                      3, std::make_shared<ops::ParameterNorms>()),
              {0.988771315, -2.020318573});
  // The first step by hand: m / (1 - beta1) = g, v / (1 - beta2) = g^2, so u = sign(g) + decay * w,
  // up to eps.
  const ops::LambAttributes a{.eps = 1e-9, .weight_decay = 0.1};
  const double ratio = std::sqrt(1.0 + 4.0) / std::sqrt(1.1 * 1.1 + 0.8 * 0.8);
  expect_near(
      updated(std::make_shared<ops::LambUpdate>(a), 1, std::make_shared<ops::LambMoments>(a)),
      {1 - 0.1 * ratio * 1.1, -2 - 0.1 * ratio * 0.8});
  expect_near(
      updated(std::make_shared<ops::LambUpdate>(a), 3, std::make_shared<ops::LambMoments>(a)),
      {0.444191149, -2.404224619});
}

TEST(Values, ClippingFollowsPyTorch) {
  // Two sets of block sums: 9 + 16 and 144 times 0.5^2 make a norm of 6.5.
  const ops::ClipScale::Attributes a{.limit = 2, .parameters = {2, 1}, .order = {2, 0, 1}};
  const auto clip = [&](double limit) {
    ops::ClipScale::Attributes with = a;
    with.limit = limit;
    return run(std::make_shared<ops::ClipScale>(with),
               {fixed({}), fixed({2, 1}), fixed({1, 1}), fixed({3}), fixed({4}), fixed({5})},
               {{0.5}, {9, 16}, {144}, {0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0, 0}});
  };
  expect_near(clip(2).out(0), {0.5 * 2 / (6.5 + 1e-6)});
  expect_near(clip(2).out(1), {6.5});
  EXPECT_EQ(clip(6.6).out(0)[0], 0.5);
}

TEST(Values, MaximumGoesToTheFirstOfEquals) {
  ops::PoolAttributes a;
  a.kernel = {2, 2, 1};
  const OpRun y =
      run(std::make_shared<ops::Pool>(a), {batched({1, 1, 2, 3})}, {{5, 7, 7, 7, 0, 0}});
  expect_near(y.out(0), {7, 7});
  expect_near(y.out(1), {1, 0});
  const OpRun dx =
      run(std::make_shared<ops::PoolGrad>(a, Shape{1, 1, 2, 3}),
          {batched({1, 1, 1, 2}), batched({1, 1, 1, 2}, DType::u8)}, {{10, 1}, y.out(1)});
  expect_near(dx.out(0), {0, 11, 0, 0, 0, 0});
}

TEST(Values, DropoutKeepsTheMeanAndDependsOnEverythingInItsKey) {
  const auto op = std::make_shared<ops::Dropout>(0.25f, 5);
  const Values ones(4000, 1.0);
  const auto mask = [&](OpPtr which, backend::StepInfo step) {
    return run(which, {batched({4, 1000})}, {ones}, step).out(0);
  };
  const backend::StepInfo base{.seed = 1, .step = 2, .replica = 3, .batch = 4};
  const Values first = mask(op, base);
  double sum = 0;
  for (const double v : first) sum += v;
  EXPECT_NEAR(sum / 4000, 1.0, 0.03);
  EXPECT_EQ(first, mask(op, base));
  EXPECT_NE(Values(first.begin(), first.begin() + 1000),
            Values(first.begin() + 1000, first.begin() + 2000));
  EXPECT_NE(first, mask(op, {.seed = 2, .step = 2, .replica = 3, .batch = 4}));
  EXPECT_NE(first, mask(op, {.seed = 1, .step = 3, .replica = 3, .batch = 4}));
  EXPECT_NE(first, mask(op, {.seed = 1, .step = 2, .replica = 4, .batch = 4}));
  EXPECT_NE(first, mask(std::make_shared<ops::Dropout>(0.25f, 6), base));
}

}  // namespace
}  // namespace tutti
