#include "tutti/mlsl/exchange.h"

#include <cstring>

namespace tutti::mlsl {
namespace {

size_t sum_of(const std::vector<comm::Slice>& blocks) {
  size_t sum = 0;
  for (const comm::Slice& block : blocks) sum += block.count;
  return sum;
}

comm::CollectiveSpec rebindable(comm::CollectiveSpec spec) {
  spec.rebindable = true;
  return spec;
}

}  // namespace

const void* input_apart(const InputAndOutput& buffers, const Bytes& bytes,
                        std::optional<size_t> in_place, std::vector<std::byte>& copy) {
  const auto in = reinterpret_cast<uintptr_t>(buffers.input);
  const auto out = reinterpret_cast<uintptr_t>(buffers.output);
  const bool overlap = buffers.input != nullptr && buffers.output != nullptr &&
                       in < out + bytes.output && out < in + bytes.input;
  if (!overlap || (in_place && in == out + *in_place)) return buffers.input;
  copy.resize(bytes.input);
  std::memcpy(copy.data(), buffers.input, bytes.input);
  return copy.data();
}

Planned::Planned(Group& group, comm::CollectiveSpec spec)
    : job_(group.job()), operation_(group.plan(rebindable(spec))),
      bytes_(spec.count * comm::size_of(spec.element)) {
  using comm::Collective;
  const comm::Task task = group.communicator().planner().task_of(spec);
  const comm::Extent extent = comm::extent_of(task);
  const size_t size = comm::size_of(spec.element);
  extent_ = {extent.input * size, extent.output * size};
  if (spec.kind == Collective::broadcast || spec.kind == Collective::reduce ||
      spec.kind == Collective::allreduce)
    in_place_ = 0;
  if (spec.kind == Collective::allgather) in_place_ = task.part().begin * size;
}

void Planned::start(const InputAndOutput& buffers) {
  operation_->wait();
  operation_->rebind(input_apart(buffers, extent_, in_place_, input_copy_), buffers.output);
  job_.start(*operation_, bytes_);
}

Unplanned::Unplanned(Group& group, comm::BlockExchangeSpec spec) {
  comm::Task task;
  task.kind = comm::Collective::all_to_all;
  task.sends = spec.sends;
  task.receives = spec.receives;
  const comm::Extent extent = comm::extent_of(task);
  const size_t bytes = sum_of(spec.sends);
  spec.input = static_cast<const std::byte*>(input_apart(
      {spec.input, spec.output}, {extent.input, extent.output}, std::nullopt, input_copy_));
  operation_ = std::make_unique<comm::BlockExchange>(group.communicator(), std::move(spec));
  group.job().start(*operation_, bytes);
}

}  // namespace tutti::mlsl
