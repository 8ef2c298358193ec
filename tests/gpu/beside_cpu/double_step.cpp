#include "tests/gpu/beside_cpu/double_step.h"

#include <cmath>

#include "tutti/backend/reference/rules.h"
#include "tutti/base/error.h"
#include "tutti/ops/exchange.h"

namespace tutti::test {
namespace {

using backend::PlainTensor;
using graph::Value;

double squared(double x) { return x * x; }

Distance between(const Numbers& made, const Numbers& exact) {
  Distance d;
  for (size_t i = 0; i < exact.size(); ++i) {
    d.apart += squared(made[i] - exact[i]);
    d.size += squared(exact[i]);
  }
  return {std::sqrt(d.apart), std::sqrt(d.size)};
}

Numbers numbers_of(const PlainTensor& x) {
  Numbers numbers(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < x.size(); ++i) numbers[static_cast<size_t>(i)] = x[i];
  return numbers;
}

double root_mean_square(const Numbers& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += squared(x);
  return std::sqrt(sum / static_cast<double>(numbers.size()));
}

/// Runs the nodes of a training graph. Variables change as the ops change them.
class DoubleStep {
 public:
  DoubleStep(const graph::Graph& graph, const backend::StepInfo& info, const MadeStep& made)
      : graph_(graph), info_(info), made_(made) {}

  void set(Value v, Numbers numbers) { values_[v.id] = std::move(numbers); }
  const Numbers& operator[](Value v) const { return values_.at(v.id); }
  const Distances& compared() const { return compared_; }
  const Distances& gradients() const { return gradients_; }
  int64_t branches() const { return branches_; }

  void run() {
    for (const graph::Node& node : graph_.nodes())
      if (dynamic_cast<const ops::AllReduceGradients*>(node.op.get()))
        take_gradients(node);
      else
        run(node);
  }

 private:
  struct Operands {
    std::vector<PlainTensor> in, out;
  };
  Operands computed(const graph::Node& node, const std::vector<const Numbers*>& in) const;
  void run(const graph::Node& node);
  void take_gradients(const graph::Node& node);
  void hold_signs(const graph::Node& node);
  void hold_winners(const graph::Node& node);

  const graph::Graph& graph_;
  const backend::StepInfo info_;
  const MadeStep& made_;
  std::map<int32_t, Numbers> values_;
  Distances compared_, gradients_;
  int64_t branches_ = 0;
};

/// Runs a node's rule; returns its operands, of which the rule may have changed inputs.
DoubleStep::Operands DoubleStep::computed(const graph::Node& node,
                                          const std::vector<const Numbers*>& in) const {
  backend::KernelRequest request{
      .op = node.op.get(), .in = {}, .out = {}, .in_free = {}, .out_free = {}};
  Operands operands;
  for (size_t i = 0; i < in.size(); ++i) {
    PlainTensor& x =
        operands.in.emplace_back(request.in.emplace_back(graph_.type(node.in[i]).desc));
    CHECK(std::ssize(*in[i]) == x.size(), "an operand of '{}'", node.name);
    for (int64_t k = 0; k < x.size(); ++k) x[k] = (*in[i])[static_cast<size_t>(k)];
  }
  for (const Value v : node.out)
    operands.out.emplace_back(request.out.emplace_back(graph_.type(v).desc));
  const backend::Rule rule = backend::reference_rules().find(request);
  CHECK(rule.run, "no rule for op '{}'", node.op->name());
  std::vector<double> sums(rule.sums);
  const backend::RuleCall call{operands.in, operands.out, sums, 0, info_};
  rule.run(call);
  if (rule.finish) rule.finish(call);
  return operands;
}

void DoubleStep::run(const graph::Node& node) {
  std::vector<const Numbers*> in;
  for (const Value v : node.in) in.push_back(&values_.at(v.id));
  const Operands made = computed(node, in);
  for (size_t i = 0; i < made.out.size(); ++i) values_[node.out[i].id] = numbers_of(made.out[i]);
  for (size_t i = 0; i < made.in.size(); ++i)
    if (node.op->mutates(static_cast<int>(i))) values_[node.in[i].id] = numbers_of(made.in[i]);
  for (const Value v : node.out)
    if (const auto found = made_.compared.find(v.id); found != made_.compared.end())
      compared_[graph_[v].name] = between(found->second, values_.at(v.id));
  if (is_rectifier(*node.op)) hold_signs(node);
  if (is_maximum(*node.op)) hold_winners(node);
}

/// Compares a bucket's gradients with the machine's; the update goes on with these.
void DoubleStep::take_gradients(const graph::Node& node) {
  for (const Value v : node.in) {
    const std::string& name = graph_[graph_[v].of].name;
    gradients_[name] = between(made_.gradients.at(name), values_.at(v.id));
    values_[v.id] = made_.gradients.at(name);
  }
}

/// Takes the machine's element where it lies on the other side of 0.
void DoubleStep::hold_signs(const graph::Node& node) {
  const Numbers& theirs = made_.compared.at(node.out[0].id);
  Numbers& exact = values_.at(node.out[0].id);
  for (size_t i = 0; i < exact.size(); ++i) {
    if ((theirs[i] > 0) == (exact[i] > 0)) continue;
    exact[i] = theirs[i];
    ++branches_;
  }
}

/// Takes the winners of windows that the machine's numbers have. Maxima stay: where another element
/// wins, it is as large but for rounding.
void DoubleStep::hold_winners(const graph::Node& node) {
  const Operands made = computed(node, {&made_.compared.at(node.in[0].id)});
  Numbers& winners = values_.at(node.out[1].id);
  const Numbers theirs = numbers_of(made.out[1]);
  for (size_t i = 0; i < winners.size(); ++i) branches_ += theirs[i] != winners[i];
  winners = theirs;
}

}  // namespace

StepDistances from_double(const train::TrainingGraph& training, const plan::Plan& plan,
                          const StepToMake& step, const Named& variables,
                          const std::vector<Numbers>& batch, const MadeStep& made) {
  const graph::Graph& graph = training.graph;
  DoubleStep exact(graph, {.seed = 1, .step = step.number, .batch = plan.batch}, made);
  for (size_t i = 0; i < batch.size(); ++i) exact.set(training.inputs[i].value, batch[i]);
  exact.set(training.lr, {static_cast<double>(static_cast<float>(step.rate))});
  exact.set(training.gradient_scale, {1});
  for (const auto& [name, numbers] : variables) exact.set(graph.find(name), numbers);
  exact.run();
  StepDistances distances;
  distances.compared = exact.compared();
  distances.gradients = exact.gradients();
  double loss = 0;
  for (const Value v : training.losses) loss += exact[v].front();
  distances.loss = {std::abs(made.loss - loss), std::abs(loss)};
  for (const Value v : training.predictions) distances.loss.size += root_mean_square(exact[v]);
  for (const auto& [name, before] : variables) {
    Distance& d = distances.variables[name];
    d = between(made.variables.at(name), exact[graph.find(name)]);
    d.size += between(before, before).size;
  }
  distances.branches = exact.branches();
  return distances;
}

}  // namespace tutti::test
