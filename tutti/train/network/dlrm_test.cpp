// Tests the recommendation model's step: against a reference in double precision written as loops,
// and on several ranks, which share its tables.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {
namespace {

constexpr int64_t kTinyNumbers = 3, kTinyWidth = 4, kTinyHidden = 6, kTinyBatch = 5;
constexpr int kTinyReplicas = 4, kTinySteps = 3;
constexpr float kTinyRate = 0.5f;
const std::vector<int64_t> kTinyRows = {9, 300, 4, 17};

models::ModelSpec tiny_dlrm() {
  const auto tables = std::ssize(kTinyRows);
  return {.name = "dlrm",
          .input = {kTinyNumbers},
          .input_field = "dense",
          .inputs = {{.name = "dense", .sample = {kTinyNumbers}},
                     {.name = "rows", .sample = {tables}, .rows = kTinyRows}},
          .batch = kTinyBatch,
          .width = kTinyWidth,
          .hidden = {kTinyHidden}};
}

/// One micro-batch, by field.
struct ClickBatch {
  std::vector<float> dense, label, weights;
  std::vector<int32_t> rows;
};

/// The tables of tiny_dlrm() with bags of up to so many rows, each row with a weight.
const std::vector<int64_t> kTinyBags = {3, 1, 2, 2};

models::ModelSpec dlrm_of_bags() {
  models::ModelSpec spec = tiny_dlrm();
  std::vector<int64_t> rows;
  for (size_t t = 0; t < kTinyRows.size(); ++t)
    rows.insert(rows.end(), static_cast<size_t>(kTinyBags[t]), kTinyRows[t]);
  const Shape places{std::ssize(rows)};
  spec.inputs[1] = {.name = "rows", .sample = places, .rows = rows, .bags = kTinyBags};
  spec.inputs.push_back({.name = "weights", .sample = places});
  spec.pooling = models::Pooling::mean;
  return spec;
}

/// Gives the batch bags, from empty up to the longest.
void make_bags(ClickBatch& batch, uint64_t stream) {
  Rng rng(8, Purpose::test, stream);
  std::vector<int32_t> rows;
  for (size_t i = 0; i < batch.rows.size(); ++i)
    for (int64_t place = 0; place < kTinyBags[i % kTinyRows.size()]; ++place) {
      rows.push_back(rng.below(4) == 0 ? -1 : (batch.rows[i] + static_cast<int32_t>(place)) % 4);
      batch.weights.push_back(rng.uniform() + 0.5f);
    }
  batch.rows = rows;
}

ClickBatch click_batch(int step, int micro) {
  Rng rng(7, Purpose::test, static_cast<uint64_t>(step * 100 + micro));
  ClickBatch batch;
  for (int64_t n = 0; n < kTinyBatch; ++n) {
    for (int64_t i = 0; i < kTinyNumbers; ++i) batch.dense.push_back(rng.normal());
    // Low rows occur often, so that samples on several ranks share them.
    for (const int64_t rows : kTinyRows)
      batch.rows.push_back(static_cast<int32_t>(rng.below(static_cast<uint32_t>(rows)) / (n + 1)));
    batch.label.push_back(rng.uniform() < 0.4f ? 1.0f : 0.0f);
  }
  return batch;
}

using NamedValues = std::map<std::string, std::vector<double>>;

/// The results of a run.
struct Trained {
  std::vector<double> losses;  ///< by step and micro-batch
  NamedValues first, last;     ///< parameters and tables
  bool cuts = false;           ///< whether the batch is cut into tiles
};

void collect(const Weights& weights, NamedValues& values) {
  for (const keep::NamedTensor& tensor :
       keep::materialise(weights.model_tensors(weights.parameters(), weights.statistics(0)))) {
    const auto* x = reinterpret_cast<const float*>(tensor.bytes.data());
    values[tensor.name].assign(x, x + tensor.desc.elements());
  }
  for (const plan::TableVariable& table : weights.variables().tables) {
    const plan::Variable& v = table.variable;
    std::vector<double>& all = values[v.name];
    const int64_t width = v.desc.shape[1];
    all.resize(static_cast<size_t>(table.rows.all * width));
    const auto* x = reinterpret_cast<const float*>(weights.tables() + v.offset);
    std::copy_n(x, v.desc.elements(), all.begin() + table.rows.first * width);
  }
}

struct DlrmRun {
  int ranks = 1, threads = 1, accumulate = 1;
  ops::TableRule::Kind rule = ops::TableRule::Kind::sgd;
  std::vector<std::string> freeze{};
  bool bags = false, tiles = false;
};

Trained trained_dlrm(const DlrmRun& run) {
  Trained trained;
  trained.losses.resize(static_cast<size_t>(kTinySteps * kTinyReplicas));
  std::mutex mutex;
  comm::run_ranks(run.ranks, [&](comm::Communicator& communicator) {
    TrainingStepSpec spec{
        .map = exchange::ReplicaMap(kTinyReplicas / run.accumulate, run.ranks, communicator.rank()),
        .grid = split::PartGrid({}, 1, run.ranks, communicator.rank()),
        .accumulate = run.accumulate,
        .seed = 3};
    spec.network.training.model = run.bags ? dlrm_of_bags() : tiny_dlrm();
    if (run.tiles) spec.network.training.split.tile_bytes = 800;
    spec.network.training.optimizer.tables = run.rule;
    spec.network.training.freeze = run.freeze;
    spec.network.training.split.threads = run.threads;
    spec.network.plan.measure = false;
    const backend::CpuBackend backend;
    TrainingStep step(spec, backend, communicator);
    {
      const std::scoped_lock lock(mutex);
      collect(step.weights(), trained.first);
      for (const plan::PlanBand& band : step.network().training.bands)
        trained.cuts = trained.cuts || (!band.whole && band.tile < band.samples);
    }
    step.start();
    for (int s = 0; s < kTinySteps; ++s) {
      step.begin(s, kTinyRate);
      for (int local = 0; local < step.summed().local_count(); ++local) {
        const int micro = step.summed().replica(local);
        ClickBatch batch = click_batch(s, micro);
        if (run.bags) make_bags(batch, static_cast<uint64_t>(s * 100 + micro));
        std::vector<void*> tensors;
        for (const models::GraphInput& input : step.network().inputs)
          tensors.push_back(input.field == "dense"     ? static_cast<void*>(batch.dense.data())
                            : input.field == "rows"    ? static_cast<void*>(batch.rows.data())
                            : input.field == "weights" ? static_cast<void*>(batch.weights.data())
                                                       : static_cast<void*>(batch.label.data()));
        trained.losses[static_cast<size_t>(s * kTinyReplicas + micro)] =
            static_cast<double>(step.run(local, tensors));
      }
      step.update();
    }
    step.settle();
    const std::scoped_lock lock(mutex);
    collect(step.weights(), trained.last);
  });
  return trained;
}

using Vector = std::vector<double>;

/// y = W x + b, with or without a ReLU; and its backward pass.
struct DenseLayer {
  const Vector *w, *b;
  Vector *dw, *db;
  bool relu;
  Vector x{}, y{};

  const Vector& forward(const Vector& input) {
    x = input;
    y = *b;
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += (*w)[o * x.size() + i] * x[i];
      if (relu && y[o] < 0) y[o] = 0;
    }
    return y;
  }
  Vector backward(const Vector& dy) {
    Vector dx(x.size());
    for (size_t o = 0; o < y.size(); ++o) {
      const double d = relu && y[o] <= 0 ? 0 : dy[o];
      (*db)[o] += d;
      for (size_t i = 0; i < x.size(); ++i) {
        (*dw)[o * x.size() + i] += d * x[i];
        dx[i] += d * (*w)[o * x.size() + i];
      }
    }
    return dx;
  }
};

/// Adds the gradients of a batch's mean loss to `gradients`; returns the loss.
double reference_batch(const ClickBatch& batch, const NamedValues& values, NamedValues& gradients) {
  const auto layer = [&](const std::string& name, bool relu) {
    return DenseLayer{&values.at(name + ".weight"), &values.at(name + ".bias"),
                      &gradients[name + ".weight"], &gradients[name + ".bias"], relu};
  };
  const size_t features = kTinyRows.size() + 1;
  double loss = 0;
  for (size_t n = 0; n < kTinyBatch; ++n) {
    DenseLayer bottom[] = {layer("bot_l.0", true), layer("bot_l.2", true)};
    DenseLayer top[] = {layer("top_l.0", true), layer("top_l.2", false)};
    const Vector dense(batch.dense.begin() + static_cast<int64_t>(n) * kTinyNumbers,
                       batch.dense.begin() + static_cast<int64_t>(n + 1) * kTinyNumbers);
    std::vector<Vector> f = {bottom[1].forward(bottom[0].forward(dense))};
    const auto row_of = [&](size_t t) {
      return static_cast<size_t>(batch.rows[n * kTinyRows.size() + t]) * kTinyWidth;
    };
    for (size_t t = 0; t < kTinyRows.size(); ++t) {
      const Vector& table = values.at("emb_l." + std::to_string(t) + ".weight");
      f.emplace_back(table.begin() + static_cast<int64_t>(row_of(t)),
                     table.begin() + static_cast<int64_t>(row_of(t)) + kTinyWidth);
    }
    Vector z = f[0];
    for (size_t i = 1; i < features; ++i)
      for (size_t j = 0; j < i; ++j) {
        double product = 0;
        for (size_t k = 0; k < kTinyWidth; ++k) product += f[i][k] * f[j][k];
        z.push_back(product);
      }
    const double logit = top[1].forward(top[0].forward(z))[0];
    const double label = static_cast<double>(batch.label[n]);
    loss += (std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - label * logit) /
            kTinyBatch;
    const Vector dz =
        top[0].backward(top[1].backward({(1 / (1 + std::exp(-logit)) - label) / kTinyBatch}));
    std::vector<Vector> df(features, Vector(kTinyWidth));
    for (size_t k = 0; k < kTinyWidth; ++k) df[0][k] = dz[k];
    size_t at = kTinyWidth;
    for (size_t i = 1; i < features; ++i)
      for (size_t j = 0; j < i; ++j, ++at)
        for (size_t k = 0; k < kTinyWidth; ++k) {
          df[i][k] += dz[at] * f[j][k];
          df[j][k] += dz[at] * f[i][k];
        }
    bottom[0].backward(bottom[1].backward(df[0]));
    for (size_t t = 0; t < kTinyRows.size(); ++t)
      for (size_t k = 0; k < kTinyWidth; ++k)
        gradients["emb_l." + std::to_string(t) + ".weight"][row_of(t) + k] += df[t + 1][k];
  }
  return loss;
}

Trained reference(const NamedValues& first, ops::TableRule::Kind rule) {
  Trained trained;
  NamedValues sums;  // sums of squares
  for (const auto& [name, x] : first) {
    if (name.ends_with(".sum")) continue;
    trained.last[name] = x;
    sums[name].resize(x.size());
  }
  for (int s = 0; s < kTinySteps; ++s) {
    NamedValues gradients;
    for (const auto& [name, x] : trained.last) gradients[name].resize(x.size());
    for (int micro = 0; micro < kTinyReplicas; ++micro)
      trained.losses.push_back(reference_batch(click_batch(s, micro), trained.last, gradients));
    for (auto& [name, x] : trained.last) {
      const bool adapts = name.starts_with("emb_l") && rule != ops::TableRule::Kind::sgd;
      for (size_t i = 0; i < x.size(); ++i) {
        const double g = gradients[name][i] / kTinyReplicas;
        double& sum = sums[name][i];
        if (adapts && rule == ops::TableRule::Kind::rowwise_adagrad) {
          if (i % kTinyWidth == 0) {
            double squares = 0;
            for (size_t k = 0; k < kTinyWidth; ++k)
              squares += std::pow(gradients[name][i + k] / kTinyReplicas, 2) / kTinyWidth;
            for (size_t k = 0; k < kTinyWidth; ++k) sums[name][i + k] += squares;
          }
        } else {
          sum += g * g;
        }
        if (g != 0)
          x[i] -= static_cast<double>(kTinyRate) * (adapts ? g / (std::sqrt(sum) + 1e-10) : g);
      }
    }
  }
  for (size_t t = 0; t < kTinyRows.size() && rule != ops::TableRule::Kind::sgd; ++t) {
    const std::string name = "emb_l." + std::to_string(t) + ".weight";
    const size_t step = rule == ops::TableRule::Kind::adagrad ? 1 : kTinyWidth;
    for (size_t i = 0; i < sums[name].size(); i += step)
      trained.last[name + ".sum"].push_back(sums[name][i]);
  }
  return trained;
}

void expect_near(const Trained& found, const Trained& expected, double tolerance) {
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance) << "micro-batch " << i;
  for (const auto& [name, x] : expected.last) {
    ASSERT_EQ(found.last.at(name).size(), x.size()) << name;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(found.last.at(name)[i], x[i], tolerance) << name << " " << i;
  }
}

TEST(Dlrm, TrainsAsTheReferenceInDoublePrecision) {
  const Trained found = trained_dlrm({});
  expect_near(found, reference(found.first, ops::TableRule::Kind::sgd), 2e-6);
  int64_t changed = 0;
  for (size_t i = 0; i < found.last.at("emb_l.1.weight").size(); ++i)
    changed += found.last.at("emb_l.1.weight")[i] != found.first.at("emb_l.1.weight")[i];
  EXPECT_GT(changed, 0);
  EXPECT_LT(changed, 300 * kTinyWidth / 2) << "rows that no sample has named stay";
}

TEST(Dlrm, TablesLearnByAdagrad) {
  for (const auto rule : {ops::TableRule::Kind::adagrad, ops::TableRule::Kind::rowwise_adagrad}) {
    const Trained found = trained_dlrm({.rule = rule});
    expect_near(found, reference(found.first, rule), 2e-5);  // division by small roots
    const Trained shared = trained_dlrm({.ranks = 2, .rule = rule});
    EXPECT_EQ(shared.losses, found.losses);
    EXPECT_EQ(shared.last, found.last);
  }
}

/// Bands whose batches are cut into tiles, on one rank and on several.
TEST(Dlrm, TilesHaveTheSameBits) {
  const Trained alone = trained_dlrm({.tiles = true}),
                shared = trained_dlrm({.ranks = 2, .tiles = true});
  EXPECT_TRUE(alone.cuts && shared.cuts && !trained_dlrm({}).cuts);
  EXPECT_EQ(shared.losses, alone.losses);
}

TEST(Dlrm, TheSameBitsOnAnyNumberOfRanks) {
  const Trained alone = trained_dlrm({});
  for (const DlrmRun& run : {DlrmRun{.ranks = 2}, DlrmRun{.ranks = 4}, DlrmRun{.accumulate = 2},
                             DlrmRun{.ranks = 2, .accumulate = 2}}) {
    const Trained several = trained_dlrm(run);
    EXPECT_EQ(several.first, alone.first) << run.ranks << " ranks";
    EXPECT_EQ(several.losses, alone.losses) << run.ranks << " ranks";
    EXPECT_EQ(several.last, alone.last) << run.ranks << " ranks";
  }
}

/// Returns the plan's first band, at or after `from`, that has a step of this layer.
int band_of_layer(const plan::Plan& plan, const std::string& layer, int from) {
  for (int b = from; b < static_cast<int>(plan.bands.size()); ++b)
    for (const plan::Step& step : plan.bands[static_cast<size_t>(b)].steps)
      if (step.name.starts_with(layer)) return b;
  return -1;
}

/// Exchanges overlap: vectors with the MLP, their gradients with its backward pass.
TEST(Dlrm, ExchangesAreUnderWayWhileTheBottomMlpIsComputed) {
  const plan::Plan plan =
      plan::compile(make_training_graph({.model = tiny_dlrm(), .split = {.tables = {2, 0}}}).graph,
                    backend::CpuBackend(), {.layout = "plain", .measure = false});
  const auto exchange = [&](const std::string& name) {
    for (size_t e = 0; e < plan.exchanges.size(); ++e)
      if (plan.graph.nodes()[static_cast<size_t>(plan.exchanges[e].node)].name == name)
        return static_cast<int>(e);
    return -1;
  };
  const auto band_with = [&](int number, std::vector<int> plan::PlanBand::*list) {
    for (size_t b = 0; b < plan.bands.size(); ++b)
      if (std::ranges::count(plan.bands[b].*list, number) > 0) return static_cast<int>(b);
    return static_cast<int>(plan.bands.size());
  };
  const int vectors = exchange("tables.vectors"), gradients = exchange("tables.vectors.dx");
  const int begun = band_with(vectors, &plan::PlanBand::starts),
            over = band_with(vectors, &plan::PlanBand::waits);
  const int bottom = band_of_layer(plan, "bot_l", 0);
  EXPECT_LT(begun, bottom);
  EXPECT_LT(bottom, over) << "waited for behind it";
  const int back = band_with(gradients, &plan::PlanBand::starts);
  EXPECT_GE(back, over);
  EXPECT_GT(band_of_layer(plan, "bot_l", back + 1), back);
  EXPECT_EQ(band_with(gradients, &plan::PlanBand::waits), static_cast<int>(plan.bands.size()));
  EXPECT_EQ(std::ranges::count(plan.waits_at_end, gradients), 1);
}

/// The table that two ranks share by rows has bags of one row, so no sum is split.
TEST(Dlrm, BagsOfSeveralRanks) {
  for (const auto rule : {ops::TableRule::Kind::sgd, ops::TableRule::Kind::adagrad}) {
    const Trained alone = trained_dlrm({.rule = rule, .bags = true});
    const Trained shared = trained_dlrm({.ranks = 2, .rule = rule, .bags = true});
    EXPECT_NE(alone.last, alone.first);
    EXPECT_EQ(shared.losses, alone.losses);
    EXPECT_EQ(shared.last, alone.last);
  }
}

TEST(Dlrm, FrozenTablesOfOneRank) {
  const std::vector<std::string> freeze = {"emb_l.1.*", "emb_l.2.*"};
  const Trained alone = trained_dlrm({.freeze = freeze}),
                shared = trained_dlrm({.ranks = 4, .freeze = freeze});
  EXPECT_EQ(alone.last.at("emb_l.1.weight"), alone.first.at("emb_l.1.weight"));
  EXPECT_NE(alone.last.at("emb_l.0.weight"), alone.first.at("emb_l.0.weight"));
  EXPECT_EQ(shared.last, alone.last);
}

}  // namespace
}  // namespace tutti::train
