#include "backend.h"

#include <algorithm>
#include <utility>

#include "progress_thread.h"
#include "tensors.h"

namespace tutti_torch {
namespace {

using c10d::OpType;

size_t bytes_of(const at::Tensor& x) { return static_cast<size_t>(x.nbytes()); }
size_t count_of(const at::Tensor& x) { return static_cast<size_t>(x.numel()); }

// Of PyTorch's that have it.
template <class Options>
bool later(const Options& opts) {
  if constexpr (requires { opts.asyncOp; })
    return opts.asyncOp;
  else
    return true;
}

bool apart(const at::Tensor& x, const at::Tensor& y) {
  const auto* const a = static_cast<const char*>(x.data_ptr());
  const auto* const b = static_cast<const char*>(y.data_ptr());
  return a + x.nbytes() <= b || b + y.nbytes() <= a;
}

// Sizes of blocks in bytes: given in rows, or equal ones.
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

TuttiBackend::TuttiBackend(const Group::Options& options)
    : Backend(options.rank, options.size), group_(std::make_shared<Group>(options)),
      plans_(std::make_unique<PlanCache>(group_)) {
  ProgressThread::wanted();  // throws before anything is asked for
  init();
}

TuttiBackend::~TuttiBackend() { shutdown(); }

void TuttiBackend::shutdown() {
  const std::lock_guard lock(mutex_);
  plans_.reset();
  group_.reset();
}

Group& TuttiBackend::group() const {
  TORCH_CHECK(group_ != nullptr, "tutti: rank ", getRank(),
              ": this process group has been shut down");
  return *group_;
}

template <class Fill>
TuttiBackend::WorkPtr TuttiBackend::issue(const Call& call, const Tensors& inputs,
                                          const Fill& fill) {
  const std::lock_guard lock(mutex_);
  group().check_usable();
  auto work = c10::make_intrusive<TuttiWork>(group_, TuttiWork::Options{.type = call.type,
                                                                        .title = call.title,
                                                                        .inputs = inputs,
                                                                        .timeout = call.timeout,
                                                                        .sequence = ++sequence_});
  try {
    fill(*work);
  } catch (const c10::DistBackendError&) {
    group_->give_up();
    ProgressThread::get().add(work);  // for what was started
    throw;
  } catch (...) {
    ProgressThread::get().add(work);
    throw;
  }
  if (call.later && !work->advance_with_peers()) ProgressThread::get().add(work);
  return work;
}

void TuttiBackend::check_root(const char* call, int64_t root) const {
  TORCH_CHECK_VALUE(root >= 0 && root < getSize(), "tutti: ", call, ": root ", root, " of ",
                    getSize(), " ranks");
}

void TuttiBackend::start(TuttiWork& work, const Signature& signature, const void* input,
                         void* output) {
  if (signature.count == 0 && signature.counts.empty()) return;
  work.start(plans_->take(signature), input, output);
}

TuttiBackend::WorkPtr TuttiBackend::barrier(const c10d::BarrierOptions& opts) {
  return issue({OpType::BARRIER, "tutti:barrier", opts.timeout, later(opts)}, {},
               [&](TuttiWork& work) { work.start(plans_->take({.kind = Kind::barrier})); });
}

TuttiBackend::WorkPtr TuttiBackend::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& opts) {
  at::Tensor& x = only("broadcast", tensors);
  check_root("broadcast", opts.rootRank);
  return issue({OpType::BROADCAST, "tutti:broadcast", opts.timeout, later(opts)}, tensors,
               [&](TuttiWork& work) {
                 work.set_result(tensors);
                 const at::Tensor y =
                     opts.rootRank == getRank() ? read_by(work, x) : written_by(work, x);
                 start(work,
                       {.kind = Kind::broadcast,
                        .root = static_cast<int>(opts.rootRank),
                        .count = bytes_of(y)},
                       nullptr, y.data_ptr());
               });
}

TuttiBackend::WorkPtr TuttiBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  at::Tensor& x = only("reduce", tensors);
  check_root("reduce", opts.rootRank);
  const Reduction how = reduction("reduce", x.scalar_type(), opts.reduceOp);
  return issue({OpType::REDUCE, "tutti:reduce", opts.timeout, later(opts)}, tensors,
               [&](TuttiWork& work) {
                 work.set_result(tensors);
                 const bool root = opts.rootRank == getRank();
                 const at::Tensor y = root ? updated_by(work, x) : read_by(work, x);
                 start(work,
                       {.kind = Kind::reduce,
                        .type = how.type,
                        .op = how.op,
                        .root = static_cast<int>(opts.rootRank),
                        .count = count_of(y)},
                       y.data_ptr(), root ? y.data_ptr() : nullptr);
               });
}

void TuttiBackend::start_allreduce(TuttiWork& work, const at::Tensor& x, const c10d::ReduceOp& op) {
  const Reduction how = reduction("allreduce", x.scalar_type(), op);
  const at::Tensor y = updated_by(work, x);
  start(work, {.kind = Kind::allreduce, .type = how.type, .op = how.op, .count = count_of(y)},
        y.data_ptr(), y.data_ptr());
}

TuttiBackend::WorkPtr TuttiBackend::allreduce(Tensors& tensors,
                                              const c10d::AllreduceOptions& opts) {
  at::Tensor& x = only("allreduce", tensors);
  return issue({OpType::ALLREDUCE, "tutti:all_reduce", opts.timeout, later(opts)}, tensors,
               [&](TuttiWork& work) {
                 work.set_result(tensors);
                 start_allreduce(work, x, opts.reduceOp);
               });
}

TuttiBackend::WorkPtr TuttiBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  check_tensors("allreduce_coalesced", tensors);
  for (const at::Tensor& x : tensors)
    reduction("allreduce_coalesced", x.scalar_type(), opts.reduceOp);
  return issue(
      {OpType::ALLREDUCE_COALESCED, "tutti:all_reduce_coalesced", opts.timeout, later(opts)},
      tensors, [&](TuttiWork& work) {
        work.set_result(tensors);
        for (const at::Tensor& x : tensors) start_allreduce(work, x, opts.reduceOp);
      });
}

void TuttiBackend::start_allgather(TuttiWork& work, const at::Tensor& output,
                                   const at::Tensor& input) {
  check_same_type("allgather", output, input);
  TORCH_CHECK_VALUE(output.numel() == input.numel() * getSize(), "tutti: allgather: an output of ",
                    output.sizes(), " for ", getSize(), " inputs of ", input.sizes());
  const at::Tensor x = read_by(work, input), y = written_by(work, output);
  start(work, {.kind = Kind::allgather, .count = bytes_of(x)}, x.data_ptr(), y.data_ptr());
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
  TORCH_CHECK_VALUE(outputs[static_cast<size_t>(getRank())].numel() == input.numel(),
                    "tutti: allgather: the output of this rank has ",
                    outputs[static_cast<size_t>(getRank())].sizes(), ", its input ", input.sizes());
  if (equal)
    signature.counts.clear();
  else
    signature.count = 0;  // each rank's own, and so no part of what all plan
  const at::Tensor x = read_by(work, input), y = written_by(work, outputs);
  start(work, signature, x.data_ptr(), y.data_ptr());
}

TuttiBackend::WorkPtr TuttiBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& opts) {
  const at::Tensor& x = only("allgather", inputs);
  const Tensors& all = only("allgather", outputs);
  return issue({OpType::ALLGATHER, "tutti:all_gather", opts.timeout, later(opts)}, inputs,
               [&](TuttiWork& work) {
                 work.set_result(all);
                 start_allgather(work, all, x);
               });
}

TuttiBackend::WorkPtr TuttiBackend::allgather_coalesced(std::vector<Tensors>& outputs,
                                                        Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  check_tensors("allgather_coalesced", inputs);
  // outputs[rank][k] or outputs[k][rank], by who calls: c10d's own back ends take the first.
  TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()),
                    "tutti: allgather_coalesced: ", outputs.size(), " lists of outputs for ",
                    getSize(), " ranks");
  for (const Tensors& of_rank : outputs) {
    check_tensors("allgather_coalesced", of_rank);
    TORCH_CHECK_VALUE(of_rank.size() == inputs.size(),
                      "tutti: allgather_coalesced: ", of_rank.size(), " outputs for ",
                      inputs.size(), " inputs");
  }
  return issue(
      {OpType::ALLGATHER_COALESCED, "tutti:all_gather_coalesced", opts.timeout, later(opts)},
      inputs, [&](TuttiWork& work) {
        Tensors result;
        for (const Tensors& of_rank : outputs)
          result.insert(result.end(), of_rank.begin(), of_rank.end());
        work.set_result(std::move(result));
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
  return issue({OpType::_ALLGATHER_BASE, "tutti:_all_gather_base", opts.timeout, later(opts)},
               {input}, [&](TuttiWork& work) {
                 work.set_result({output});
                 start_allgather(work, output, input);
               });
}

TuttiBackend::WorkPtr TuttiBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  check_tensors("allgather_into_tensor_coalesced", outputs);
  check_tensors("allgather_into_tensor_coalesced", inputs);
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "tutti: allgather_into_tensor_coalesced: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  return issue({OpType::ALLGATHER_INTO_TENSOR_COALESCED, "tutti:all_gather_into_tensor_coalesced",
                opts.timeout, later(opts)},
               inputs, [&](TuttiWork& work) {
                 work.set_result(outputs);
                 for (size_t k = 0; k < inputs.size(); ++k)
                   start_allgather(work, outputs[k], inputs[k]);
               });
}

TuttiBackend::WorkPtr TuttiBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& opts) {
  at::Tensor& x = only("gather", inputs);
  check_root("gather", opts.rootRank);
  const bool root = opts.rootRank == getRank();
  if (root) {
    for (const at::Tensor& y : only("gather", outputs)) {
      check_same_type("gather", y, x);
      TORCH_CHECK_VALUE(y.numel() == x.numel(), "tutti: gather: an output of ", y.sizes(),
                        " for an input of ", x.sizes());
    }
    TORCH_CHECK_VALUE(outputs.front().size() == static_cast<size_t>(getSize()),
                      "tutti: gather: ", outputs.front().size(), " outputs for ", getSize(),
                      " ranks");
  }
  return issue({OpType::GATHER, "tutti:gather", opts.timeout, later(opts)}, inputs,
               [&](TuttiWork& work) {
                 if (root) work.set_result(outputs.front());
                 const at::Tensor from = read_by(work, x);
                 const at::Tensor to = root ? written_by(work, outputs.front()) : at::Tensor();
                 start(work,
                       {.kind = Kind::gather,
                        .root = static_cast<int>(opts.rootRank),
                        .count = bytes_of(from)},
                       from.data_ptr(), root ? to.data_ptr() : nullptr);
               });
}

TuttiBackend::WorkPtr TuttiBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                            const c10d::ScatterOptions& opts) {
  at::Tensor& y = only("scatter", outputs);
  check_root("scatter", opts.rootRank);
  const bool root = opts.rootRank == getRank();
  if (root) {
    for (const at::Tensor& x : only("scatter", inputs)) {
      check_same_type("scatter", x, y);
      TORCH_CHECK_VALUE(x.numel() == y.numel(), "tutti: scatter: an input of ", x.sizes(),
                        " for an output of ", y.sizes());
    }
    TORCH_CHECK_VALUE(inputs.front().size() == static_cast<size_t>(getSize()),
                      "tutti: scatter: ", inputs.front().size(), " inputs for ", getSize(),
                      " ranks");
  }
  return issue(
      {OpType::SCATTER, "tutti:scatter", opts.timeout, later(opts)}, outputs, [&](TuttiWork& work) {
        work.set_result(outputs);
        const at::Tensor from = root ? read_by(work, inputs.front()) : at::Tensor();
        const at::Tensor to = written_by(work, y);
        start(
            work,
            {.kind = Kind::scatter, .root = static_cast<int>(opts.rootRank), .count = bytes_of(to)},
            root ? from.data_ptr() : nullptr, to.data_ptr());
      });
}

void TuttiBackend::start_reduce_scatter(TuttiWork& work, const at::Tensor& output,
                                        const at::Tensor& input, const c10d::ReduceOp& op) {
  check_same_type("reduce_scatter", output, input);
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(),
                    "tutti: reduce_scatter: an input of ", input.sizes(), " for ", getSize(),
                    " outputs of ", output.sizes());
  const Reduction how = reduction("reduce_scatter", input.scalar_type(), op);
  at::Tensor x = read_by(work, input);
  const at::Tensor y = written_by(work, output);
  if (!apart(x, y)) work.keep(x = x.clone());
  start(work, {.kind = Kind::reduce_scatter, .type = how.type, .op = how.op, .count = count_of(y)},
        x.data_ptr(), y.data_ptr());
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
  TORCH_CHECK_VALUE(parts[static_cast<size_t>(getRank())].numel() == output.numel(),
                    "tutti: reduce_scatter: the input for this rank has ",
                    parts[static_cast<size_t>(getRank())].sizes(), ", its output ", output.sizes());
  if (std::ranges::count(signature.counts, count_of(output)) == getSize()) {
    signature.count = count_of(output);
    signature.counts.clear();
  }
  return issue({OpType::REDUCE_SCATTER, "tutti:reduce_scatter", opts.timeout, later(opts)}, parts,
               [&](TuttiWork& work) {
                 work.set_result(outputs);
                 at::Tensor x = read_by(work, parts);
                 const at::Tensor y = written_by(work, output);
                 if (!apart(x, y)) work.keep(x = x.clone());
                 start(work, signature, x.data_ptr(), y.data_ptr());
               });
}

TuttiBackend::WorkPtr TuttiBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                         const c10d::ReduceScatterOptions& opts) {
  check_tensor("reduce_scatter_base", output);
  check_tensor("reduce_scatter_base", input);
  return issue(
      {OpType::_REDUCE_SCATTER_BASE, "tutti:_reduce_scatter_base", opts.timeout, later(opts)},
      {input}, [&](TuttiWork& work) {
        work.set_result({output});
        start_reduce_scatter(work, output, input, opts.reduceOp);
      });
}

TuttiBackend::WorkPtr TuttiBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  check_tensors("reduce_scatter_tensor_coalesced", outputs);
  check_tensors("reduce_scatter_tensor_coalesced", inputs);
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
                    "tutti: reduce_scatter_tensor_coalesced: ", outputs.size(), " outputs for ",
                    inputs.size(), " inputs");
  return issue({OpType::REDUCE_SCATTER_TENSOR_COALESCED, "tutti:reduce_scatter_tensor_coalesced",
                opts.timeout, later(opts)},
               inputs, [&](TuttiWork& work) {
                 work.set_result(outputs);
                 for (size_t k = 0; k < inputs.size(); ++k)
                   start_reduce_scatter(work, outputs[k], inputs[k], opts.reduceOp);
               });
}

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
  return issue({OpType::ALLTOALL_BASE, "tutti:all_to_all", opts.timeout, later(opts)}, {input},
               [&](TuttiWork& work) {
                 work.set_result({output});
                 at::Tensor x = read_by(work, input);
                 const at::Tensor y = written_by(work, output);
                 if (!apart(x, y)) work.keep(x = x.clone());
                 if (equal)
                   start(work, {.kind = Kind::all_to_all, .count = blocks.send.front()},
                         x.data_ptr(), y.data_ptr());
                 else
                   work.start(make_slot(make_plan(group(), blocks)), x.data_ptr(), y.data_ptr());
               });
}

TuttiBackend::WorkPtr TuttiBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllToAllOptions& opts) {
  check_tensors("alltoall", outputs);
  check_tensors("alltoall", inputs);
  TORCH_CHECK_VALUE(
      outputs.size() == static_cast<size_t>(getSize()) && inputs.size() == outputs.size(),
      "tutti: alltoall: ", inputs.size(), " inputs and ", outputs.size(), " outputs for ",
      getSize(), " ranks");
  Blocks blocks;
  for (const at::Tensor& x : inputs) blocks.send.push_back(bytes_of(x));
  for (const at::Tensor& y : outputs) blocks.receive.push_back(bytes_of(y));
  return issue({OpType::ALLTOALL, "tutti:all_to_all", opts.timeout, later(opts)}, inputs,
               [&](TuttiWork& work) {
                 work.set_result(outputs);
                 at::Tensor x = read_by(work, inputs);
                 const at::Tensor y = written_by(work, outputs);
                 if (!apart(x, y)) work.keep(x = x.clone());
                 work.start(make_slot(make_plan(group(), blocks)), x.data_ptr(), y.data_ptr());
               });
}

TuttiBackend::WorkPtr TuttiBackend::send(Tensors& tensors, int peer, int tag) {
  at::Tensor& x = only("send", tensors);
  return issue({OpType::SEND, "tutti:send", {}}, tensors, [&](TuttiWork& work) {
    const at::Tensor y = read_by(work, x);
    work.start(make_slot(make_plan(
                   group(), Message{.send = true, .peer = peer, .tag = tag, .bytes = bytes_of(y)})),
               y.data_ptr(), nullptr);
  });
}

TuttiBackend::WorkPtr TuttiBackend::recv(Tensors& tensors, int peer, int tag) {
  at::Tensor& x = only("recv", tensors);
  return issue({OpType::RECV, "tutti:recv", {}}, tensors, [&](TuttiWork& work) {
    work.set_result(tensors);
    const at::Tensor y = written_by(work, x);
    work.start(
        make_slot(make_plan(group(), Message{.peer = peer, .tag = tag, .bytes = bytes_of(y)})),
        nullptr, y.data_ptr());
    work.expect(bytes_of(y));
  });
}

TuttiBackend::WorkPtr TuttiBackend::recvAnysource(Tensors& /*tensors*/, int /*tag*/) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "tutti: recv from any rank is not supported: name the source");
}

}  // namespace tutti_torch
