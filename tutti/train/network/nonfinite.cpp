#include "tutti/train/network/nonfinite.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>

#include "tutti/models/registry.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/plan/run/executor.h"

namespace tutti::train {
namespace {

/// Returns the index of the first element that is not finite, or -1.
int64_t find_nonfinite(const void* data, DType dtype, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = dtype == DType::bf16 ? static_cast<float>(static_cast<const bf16*>(data)[i])
                                         : static_cast<const float*>(data)[i];
    if (!std::isfinite(x)) return i;
  }
  return -1;
}

std::string gradient_text(const plan::Variable& variable, int64_t element, int64_t count) {
  return fmt::format("the gradient of '{}' is not finite (element {} of {})", variable.name,
                     element, count);
}

/// Whether training uses a batch's own statistics, even if only for running averages.
bool takes_statistics(models::ModelSpec model) {
  model.mode = ops::Mode::train;
  const graph::Graph graph = models::build_model(model).graph;
  return std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
    return dynamic_cast<const ops::BatchNormStats*>(node.op.get()) != nullptr;
  });
}

}  // namespace

/// Infinities and NaNs have all exponent bits set. The loop has no branch, so that it takes a few
/// instructions per cache line.
bool all_finite(const float* data, size_t count) {
  constexpr uint32_t kExponent = 0x7F800000;
  constexpr size_t kBlock = 4096;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(count, begin + kBlock);
    uint32_t bad = 0;
    for (size_t i = begin; i < end; ++i)
      bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(data[i]) & kExponent) == kExponent);
    if (bad != 0) return false;
  }
  return true;
}

std::string first_nonfinite(const NonfiniteSearch& search, const backend::Backend& backend) {
  for (size_t f = 0; f < search.batch.size(); ++f) {
    const std::string& field = search.batch[f].field;
    const TensorDesc& desc = search.batch[f].desc;
    if (desc.dtype != DType::f32 && desc.dtype != DType::bf16) continue;
    const int64_t count = desc.layout.storage_elements(desc.shape);
    if (const int64_t i = find_nonfinite(search.tensors[f], desc.dtype, count); i >= 0)
      return fmt::format("the field '{}' of sample {} of the batch is not finite", field,
                         i / (count / desc.shape[0]));
  }
  const plan::Variables& variables = search.weights->variables();
  plan::ReplicaState replica = search.weights->replica(search.local_replica);
  // Only the forward pass, which reads them.
  if (search.parameters) replica.parameters = const_cast<std::byte*>(search.parameters);
  const auto* const parameters = static_cast<const std::byte*>(replica.parameters);
  for (const plan::Variable& variable : variables.parameters)
    if (find_nonfinite(parameters + variable.offset, DType::f32,
                       static_cast<int64_t>(variable.desc.bytes() / sizeof(float))) >= 0)
      return fmt::format("parameter '{}' is not finite: an earlier update went too far",
                         variable.name);

  for (const plan::TableVariable& table : variables.tables)
    if (find_nonfinite(search.weights->tables() + table.variable.offset, DType::f32,
                       table.variable.desc.elements()) >= 0)
      return fmt::format("'{}' is not finite: an earlier update went too far", table.variable.name);

  models::ModelSpec spec = search.model;
  spec.mode = ops::Mode::eval;  // the same layers, without updating running statistics
  models::ModelGraph model = models::build_model(spec);
  for (const graph::Value t : model.graph.with_role(graph::Role::table)) {
    const plan::TableVariable* here = variables.find_table(model.graph[t].name);
    if (!here || here->variable.desc.shape != model.graph.shape(t))
      return "ranks share the tables, so the layers were not computed again";
  }
  for (const graph::Node& node : model.graph.nodes())
    for (const graph::Value v : node.out) model.graph.mark_output(v);
  const plan::Plan plan = plan::compile(model.graph, backend,
                                        {.layout = search.layout,
                                         .measure = false,
                                         .most_error = search.most_error,
                                         .variables = &variables});
  const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
  executor->bind(replica);
  for (size_t i = 0; i < model.inputs.size(); ++i)
    executor->bind_input(model.inputs[i].value, search.tensors[i]);
  executor->pack();
  executor->run({});
  for (const graph::Node& node : model.graph.nodes())
    for (const graph::Value v : node.out) {
      const TensorDesc& desc = plan.desc(v);
      if (desc.dtype != DType::f32 && desc.dtype != DType::bf16) continue;
      if (const int64_t i = find_nonfinite(executor->result(v), desc.dtype, desc.elements());
          i >= 0)
        return fmt::format(
            "the output of layer '{}' is not finite first, for sample {} of the batch", node.name,
            i / (desc.elements() / desc.shape[0]));
    }
  return takes_statistics(search.model)
             ? "every layer's output is finite with running statistics: the batch's own statistics "
               "or the loss overflow"
             : "every layer's output is finite: the loss overflows";
}

std::string nonfinite_gradient_at(const plan::Variables& variables, int64_t index) {
  for (const plan::Variable& variable : variables.parameters) {
    const auto count = static_cast<int64_t>(variable.desc.bytes() / sizeof(float));
    const int64_t i = index - static_cast<int64_t>(variable.offset / sizeof(float));
    if (i >= 0 && i < count) return gradient_text(variable, i, count);
  }
  return "a gradient is not finite between its parameters";
}

std::string nonfinite_gradient(const plan::Variables& variables, const exchange::Bucket& bucket,
                               const float* arena, SharedWork& work) {
  constexpr size_t kPiece = size_t{64} << 10;  // floats
  const size_t count = bucket.floats();
  std::atomic<bool> finite{true};
  work.run((count + kPiece - 1) / kPiece, [&](size_t i) {
    const float* const piece = arena + bucket.begin / sizeof(float) + i * kPiece;
    if (!all_finite(piece, std::min(kPiece, count - i * kPiece)))
      finite.store(false, std::memory_order_relaxed);
  });
  if (finite) return {};
  for (const int member : bucket.members) {
    const plan::Variable& variable = variables.parameters[static_cast<size_t>(member)];
    const auto count = static_cast<int64_t>(variable.desc.bytes() / sizeof(float));
    if (const int64_t i =
            find_nonfinite(arena + variable.offset / sizeof(float), DType::f32, count);
        i >= 0)
      return gradient_text(variable, i, count);
  }
  return fmt::format("the gradient in {} is not finite between its parameters", bucket.name);
}

}  // namespace tutti::train
