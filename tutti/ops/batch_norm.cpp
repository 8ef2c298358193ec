#include "tutti/ops/batch_norm.h"

#include "tutti/ops/parts.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_channels(std::string_view op, Types in, size_t first, size_t last, int64_t channels) {
  for (size_t i = first; i <= last; ++i)
    require(in[i].desc.shape == Shape{channels} && in[i].desc.dtype == DType::f32 && !in[i].batched,
            "{}: input {} is {}, one f32 number for each of {} channels is needed", op, i,
            in[i].desc, channels);
}

std::string relu_residual(bool relu, bool residual) {
  return fmt::format("{}{}{}", relu ? "relu" : "", relu && residual ? " " : "",
                     residual ? "residual" : "");
}

/// Returns the op that made a batch norm's mean; null for a value that the caller binds.
OpPtr maker_of(const Graph& graph, Value mean) {
  const int producer = graph[mean].producer;
  return producer < 0 ? nullptr : graph.nodes()[static_cast<size_t>(producer)].op;
}

bool by_running_averages(const Op* maker) {
  if (const auto* stats = dynamic_cast<const BatchNormStats*>(maker))
    return stats->statistics().running;
  const auto* merge = dynamic_cast<const MergeMoments*>(maker);
  return merge != nullptr && merge->statistics().running;
}

/// dgamma and dbeta as the gradient through the batch's statistics needs them: summed over all
/// ranks of the group, times this rank's share. Divided by M, this rank's number of values, they
/// are (sum over all) / (all values).
std::pair<Value, Value> sums_of_all(Graph& graph, const std::string& name, const Op* maker,
                                    Value dgamma, Value dbeta) {
  const auto* merge = dynamic_cast<const MergeMoments*>(maker);
  if (merge == nullptr) return {dgamma, dbeta};
  const NormGroup& group = merge->group();
  std::vector<Value> dgammas, dbetas;
  for (const auto& each :
       exchange_in_group(graph, name + ".dparts", group, group.tag + 1, {dgamma, dbeta})) {
    dgammas.push_back(each[0]);
    dbetas.push_back(each[1]);
  }
  const auto sum = [&](const char* of, const std::vector<Value>& each) {
    const auto share = static_cast<float>(group.share());
    return graph.append1(name + of, std::make_shared<SumParts>(share), each);
  };
  return {sum(".dgamma", dgammas), sum(".dbeta", dbetas)};
}

struct NormInputs {
  bool relu, residual;
  std::optional<float> epsilon;  ///< set where input 2 is the variance, not inv_std
};

/// Appends the reduction, which gives (g, dgamma, dbeta), and sets in `din` the gradients of the
/// inputs after the statistics.
std::vector<Value> reduce_gradient(const GradArgs& args, const NormInputs& norm,
                                   std::vector<Value>& din) {
  const Node& node = args.node;
  std::vector<Value> in{args.dout[0], node.in[0], node.in[1], node.in[2]};
  if (norm.relu) in.push_back(node.out[0]);
  const std::vector<Value> reduced = args.append(
      ".dreduce", std::make_shared<BatchNormGradReduce>(norm.relu, false, norm.epsilon), in);
  din.resize(node.in.size());
  din[3] = reduced[1];
  din[4] = reduced[2];
  if (norm.residual) din[5] = reduced[0];
  return reduced;
}

/// Returns dy where the statistics are constants.
Value through_constants(const GradArgs& args, Value g, std::optional<float> epsilon) {
  const Node& node = args.node;
  return args.append1(".dy", std::make_shared<BatchNormGradScale>(epsilon),
                      {g, node.in[2], node.in[3]});
}

std::string of_variance(std::optional<float> epsilon) {
  return epsilon ? fmt::format("epsilon {}", *epsilon) : "";
}

/// Shared by training and evaluation: (y, a [C], b [C], gamma, beta, [residual]) -> like y.
std::vector<ValueType> infer_apply(const Op& op, Types in, bool residual) {
  require_inputs(op.name(), in, residual ? 6 : 5);
  require_batched(op.name(), in[0], 2);
  require_channels(op.name(), in, 1, 4, in[0].desc.shape[1]);
  if (residual) {
    require_same_shape(op.name(), in[0], in[5]);
    require(in[0].desc.dtype == in[5].desc.dtype, "{}: the residual is {}, y is {}", op.name(),
            name_of(in[5].desc.dtype), name_of(in[0].desc.dtype));
  }
  return {in[0]};
}

}  // namespace

std::string NormStatistics::to_string() const {
  return fmt::format("epsilon {} momentum {}{}", epsilon, momentum, running ? " running" : "");
}

std::vector<ValueType> BatchNormStats::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_batched(name(), in[0], 2);
  const int64_t channels = in[0].desc.shape[1];
  require_channels(name(), in, 1, 2, channels);
  return {unbatched_f32(Shape{channels}), unbatched_f32(Shape{channels})};
}

std::string BatchNormApply::attributes() const { return relu_residual(relu_, residual_); }

std::vector<ValueType> BatchNormApply::infer(Types in) const {
  return infer_apply(*this, in, residual_);
}

std::vector<Value> BatchNormApply::grad(const GradArgs& args) const {
  Graph& graph = args.graph;
  const Node& node = args.node;
  const Value y = node.in[0], mean = node.in[1], inv_std = node.in[2], gamma = node.in[3];
  std::vector<Value> din;
  const std::vector<Value> reduced = reduce_gradient(args, {relu_, residual_, {}}, din);
  if (!args.needed[0]) return din;
  const OpPtr maker = maker_of(graph, mean);
  if (by_running_averages(maker.get())) {
    din[0] = through_constants(args, reduced[0], {});
    return din;
  }
  const auto [dgamma, dbeta] = sums_of_all(graph, node.name, maker.get(), reduced[1], reduced[2]);
  din[0] = args.append1(".dy", std::make_shared<BatchNormGradApply>(),
                        {reduced[0], y, mean, inv_std, gamma, dgamma, dbeta});
  return din;
}

std::string BatchNormGradReduce::attributes() const {
  const std::string flags =
      fmt::format("{}{}{}", relu_ ? "relu" : "", relu_ && two_ ? " " : "", two_ ? "two" : "");
  return flags + (epsilon_ && !flags.empty() ? " " : "") + of_variance(epsilon_);
}

std::vector<ValueType> BatchNormGradReduce::infer(Types in) const {
  require_inputs(name(), in, size_t{4} + (relu_ ? 1 : 0) + (two_ ? 1 : 0));
  require_batched(name(), in[0], 2);
  require_same_shape(name(), in[0], in[1]);
  for (size_t i = 4; i < in.size(); ++i) require_same_shape(name(), in[0], in[i]);
  const int64_t channels = in[0].desc.shape[1];
  require_channels(name(), in, 2, 3, channels);
  return {in[0], unbatched_f32(Shape{channels}), unbatched_f32(Shape{channels})};
}

std::vector<ValueType> BatchNormGradApply::infer(Types in) const {
  require_inputs(name(), in, 7);
  require_batched(name(), in[0], 2);
  require_same_shape(name(), in[0], in[1]);
  require_channels(name(), in, 2, 6, in[0].desc.shape[1]);
  return {in[0]};
}

std::string BatchNormGradScale::attributes() const { return of_variance(epsilon_); }

std::vector<ValueType> BatchNormGradScale::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_batched(name(), in[0], 2);
  require_channels(name(), in, 1, 2, in[0].desc.shape[1]);
  return {in[0]};
}

std::string BatchNormInference::attributes() const {
  const std::string flags = relu_residual(relu_, residual_);
  return fmt::format("epsilon {}{}{}", epsilon_, flags.empty() ? "" : " ", flags);
}

std::vector<ValueType> BatchNormInference::infer(Types in) const {
  return infer_apply(*this, in, residual_);
}

std::vector<Value> BatchNormInference::grad(const GradArgs& args) const {
  std::vector<Value> din;
  const std::vector<Value> reduced = reduce_gradient(args, {relu_, residual_, epsilon_}, din);
  if (args.needed[0]) din[0] = through_constants(args, reduced[0], epsilon_);
  return din;
}

}  // namespace tutti::ops
