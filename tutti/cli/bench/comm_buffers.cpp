#include "tutti/cli/bench/comm_buffers.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti::cli {
namespace {

using comm::Collective;

bool deals(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter ||
         kind == Collective::all_to_all;
}

}  // namespace

CommBuffers::CommBuffers(comm::Communicator& communicator, Collective kind, comm::Element element,
                         comm::ReduceOp op, size_t bytes, bool shared_output)
    : communicator_(communicator) {
  const size_t element_bytes = comm::size_of(element);
  spec_.kind = kind;
  spec_.element = element;
  spec_.op = op;
  spec_.count = kind == Collective::barrier ? 0 : bytes / element_bytes;
  if (deals(kind)) spec_.count -= spec_.count % static_cast<size_t>(communicator.size());
  task_ = communicator.planner().task_of(spec_);
  extent_ = comm::extent_of(task_);
  input_ = communicator.allocate(std::max(extent_.input, spec_.count) * element_bytes + 1);
  output_ = communicator.allocate(std::max(extent_.output, spec_.count) * element_bytes + 1,
                                  shared_output ? comm::PeerAccess::write : comm::PeerAccess::read);
  if (shared_output &&
      (kind != Collective::allreduce || communicator.neighbours().size() < communicator.size() ||
       communicator.shaped()))
    throw ConfigError(
        "only an allreduce of ranks that see each other's memory can have one output for all");
  spec_.shared_output = shared_output;
  spec_.input = kind == Collective::broadcast ? nullptr : input();
  spec_.output = output();
  values_.resize(extent_.input * element_bytes);
  comm::ReferenceResult(task_, element, op, 0).fill(values_.data());
}

void CommBuffers::rewrite() const {
  if (!values_.empty()) std::memcpy(source(), values_.data(), values_.size());
}

size_t CommBuffers::count_wrong(const std::function<void()>& call, uint64_t seed, bool own) {
  const comm::ReferenceResult answer(task_, spec_.element, spec_.op, seed + 1);
  std::byte* const result = own ? own_output() : output();
  if (own || !spec_.shared_output || communicator_.rank() == 0) {
    answer.write_right(result);
    std::for_each_n(result, extent_.output * comm::size_of(spec_.element),
                    [](std::byte& b) { b = ~b; });
  }
  answer.fill(source());
  communicator_.barrier();
  call();
  auto wrong = static_cast<double>(answer.count_wrong(result));
  communicator_.sum({&wrong, 1});
  return static_cast<size_t>(wrong);
}

}  // namespace tutti::cli
