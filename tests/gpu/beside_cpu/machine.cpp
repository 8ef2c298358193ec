#include "tests/gpu/beside_cpu/machine.h"

#include <algorithm>
#include <cstring>

#include "tutti/backend/reference/plain_tensor.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/pool.h"

namespace tutti::test {
namespace {

plan::PlanOptions whole_batches() {
  return {.threads = 1, .layout = "last", .tile_bytes = size_t{1} << 60, .measure = false};
}

Numbers loaded(const TensorDesc& desc, const void* memory) {
  backend::PlainTensor tensor(desc);
  tensor.load(memory);
  Numbers numbers(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) numbers[static_cast<size_t>(i)] = tensor[i];
  return numbers;
}

void store(const Numbers& numbers, const TensorDesc& desc, void* memory) {
  backend::PlainTensor tensor(desc);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor[i] = numbers[static_cast<size_t>(i)];
  tensor.store(memory);
}

bool has_kink(const ops::ActivationAttributes& a) {
  return a.kind == ops::ActivationKind::relu || a.kind == ops::ActivationKind::leaky_relu;
}

std::vector<int32_t> compared_in(const graph::Graph& graph) {
  std::vector<int32_t> compared;
  for (const graph::Node& node : graph.nodes())
    if (is_rectifier(*node.op))
      compared.push_back(node.out[0].id);
    else if (is_maximum(*node.op))
      compared.push_back(node.in[0].id);
  return compared;
}

/// A band keeps what only its own nodes read to itself. This adds nodes that read what nodes
/// compare in a band behind all others, and nobody reads their results.
train::TrainingGraph with_readers(train::TrainingGraph training) {
  graph::Graph& graph = training.graph;
  const auto moments = [&](graph::Value v) {
    return graph.append("read " + graph[v].name, std::make_shared<ops::BatchNormMoments>(), {v});
  };
  const std::vector<int32_t> compared = compared_in(graph);
  const graph::Value first{compared.front()};
  const std::vector<graph::Value> of_first = moments(first);
  graph.append("begin a band", std::make_shared<ops::BatchNormApply>(false, false),
               {first, of_first[0], of_first[1], of_first[0], of_first[0]});
  for (const int32_t id : compared) moments({id});
  return training;
}

}  // namespace

bool same_bits(const MadeStep& a, const MadeStep& b) {
  return a.loss == b.loss && a.gradients == b.gradients && a.variables == b.variables;
}

bool is_rectifier(const graph::Op& op) {
  if (const auto* norm = dynamic_cast<const ops::BatchNormApply*>(&op)) return norm->relu();
  if (const auto* conv = dynamic_cast<const ops::Conv*>(&op))
    return conv->activation() && has_kink(*conv->activation());
  const auto* alone = dynamic_cast<const ops::Activation*>(&op);
  return alone && has_kink(alone->activation());
}

bool is_maximum(const graph::Op& op) {
  const auto* pool = dynamic_cast<const ops::Pool*>(&op);
  return pool && pool->pool().kind == ops::PoolKind::max;
}

/// The exchange of one rank: it keeps the gradients, which are their own sum.
class Machine::Gradients final : public plan::Exchanges {
 public:
  Gradients(const plan::Plan& plan, const std::byte* gradients)
      : plan_(plan), gradients_(gradients), kept_(plan.variables.trained_bytes) {}
  void start(int exchange) override {
    const plan::PlanBucket& bucket = bucket_of(exchange);
    std::memcpy(kept_.data() + bucket.offset, gradients_ + bucket.offset, bucket.bytes);
  }
  bool done(int) override { return true; }
  plan::ExchangeOutput finish(int exchange) override {
    return {.at = kept_.data() + bucket_of(exchange).offset};
  }
  const std::byte* kept() const { return kept_.data(); }

 private:
  const plan::PlanBucket& bucket_of(int exchange) const {
    return plan_
        .buckets[static_cast<size_t>(plan_.exchanges[static_cast<size_t>(exchange)].bucket)];
  }
  const plan::Plan& plan_;
  const std::byte* const gradients_;
  device::Buffer kept_;
};

Machine::Machine(train::TrainingGraph training, const backend::Backend& backend, Watched watched)
    : compared_(watched == Watched::yes ? compared_in(training.graph) : std::vector<int32_t>{}),
      training_(watched == Watched::yes ? with_readers(std::move(training)) : std::move(training)),
      plan_(plan::compile(training_.graph, backend, whole_batches())), weights_(plan_.variables, 1),
      gradients_(plan_.variables.trained_bytes),
      exchange_(std::make_unique<Gradients>(plan_, gradients_.data())),
      executor_(plan::make_executor(plan_, backend)) {
  weights_.initialise(7);
  plan::ReplicaState replica = weights_.replica(0);
  replica.gradients = gradients_.data();
  executor_->bind(replica);
  executor_->set_exchanges(*exchange_);
  executor_->set_scalar(training_.gradient_scale, 1.0f);
  for (const models::GraphInput& input : training_.inputs)
    inputs_.emplace_back(plan_.desc(input.value).bytes());
  executor_->pack();
}

Machine::~Machine() = default;

template <class F>
void Machine::for_each_variable(F f) const {
  const plan::Variables& all = plan_.variables;
  for (const plan::Variable& parameter : all.parameters) {
    f(parameter.name, parameter, weights_.parameters());
    for (size_t k = 0; k < all.state_kinds.size() && all.is_trained(parameter); ++k)
      f(parameter.name + "." + all.state_kinds[k], parameter,
        weights_.state() + k * all.trained_bytes);
  }
  for (const plan::Variable& statistic : all.statistics)
    f(statistic.name, statistic, weights_.statistics(0));
}

Named Machine::variables() const {
  executor_->settle();
  Named all;
  for_each_variable(
      [&](const std::string& name, const plan::Variable& variable, const std::byte* arena) {
        all[name] = loaded(variable.desc, arena + variable.offset);
      });
  return all;
}

void Machine::set_variables(const Named& variables) {
  executor_->settle();
  for_each_variable([&](const std::string& name, const plan::Variable& variable, std::byte* arena) {
    store(variables.at(name), variable.desc, arena + variable.offset);
  });
  executor_->pack();
}

void Machine::bind(const std::vector<Numbers>& batch) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const graph::Value input = training_.inputs[i].value;
    store(batch[i], plan_.desc(input), inputs_[i].data());
    executor_->bind_input(input, inputs_[i].data());
  }
}

void Machine::keep_compared(const plan::PlanBand& band, MadeStep& made) {
  for (const plan::Step& step : band.steps)
    for (const graph::Value v : plan_.graph.nodes()[static_cast<size_t>(step.node)].out)
      if (std::ranges::find(compared_, v.id) != compared_.end())
        made.compared[v.id] = loaded(plan_.desc(v), executor_->result(v));
}

void Machine::pass(const backend::StepInfo& info, MadeStep& made) {
  if (compared_.empty()) return executor_->run(info);
  executor_->begin();
  for (size_t b = 0; b < plan_.bands.size(); ++b) {
    executor_->run_bands(info, b, b + 1);
    keep_compared(plan_.bands[b], made);
  }
  executor_->end();
}

MadeStep Machine::make(const StepToMake& step, const std::vector<Numbers>& batch) {
  const backend::StepInfo info{.seed = 1, .step = step.number, .batch = plan_.batch};
  MadeStep made;
  executor_->finish_update();
  bind(batch);
  pass(info, made);
  for (const graph::Value loss : training_.losses)
    made.loss += static_cast<double>(*static_cast<const float*>(executor_->result(loss)));
  executor_->set_scalar(training_.lr, static_cast<float>(step.rate));
  executor_->update(info);
  made.variables = variables();
  for (const plan::Variable& parameter : plan_.variables.parameters)
    if (plan_.variables.is_trained(parameter))
      made.gradients[parameter.name] = loaded(parameter.desc, exchange_->kept() + parameter.offset);
  return made;
}

}  // namespace tutti::test
