// One rank sends to all, or receives from all: broadcast, reduce, gather, scatter.

#include "backend.h"
#include "tensors.h"

namespace tutti_torch {

using c10d::OpType;

void TuttiBackend::check_root(const char* call, int64_t root) const {
  TORCH_CHECK_VALUE(root >= 0 && root < getSize(), "tutti: ", call, ": root ", root, " of ",
                    getSize(), " ranks");
}

void TuttiBackend::check_list(const char* call, std::vector<Tensors>& lists,
                              const at::Tensor& x) const {
  const Tensors& list = only(call, lists);
  TORCH_CHECK_VALUE(list.size() == static_cast<size_t>(getSize()), "tutti: ", call, ": a list of ",
                    list.size(), " tensors for ", getSize(), " ranks");
  for (const at::Tensor& y : list) {
    check_same_type(call, y, x);
    TORCH_CHECK_VALUE(y.numel() == x.numel(), "tutti: ", call, ": tensors of ", y.sizes(), " and ",
                      x.sizes());
  }
}

TuttiBackend::WorkPtr TuttiBackend::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& opts) {
  at::Tensor& x = only("broadcast", tensors);
  check_root("broadcast", opts.rootRank);
  const auto root = static_cast<int>(opts.rootRank);
  return issue({OpType::BROADCAST, "tutti:broadcast", opts}, tensors, tensors,
               [&](TuttiWork& work) {
                 const at::Tensor y = root == getRank() ? read_by(work, x) : written_by(work, x);
                 start(work, {.kind = Kind::broadcast, .root = root, .count = bytes_of(y)}, {}, y);
               });
}

TuttiBackend::WorkPtr TuttiBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  at::Tensor& x = only("reduce", tensors);
  check_root("reduce", opts.rootRank);
  const auto root = static_cast<int>(opts.rootRank);
  const Reduction how = reduction("reduce", x.scalar_type(), opts.reduceOp);
  return issue({OpType::REDUCE, "tutti:reduce", opts}, tensors, tensors, [&](TuttiWork& work) {
    const at::Tensor y = root == getRank() ? updated_by(work, x) : read_by(work, x);
    start(
        work,
        {.kind = Kind::reduce, .type = how.type, .op = how.op, .root = root, .count = count_of(y)},
        y, root == getRank() ? y : at::Tensor());
  });
}

TuttiBackend::WorkPtr TuttiBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& opts) {
  at::Tensor& x = only("gather", inputs);
  check_root("gather", opts.rootRank);
  const auto root = static_cast<int>(opts.rootRank);
  if (root == getRank()) check_list("gather", outputs, x);
  return issue({OpType::GATHER, "tutti:gather", opts}, inputs,
               root == getRank() ? outputs.front() : Tensors(), [&](TuttiWork& work) {
                 const at::Tensor from = read_by(work, x);
                 start(work, {.kind = Kind::gather, .root = root, .count = bytes_of(from)}, from,
                       root == getRank() ? written_by(work, outputs.front()) : at::Tensor());
               });
}

TuttiBackend::WorkPtr TuttiBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                            const c10d::ScatterOptions& opts) {
  at::Tensor& y = only("scatter", outputs);
  check_root("scatter", opts.rootRank);
  const auto root = static_cast<int>(opts.rootRank);
  if (root == getRank()) check_list("scatter", inputs, y);
  return issue({OpType::SCATTER, "tutti:scatter", opts}, outputs, outputs, [&](TuttiWork& work) {
    const at::Tensor to = written_by(work, y);
    start(work, {.kind = Kind::scatter, .root = root, .count = bytes_of(to)},
          root == getRank() ? read_by(work, inputs.front()) : at::Tensor(), to);
  });
}

}  // namespace tutti_torch
