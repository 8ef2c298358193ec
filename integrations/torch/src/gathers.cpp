// Every rank gets the parts of all: allgather.

#include "backend.h"
#include "tensors.h"

namespace tutti_torch {

using c10d::OpType;

void TuttiBackend::start_allgather(TuttiWork& work, const at::Tensor& output,
                                   const at::Tensor& input) {
  check_same_type("allgather", output, input);
  TORCH_CHECK_VALUE(output.numel() == input.numel() * getSize(), "tutti: allgather: an output of ",
                    output.sizes(), " for ", getSize(), " inputs of ", input.sizes());
  const at::Tensor x = read_by(work, input);
  start(work, {.kind = Kind::allgather, .count = bytes_of(x)}, x, written_by(work, output));
}

// The parts may differ in size; each rank knows all of them.
void TuttiBackend::start_allgather(TuttiWork& work, const Tensors& outputs,
                                   const at::Tensor& input) {
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()),
                    "tutti: allgather: ", outputs.size(), " outputs for ", getSize(), " ranks");
  Signature signature{.kind = Kind::allgather, .count = bytes_of(input)};
  bool equal = true;
  for (const at::Tensor& y : outputs) {
    check_same_type("allgather", y, input);
    signature.counts.push_back(bytes_of(y));
    equal &= y.numel() == input.numel();
  }
  const at::Tensor& mine = outputs[static_cast<size_t>(getRank())];
  TORCH_CHECK_VALUE(mine.numel() == input.numel(), "tutti: allgather: the output of this rank has ",
                    mine.sizes(), ", its input ", input.sizes());
  if (equal)
    signature.counts.clear();
  else
    signature.count = 0;  // counts differ between ranks, so the shared plan has none
  const at::Tensor x = read_by(work, input);
  start(work, signature, x, written_by(work, outputs));
}

TuttiBackend::WorkPtr TuttiBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& opts) {
  const at::Tensor& x = only("allgather", inputs);
  const Tensors& all = only("allgather", outputs);
  return issue({OpType::ALLGATHER, "tutti:all_gather", opts}, inputs, all,
               [&](TuttiWork& work) { start_allgather(work, all, x); });
}

TuttiBackend::WorkPtr TuttiBackend::allgather_coalesced(std::vector<Tensors>& outputs,
                                                        Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  check_tensors("allgather_coalesced", inputs);
  // outputs[rank][k] or outputs[k][rank], depending on the caller: c10d's own back ends take the
  // first.
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()),
                    "tutti: allgather_coalesced: ", outputs.size(), " lists of outputs for ",
                    getSize(), " ranks");
  Tensors result;
  for (const Tensors& of_rank : outputs) {
    check_pairs("allgather_coalesced", of_rank, inputs);
    result.insert(result.end(), of_rank.begin(), of_rank.end());
  }
  return issue({OpType::ALLGATHER_COALESCED, "tutti:all_gather_coalesced", opts}, inputs, result,
               [&](TuttiWork& work) {
                 for (size_t k = 0; k < inputs.size(); ++k) {
                   Tensors all;
                   for (const Tensors& of_rank : outputs) all.push_back(of_rank[k]);
                   start_allgather(work, all, inputs[k]);
                 }
               });
}

TuttiBackend::WorkPtr TuttiBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::AllgatherOptions& opts) {
  check_tensor("allgather_base", output);
  check_tensor("allgather_base", input);
  return issue({OpType::_ALLGATHER_BASE, "tutti:_all_gather_base", opts}, {input}, {output},
               [&](TuttiWork& work) { start_allgather(work, output, input); });
}

TuttiBackend::WorkPtr TuttiBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  check_pairs("allgather_into_tensor_coalesced", outputs, inputs);
  return issue(
      {OpType::ALLGATHER_INTO_TENSOR_COALESCED, "tutti:all_gather_into_tensor_coalesced", opts},
      inputs, outputs, [&](TuttiWork& work) {
        for (size_t k = 0; k < inputs.size(); ++k) start_allgather(work, outputs[k], inputs[k]);
      });
}

}  // namespace tutti_torch
