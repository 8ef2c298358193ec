#include "tutti/train/network/optimizer.h"

#include <gtest/gtest.h>

#include <map>

#include "tutti/base/expect_text.h"
#include "tutti/models/registry.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/norm_update.h"

namespace tutti::train {
namespace {

/// A small residual network with projections, differentiated, its parameters in two buckets.
struct Updated {
  models::ModelGraph model =
      models::build_model({.name = "resnet20", .shortcut = models::ModelSpec::Shortcut::B});
  std::vector<std::vector<graph::Value>> buckets{2};
  Updated() {
    const std::vector<graph::Value> order = ops::differentiate(model.graph, model.losses);
    for (size_t i = 0; i < order.size(); ++i) buckets[i < 20 ? 0 : 1].push_back(order[i]);
  }
  std::vector<graph::Node> update(const config::OptimizerSection& optimizer,
                                  const UpdateScope& scope = {}) {
    const size_t before = model.graph.nodes().size();
    const UpdateScalars scalars = add_update(model.graph, buckets, optimizer, scope);
    EXPECT_EQ(model.graph[scalars.learning_rate].name, "lr");
    return {model.graph.nodes().begin() + static_cast<std::ptrdiff_t>(before),
            model.graph.nodes().end()};
  }
  /// Returns the names of the parameters that a node updates.
  std::vector<std::string> names(const graph::Node& node) const {
    std::vector<std::string> names;
    for (const graph::Value v : node.in)
      if (model.graph[v].role == graph::Role::parameter) names.push_back(model.graph[v].name);
    return names;
  }
};

const ops::SgdAttributes& sgd_of(const graph::Node& node) {
  return dynamic_cast<const ops::SgdUpdate&>(*node.op).sgd();
}

}  // namespace

TEST(Optimizer, OneUpdateForEachBucket) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].in.size(), 2 + 3 * 20u);
  EXPECT_EQ(sgd_of(updates[0]).weight_decay, 5e-4);
  EXPECT_TRUE(sgd_of(updates[0]).nesterov);
  const graph::Graph& graph = n.model.graph;
  EXPECT_EQ(graph.with_role(graph::Role::state).size(),
            graph.with_role(graph::Role::parameter).size());
  for (size_t i = 2; i < updates[1].in.size(); i += 3) {
    const graph::Value w = updates[1].in[i], g = updates[1].in[i + 1], buf = updates[1].in[i + 2];
    EXPECT_EQ(graph[g].role, graph::Role::gradient);
    EXPECT_EQ(graph[g].of, w);
    EXPECT_EQ(graph[buf].of, w);
    EXPECT_EQ(graph[buf].name, graph[w].name + ".momentum");
  }
}

TEST(Optimizer, ExclusionsDivideBuckets) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.momentum = 0, .weight_decay = 1e-4, .exclude = {"bias", "norm"}});
  ASSERT_EQ(updates.size(), 4u);
  for (const graph::Node& node : updates) {
    const bool excluded = node.name.ends_with(".no_decay");
    EXPECT_EQ(sgd_of(node).weight_decay, excluded ? 0 : 1e-4);
    for (const std::string& name : n.names(node))
      EXPECT_EQ(n.model.graph.shape(n.model.graph.find(name)).rank() == 1, excluded) << name;
  }
  EXPECT_TRUE(n.model.graph.with_role(graph::Role::state).empty());  // no momentum, no state
}

TEST(Optimizer, LinesOfDecayAndRatesDivideBuckets) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.momentum = 0.9,
                .weight_decay = 1e-4,
                .exclude = {"norm"},
                .decay = {"linear.weight: 0.02", "linear.*: 0"},
                .rates = {"linear.*: 10"}});
  std::map<std::string, std::string> node_of;
  for (const graph::Node& node : updates)
    for (const std::string& name : n.names(node)) node_of[name] = node.name;
  EXPECT_EQ(node_of.size(), n.model.graph.with_role(graph::Role::parameter).size());
  EXPECT_EQ(node_of.at("linear.weight"), "update.0.decay0.02.rate10");
  EXPECT_EQ(node_of.at("linear.bias"), "update.0.decay0.rate10");
  EXPECT_EQ(node_of.at("layer3.2.conv2.weight"), "update.0");
  EXPECT_EQ(node_of.at("layer3.2.bn2.weight"), "update.0.no_decay");
  for (const graph::Node& node : updates)
    if (node.name == "update.0.decay0.02.rate10") {
      EXPECT_EQ(sgd_of(node).weight_decay, 0.02);
      EXPECT_EQ(sgd_of(node).rate, 10);
      EXPECT_EQ(n.names(node), std::vector<std::string>{"linear.weight"});
    }
  // States' names do not depend on groups.
  EXPECT_TRUE(n.model.graph.find("linear.weight.momentum").valid());
}

/// A recipe continues with LoRA, which trains none of the parameters that its lines match.
TEST(Optimizer, ALineOfWhatIsNotTrainedIsLeftOut) {
  models::ModelGraph model =
      models::build_model({.name = "mlp", .input = {1, 2, 2}, .classes = 2, .hidden = {3}});
  const std::vector<graph::Value> trained{model.graph.find("fc2.bias")};
  ASSERT_TRUE(trained.front().valid());
  const std::vector<graph::Value> produced = ops::differentiate(model.graph, model.losses, trained);
  EXPECT_NO_THROW(add_update(model.graph, std::array{produced}, {.decay = {"fc2.weight: 0.1"}}));
}

TEST(Optimizer, ALineThatDecidesNothingIsRefused) {
  const auto failure = [](const config::OptimizerSection& optimizer) -> std::string {
    return message_of<ConfigError>("", [&] { Updated().update(optimizer); });
  };
  EXPECT_EQ(failure({.decay = {"fc.weight: 0.1"}}).find("optimizer.decay: nothing is called "), 0u);
  EXPECT_EQ(failure({.rates = {"fc.weight: 0.1"}}).find("optimizer.rates: nothing is called "), 0u);
  EXPECT_TRUE(has_text(failure({.decay = {"*: 0.1", "linear.weight: 0.2"}}), "decides for no"));
  EXPECT_TRUE(has_text(failure({.exclude = {"bias"}, .decay = {"*.bias: 0.1"}}), "decides for no"));
}

TEST(Optimizer, AveragesTheWeightsAfterEachUpdate) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.momentum = 0.9, .weight_decay = 1e-4, .exclude = {"norm"}, .ema = 0.99});
  ASSERT_EQ(updates.size(), 8u);
  for (size_t i = 0; i < updates.size(); i += 2) {
    EXPECT_EQ(updates[i + 1].name, "average" + updates[i].name.substr(6));
    EXPECT_EQ(dynamic_cast<const ops::WeightAverage&>(*updates[i + 1].op).average().decay, 0.99);
    EXPECT_EQ(n.names(updates[i + 1]), n.names(updates[i]));  // its threads have the same shares
    EXPECT_TRUE(n.model.graph[updates[i + 1].in[4]].name.ends_with(".ema"));
  }
}

TEST(Optimizer, UpdatesTakeTheScaleOfTheClippedGradient) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.momentum = 0, .weight_decay = 1e-4, .exclude = {"norm"}, .clip_norm = 0.5},
               {.sharded = true});
  // Each bucket has squares and their exchange, then one op for all, then two updates and an
  // exchange.
  ASSERT_EQ(updates.size(), 2 * 2 + 1 + 2 * 3u);
  for (const size_t b : {0, 1}) {
    EXPECT_EQ(n.names(updates[2 * b]).size(), n.buckets[b].size());
    EXPECT_EQ(updates[2 * b + 1].in, updates[2 * b].out);
  }
  const graph::Node& clip = updates[4];
  EXPECT_EQ(clip.op->attributes(), "limit 0.5");
  EXPECT_EQ(n.model.graph[clip.in[0]].name, "gradient_scale");
  for (size_t i = 5; i < updates.size(); ++i) {
    if (!dynamic_cast<const ops::Update*>(updates[i].op.get())) continue;
    EXPECT_EQ(updates[i].in[1], clip.out[0]) << updates[i].name;
  }
}

TEST(Optimizer, KnowsBiasesAndNorms) {
  const Updated n;
  const graph::Graph& graph = n.model.graph;
  const auto norm = [&](const char* name) { return is_norm_parameter(graph, graph.find(name)); };
  for (const char* name : {"bn1.weight", "layer1.0.bn2.bias", "layer2.0.shortcut.1.weight",
                           "layer2.0.shortcut.1.bias"})
    EXPECT_TRUE(norm(name)) << name;
  for (const char* name : {"layer2.0.shortcut.0.weight", "linear.weight", "linear.bias"})
    EXPECT_FALSE(norm(name)) << name;
}

TEST(Optimizer, OnlyBiases) {
  Updated n;
  for (const graph::Node& node : n.update({.weight_decay = 1e-4, .exclude = {"bias"}}))
    for (const std::string& name : n.names(node))
      EXPECT_EQ(is_bias(name), node.name.ends_with(".no_decay")) << name;
}

TEST(Optimizer, LarsLeavesExcludedParametersToSgd) {
  Updated n;
  for (const graph::Node& node : n.update({.name = config::OptimizerKind::lars,
                                 .momentum = 0.9,
                                 .exclude = {"norm"},
                                 .trust = 0.02})) {
    if (node.name.ends_with(".no_decay"))
      EXPECT_EQ(sgd_of(node).momentum, 0.9);
    else if (node.op->name() == "lars_update")
      EXPECT_EQ(dynamic_cast<const ops::LarsUpdate&>(*node.op).lars().trust, 0.02);
    else
      EXPECT_FALSE(node.op->name() == "sgd_update") << node.name;
  }
  // Both have the same kind of state, so that they share an arena.
  for (const graph::Value s : n.model.graph.with_role(graph::Role::state))
    EXPECT_TRUE(n.model.graph[s].name.ends_with(".momentum"));
}

TEST(Optimizer, AdamHasTwoStates) {
  Updated n;
  const std::vector<graph::Node> updates =
      n.update({.name = config::OptimizerKind::adamw, .weight_decay = 0.01, .beta2 = 0.95});
  ASSERT_EQ(updates.size(), 2u);
  const auto& adam = dynamic_cast<const ops::AdamUpdate&>(*updates[0].op).adam();
  EXPECT_TRUE(adam.decoupled);
  EXPECT_EQ(adam.beta2, 0.95);
  const graph::Value w = updates[0].in[2];
  EXPECT_EQ(n.model.graph[updates[0].in[4]].name, n.model.graph[w].name + ".m");
  EXPECT_EQ(n.model.graph[updates[0].in[5]].name, n.model.graph[w].name + ".v");
}

TEST(Optimizer, ShardedLambTakesTwoOpsWithTheExchangeOfNormsBetween) {
  Updated n;
  const std::vector<graph::Node> updates = n.update({.name = config::OptimizerKind::lamb,
                                                     .weight_decay = 0.01,
                                                     .exclude = {"bias", "norm"},
                                                     .eps = 1e-6},
                                                    {.sharded = true});
  ASSERT_EQ(updates.size(), 2 * 5u);
  const graph::Graph& graph = n.model.graph;
  for (size_t i = 0; i < updates.size(); i += 5) {
    const graph::Node &moments = updates[i], &exchange = updates[i + 1], &update = updates[i + 2],
                      &excluded = updates[i + 3], &gather = updates[i + 4];
    EXPECT_EQ(dynamic_cast<const ops::AllGatherWeights&>(*gather.op).bucket(),
              static_cast<int>(i / 5));
    EXPECT_EQ(gather.in, n.buckets[i / 5]);
    EXPECT_EQ(dynamic_cast<const ops::LambMoments&>(*moments.op).lamb().weight_decay, 0.01);
    EXPECT_EQ(dynamic_cast<const ops::AllReduceNorms&>(*exchange.op).bucket(),
              static_cast<int>(i / 5));
    EXPECT_EQ(exchange.in, moments.out);
    EXPECT_EQ(dynamic_cast<const ops::LambUpdate&>(*update.op).lamb().eps, 1e-6);
    EXPECT_EQ(update.in[2], moments.out[0]);
    EXPECT_EQ(n.names(moments), n.names(update));
    EXPECT_EQ(dynamic_cast<const ops::AdamUpdate&>(*excluded.op).adam().weight_decay, 0);
    EXPECT_EQ(dynamic_cast<const ops::AdamUpdate&>(*excluded.op).adam().eps, 1e-6);
    for (const std::string& name : n.names(excluded))
      EXPECT_EQ(graph.shape(graph.find(name)).rank(), 1) << name;
  }
  for (const graph::Value s : graph.with_role(graph::Role::state))
    EXPECT_TRUE(graph[s].name.ends_with(".m") || graph[s].name.ends_with(".v"));
  EXPECT_EQ(graph.with_role(graph::Role::state).size(),
            2 * graph.with_role(graph::Role::parameter).size());
}

TEST(Optimizer, WhereEveryRankUpdatesEverythingNothingIsExchanged) {
  Updated n;
  for (const graph::Node& node : n.update({.name = config::OptimizerKind::lamb, .eps = 1e-6}))
    EXPECT_TRUE(dynamic_cast<const ops::Update*>(node.op.get())) << node.name;
}

}  // namespace tutti::train
