// Every rank gets a part of a sum, or all of it: allreduce and reduce_scatter.

#include <algorithm>

#include "backend.h"
#include "tensors.h"

namespace tutti_torch {

using c10d::OpType;

void TuttiBackend::start_allreduce(TuttiWork& work, const at::Tensor& x, const c10d::ReduceOp& op) {
  const Reduction how = reduction("allreduce", x.scalar_type(), op);
  const at::Tensor y = updated_by(work, x);
  start(work, {.kind = Kind::allreduce, .type = how.type, .op = how.op, .count = count_of(y)}, y,
        y);
}

TuttiBackend::WorkPtr TuttiBackend::allreduce(Tensors& tensors,
                                              const c10d::AllreduceOptions& opts) {
  at::Tensor& x = only("allreduce", tensors);
  return issue({OpType::ALLREDUCE, "tutti:all_reduce", opts}, tensors, tensors,
               [&](TuttiWork& work) { start_allreduce(work, x, opts.reduceOp); });
}

TuttiBackend::WorkPtr TuttiBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  check_tensors("allreduce_coalesced", tensors);
  for (const at::Tensor& x : tensors)
    reduction("allreduce_coalesced", x.scalar_type(), opts.reduceOp);
  return issue({OpType::ALLREDUCE_COALESCED, "tutti:all_reduce_coalesced", opts}, tensors, tensors,
               [&](TuttiWork& work) {
                 for (const at::Tensor& x : tensors) start_allreduce(work, x, opts.reduceOp);
               });
}

void TuttiBackend::start_reduce_scatter(TuttiWork& work, const at::Tensor& output,
                                        const at::Tensor& input, const c10d::ReduceOp& op) {
  check_same_type("reduce_scatter", output, input);
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(),
                    "tutti: reduce_scatter: an input of ", input.sizes(), " for ", getSize(),
                    " outputs of ", output.sizes());
  const Reduction how = reduction("reduce_scatter", input.scalar_type(), op);
  const at::Tensor y = written_by(work, output), x = read_beside(work, input, y);
  start(work, {.kind = Kind::reduce_scatter, .type = how.type, .op = how.op, .count = count_of(y)},
        x, y);
}

TuttiBackend::WorkPtr TuttiBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                   const c10d::ReduceScatterOptions& opts) {
  at::Tensor& output = only("reduce_scatter", outputs);
  const Tensors& parts = only("reduce_scatter", inputs);
  TORCH_CHECK_VALUE(parts.size() == static_cast<size_t>(getSize()),
                    "tutti: reduce_scatter: ", parts.size(), " inputs for ", getSize(), " ranks");
  const Reduction how = reduction("reduce_scatter", output.scalar_type(), opts.reduceOp);
  Signature signature{.kind = Kind::reduce_scatter, .type = how.type, .op = how.op};
  for (const at::Tensor& x : parts) {
    check_same_type("reduce_scatter", x, output);
    signature.counts.push_back(count_of(x));
  }
  const at::Tensor& mine = parts[static_cast<size_t>(getRank())];
  TORCH_CHECK_VALUE(mine.numel() == output.numel(),
                    "tutti: reduce_scatter: the input for this rank has ", mine.sizes(),
                    ", its output ", output.sizes());
  if (std::ranges::count(signature.counts, count_of(output)) == getSize()) {
    signature.count = count_of(output);
    signature.counts.clear();
  }
  return issue({OpType::REDUCE_SCATTER, "tutti:reduce_scatter", opts}, parts, outputs,
               [&](TuttiWork& work) {
                 const at::Tensor y = written_by(work, output);
                 start(work, signature, read_beside(work, parts, y), y);
               });
}

TuttiBackend::WorkPtr TuttiBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                         const c10d::ReduceScatterOptions& opts) {
  check_tensor("reduce_scatter_base", output);
  check_tensor("reduce_scatter_base", input);
  return issue({OpType::_REDUCE_SCATTER_BASE, "tutti:_reduce_scatter_base", opts}, {input},
               {output},
               [&](TuttiWork& work) { start_reduce_scatter(work, output, input, opts.reduceOp); });
}

TuttiBackend::WorkPtr TuttiBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  check_pairs("reduce_scatter_tensor_coalesced", outputs, inputs);
  return issue(
      {OpType::REDUCE_SCATTER_TENSOR_COALESCED, "tutti:reduce_scatter_tensor_coalesced", opts},
      inputs, outputs, [&](TuttiWork& work) {
        for (size_t k = 0; k < inputs.size(); ++k)
          start_reduce_scatter(work, outputs[k], inputs[k], opts.reduceOp);
      });
}

}  // namespace tutti_torch
