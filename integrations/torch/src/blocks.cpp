// Exchanges blocks between all ranks, and messages between two.

#include <algorithm>

#include "backend.h"
#include "tensors.h"

namespace tutti_torch {
namespace {

using c10d::OpType;

// Returns the sizes of blocks in bytes: given in rows, or equal.
std::vector<size_t> block_sizes(const at::Tensor& x, const std::vector<int64_t>& rows, int ranks) {
  std::vector<size_t> sizes;
  if (rows.empty()) {
    TORCH_CHECK_VALUE(x.dim() > 0 && x.size(0) % ranks == 0, "tutti: alltoall_base: ", x.sizes(),
                      " cannot be cut into ", ranks, " equal blocks");
    sizes.assign(static_cast<size_t>(ranks), bytes_of(x) / static_cast<size_t>(ranks));
    return sizes;
  }
  int64_t all = 0;
  for (const int64_t n : rows) all += n;
  TORCH_CHECK_VALUE(rows.size() == static_cast<size_t>(ranks) && x.dim() > 0 && all == x.size(0) &&
                        std::ranges::min(rows) >= 0,
                    "tutti: alltoall_base: the split sizes do not add up to ", x.sizes(), " over ",
                    ranks, " ranks");
  const size_t row = all == 0 ? 0 : bytes_of(x) / static_cast<size_t>(all);
  for (const int64_t n : rows) sizes.push_back(row * static_cast<size_t>(n));
  return sizes;
}

}  // namespace

TuttiBackend::WorkPtr TuttiBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_sizes,
                                                  std::vector<int64_t>& input_sizes,
                                                  const c10d::AllToAllOptions& opts) {
  check_tensor("alltoall_base", output);
  check_tensor("alltoall_base", input);
  check_same_type("alltoall_base", output, input);
  const Blocks blocks{.send = block_sizes(input, input_sizes, getSize()),
                      .receive = block_sizes(output, output_sizes, getSize())};
  const bool equal = output_sizes.empty() && input_sizes.empty();
  TORCH_CHECK_VALUE(!equal || output.numel() == input.numel(),
                    "tutti: alltoall_base: an output of ", output.sizes(), " for an input of ",
                    input.sizes());
  return issue({OpType::ALLTOALL_BASE, "tutti:all_to_all", opts}, {input}, {output},
               [&](TuttiWork& work) {
                 const at::Tensor y = written_by(work, output), x = read_beside(work, input, y);
                 if (equal)
                   start(work, {.kind = Kind::all_to_all, .count = blocks.send.front()}, x, y);
                 else
                   start(work, blocks, x, y);
               });
}

TuttiBackend::WorkPtr TuttiBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllToAllOptions& opts) {
  check_pairs("alltoall", outputs, inputs);
  TORCH_CHECK_VALUE(inputs.size() == static_cast<size_t>(getSize()),
                    "tutti: alltoall: ", inputs.size(), " inputs and outputs for ", getSize(),
                    " ranks");
  Blocks blocks;
  for (const at::Tensor& x : inputs) blocks.send.push_back(bytes_of(x));
  for (const at::Tensor& y : outputs) blocks.receive.push_back(bytes_of(y));
  return issue({OpType::ALLTOALL, "tutti:all_to_all", opts}, inputs, outputs, [&](TuttiWork& work) {
    const at::Tensor y = written_by(work, outputs);
    start(work, blocks, read_beside(work, inputs, y), y);
  });
}

TuttiBackend::WorkPtr TuttiBackend::send(Tensors& tensors, int peer, int tag) {
  at::Tensor& x = only("send", tensors);
  return issue({OpType::SEND, "tutti:send"}, tensors, {}, [&](TuttiWork& work) {
    const at::Tensor y = read_by(work, x);
    start(work, Message{.send = true, .peer = peer, .tag = tag, .bytes = bytes_of(y)}, y);
  });
}

TuttiBackend::WorkPtr TuttiBackend::recv(Tensors& tensors, int peer, int tag) {
  at::Tensor& x = only("recv", tensors);
  return issue({OpType::RECV, "tutti:recv"}, tensors, tensors, [&](TuttiWork& work) {
    const at::Tensor y = written_by(work, x);
    start(work, Message{.peer = peer, .tag = tag, .bytes = bytes_of(y)}, y);
    work.expect(bytes_of(y));
  });
}

TuttiBackend::WorkPtr TuttiBackend::recvAnysource(Tensors& /*tensors*/, int /*tag*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "tutti: recv from any rank is not supported: name the source");
}

}  // namespace tutti_torch
