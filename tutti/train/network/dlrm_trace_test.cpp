// The run published with facebookresearch/dlrm (README.md, "a tiny model in debug mode"): three
// steps of a model with bags of one to three rows. Its numbers have five decimals.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/models/network/dlrm.h"
#include "tutti/ops/exchange.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/network/optimizer.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {
namespace {

struct TraceTensor {
  const char* name;
  std::vector<float> first, last;
};

const std::vector<TraceTensor> kTrace = {
    {"emb_l.0.weight",
     {0.05438f, -0.11105f, 0.42513f, 0.34167f, -0.1426f, -0.45641f, -0.19523f, -0.10181f},
     {0.0543f, -0.1112f, 0.42513f, 0.34167f, -0.14283f, -0.45679f, -0.19532f, -0.10197f}},
    {"emb_l.1.weight",
     {0.23667f, 0.57199f, -0.16638f, 0.30316f, 0.10759f, 0.22136f},
     {0.23667f, 0.57199f, -0.1666f, 0.30285f, 0.10751f, 0.22124f}},
    {"emb_l.2.weight",
     {-0.49338f, -0.14301f, -0.36649f, -0.22139f},
     {-0.49338f, -0.14301f, -0.36664f, -0.22164f}},
    {"bot_l.0.weight",
     {0.51313f, 0.66662f, 0.10591f, 0.13089f, 0.32198f, 0.66156f, 0.84651f, 0.55326f, 0.85445f,
      0.38484f, 0.31679f, 0.35426f},
     {0.51313f, 0.66663f, 0.10591f, 0.1309f, 0.32196f, 0.66154f, 0.84649f, 0.55324f, 0.85444f,
      0.38482f, 0.31677f, 0.35425f}},
    {"bot_l.0.bias", {0.17108f, 0.82911f, 0.33867f}, {0.17109f, 0.82907f, 0.33863f}},
    {"bot_l.2.weight",
     {0.55237f, 0.57855f, 0.52153f, 0.00269f, 0.98835f, 0.90534f},
     {0.55238f, 0.57857f, 0.52154f, 0.00265f, 0.98825f, 0.90528f}},
    {"bot_l.2.bias", {0.20764f, 0.29249f}, {0.20764f, 0.29244f}},
    {"top_l.0.weight",
     {0.52001f, 0.90191f, 0.98363f, 0.25754f, 0.56436f, 0.80697f, 0.39437f, 0.73107f,
      0.16107f, 0.6007f,  0.86586f, 0.98352f, 0.07937f, 0.42835f, 0.20454f, 0.45064f,
      0.54776f, 0.09333f, 0.29686f, 0.92758f, 0.569f,   0.45741f, 0.75353f, 0.74186f,
      0.04858f, 0.7087f,  0.83924f, 0.16594f, 0.781f,   0.28654f, 0.30647f, 0.66526f},
     {0.51996f, 0.90184f, 0.98368f, 0.25752f, 0.56436f, 0.807f,   0.39437f, 0.73107f,
      0.16096f, 0.60055f, 0.86596f, 0.98348f, 0.07938f, 0.42842f, 0.20453f, 0.45064f,
      0.5476f,  0.0931f,  0.29701f, 0.92752f, 0.56902f, 0.45752f, 0.75351f, 0.74187f,
      0.04849f, 0.70857f, 0.83933f, 0.1659f,  0.78101f, 0.2866f,  0.30646f, 0.66526f}},
    {"top_l.0.bias",
     {0.11139f, 0.66487f, 0.88786f, 0.69631f},
     {0.11137f, 0.66482f, 0.88778f, 0.69627f}},
    {"top_l.2.weight",
     {0.44033f, 0.43821f, 0.7651f, 0.56564f, 0.0849f, 0.58267f, 0.81484f, 0.33707f},
     {0.44029f, 0.43816f, 0.76502f, 0.56561f, 0.08485f, 0.5826f, 0.81474f, 0.33702f}},
    {"top_l.2.bias", {0.92758f, 0.75072f}, {0.92754f, 0.75067f}},
    {"top_l.4.weight", {0.57406f, 0.75164f}, {0.57379f, 0.7514f}},
    {"top_l.4.bias", {0.07915f}, {0.07908f}}};

struct TraceStep {
  std::array<float, 8> dense;
  std::array<int32_t, 12> rows;  ///< per sample: three places, two, one; -1: none
  std::array<float, 2> target;
  float loss;
};

const std::vector<TraceStep> kTraceSteps = {
    {{0.69647f, 0.28614f, 0.22685f, 0.55131f, 0.71947f, 0.42311f, 0.98076f, 0.68483f},
     {1, -1, -1, 0, -1, 1, 0, 1, -1, 1, -1, 0},
     {0.55679f, 0.15896f},
     0.451893f},
    {{0.36179f, 0.22826f, 0.29371f, 0.63098f, 0.0921f, 0.4337f, 0.43086f, 0.49369f},
     {1, -1, -1, 1, -1, 1, 0, 2, 3, 1, 2, 1},
     {0.15307f, 0.69553f},
     0.402002f},
    {{0.60306f, 0.54507f, 0.34276f, 0.30412f, 0.41702f, 0.6813f, 0.87546f, 0.51042f},
     {2, -1, -1, 1, -1, 1, 0, 1, 2, 2, -1, 1},
     {0.31877f, 0.69197f},
     0.275460f}};

struct TraceGraph {
  graph::Graph graph;
  graph::Value dense, rows, target, loss;
  UpdateScalars scalars;
};

/// Builds the trace's model: a sigmoid after the last layer, the mean of squared errors.
TraceGraph trace_graph() {
  TraceGraph made;
  graph::Graph& graph = made.graph;
  made.dense = graph.input("dense", {DType::f32, {2, 4}, {}});
  made.rows = graph.input("rows", {DType::i32, {2, 6}, {}});
  made.target = graph.input("target", {DType::f32, {2, 1}, {}});
  const graph::Value logit = models::dlrm_logit(
      graph, made.dense, made.rows, {},
      {.width = 2, .bottom = {3}, .top = {4, 2}, .rows = {4, 3, 2}, .bags = {3, 2, 1}});
  made.loss = ops::pointwise_loss(
      graph, "loss", ops::activation(graph, "click", logit, ops::ActivationKind::sigmoid),
      made.target, {.kind = ops::PointwiseLossKind::mse});
  graph.mark_output(made.loss);
  std::vector<graph::Value> all = graph.with_role(graph::Role::parameter);
  for (const graph::Value t : graph.with_role(graph::Role::table)) all.push_back(t);
  std::vector<graph::RowGradient> tables;
  const std::vector<graph::Value> produced =
      ops::differentiate(graph, std::array{made.loss}, all, &tables);
  graph.append("bucket 0", std::make_shared<ops::AllReduceGradients>(0),
               graph.with_role(graph::Role::gradient));
  made.scalars =
      add_update(graph, std::vector<std::vector<graph::Value>>{produced}, {.momentum = 0});
  for (const graph::RowGradient& one : tables)
    graph.append("update " + graph[one.table].name,
                 std::make_shared<ops::TableUpdate>(
                     dynamic_cast<const ops::EmbeddingBag&>(*one.lookup).bag()),
                 std::array{made.scalars.learning_rate, made.scalars.gradient_scale, one.table,
                            one.dy, one.rows});
  return made;
}

std::vector<float> value_of(const Weights& weights, const char* name) {
  if (const plan::TableVariable* table = weights.variables().find_table(name)) {
    std::vector<float> x(static_cast<size_t>(table->variable.desc.elements()));
    std::memcpy(x.data(), weights.tables() + table->variable.offset, x.size() * sizeof(float));
    return x;
  }
  const plan::Variable& variable = *weights.variables().find_parameter(name);
  std::vector<float> x(static_cast<size_t>(variable.desc.elements()));
  plan::export_plain(variable, weights.parameters(), x.data());
  return x;
}

void set_first(Weights& weights) {
  for (const TraceTensor& tensor : kTrace)
    if (const plan::TableVariable* table = weights.variables().find_table(tensor.name))
      std::memcpy(weights.tables() + table->variable.offset, tensor.first.data(),
                  tensor.first.size() * sizeof(float));
    else
      plan::import_plain(*weights.variables().find_parameter(tensor.name), tensor.first.data(),
                         weights.parameters());
}

TEST(DlrmTrace, IsThePublishedOne) {
  const TraceGraph made = trace_graph();
  const backend::CpuBackend backend;
  const plan::Plan plan = plan::compile(made.graph, backend, {.layout = "plain", .measure = false});
  Weights weights(plan.variables, 1);
  ASSERT_EQ(plan.variables.parameters.size() + plan.variables.tables.size(), kTrace.size());
  set_first(weights);
  device::Buffer gradients(plan.variables.trained_bytes);
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  plan::ReplicaState replica = weights.replica(0);
  replica.gradients = gradients.data();
  executor->bind(replica);
  executor->set_scalar(made.scalars.gradient_scale, 1);
  executor->set_scalar(made.scalars.learning_rate, 0.01f);
  executor->pack();
  for (const TraceStep& step : kTraceSteps) {
    executor->bind_input(made.dense, step.dense.data());
    executor->bind_input(made.rows, step.rows.data());
    executor->bind_input(made.target, step.target.data());
    executor->run({});
    EXPECT_NEAR(*static_cast<const float*>(executor->result(made.loss)), step.loss, 1e-5f);
    executor->update({});
    executor->settle();
  }
  for (const TraceTensor& tensor : kTrace) {
    const std::vector<float> x = value_of(weights, tensor.name);
    ASSERT_EQ(x.size(), tensor.last.size()) << tensor.name;
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x[i], tensor.last[i], 1.2e-5f) << tensor.name << " " << i;
  }
}

}  // namespace
}  // namespace tutti::train
