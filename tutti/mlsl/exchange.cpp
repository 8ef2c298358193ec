#include "tutti/mlsl/exchange.h"

#include <cstring>

#include "tutti/base/error.h"

namespace tutti::mlsl {
namespace {

std::vector<comm::Slice> equal_parts(size_t count, size_t parts) {
  std::vector<comm::Slice> all;
  for (size_t p = 0; p < parts; ++p) all.push_back({p * (count / parts), count / parts});
  return all;
}

comm::Task task_in(const Group& group, const comm::CollectiveSpec& spec) {
  comm::Task task;
  task.kind = spec.kind;
  task.rank = group.index();
  task.ranks = group.size();
  task.root = spec.root;
  task.count = spec.count;
  task.parts =
      spec.parts.empty() ? equal_parts(spec.count, static_cast<size_t>(group.size())) : spec.parts;
  if (spec.kind == comm::Collective::all_to_all) {
    task.sends = spec.sends.empty() ? task.parts : spec.sends;
    task.receives = spec.receives.empty() ? task.parts : spec.receives;
  }
  return task;
}

}  // namespace

Exchange::~Exchange() {
  if (in_flight_) group_.job().leave(*this);
}

void Exchange::enter(size_t bytes) {
  CHECK(!in_flight_, "an exchange was started twice");
  priority_ = group_.job().next_priority(bytes);
  in_flight_ = true;
  group_.job().enter(*this);
}

bool Exchange::test() {
  if (!in_flight_) return true;
  if (!advance()) return false;
  in_flight_ = false;
  group_.job().leave(*this);
  return true;
}

bool Exchange::poll() {
  group_.job().progress();
  return test();
}

void Exchange::wait() {
  if (test()) return;
  const auto done = [this] {
    group_.job().progress();
    return !in_flight_;
  };
  group_.communicator().wait_for(done, [this] { return pending(); });
}

Planned::Planned(Group& group, const comm::CollectiveSpec& spec)
    : Exchange(group), operation_(group.plan(spec)),
      bytes_(spec.count * comm::size_of(spec.element)) {
  using comm::Collective;
  const comm::Task task = task_in(group, spec);
  const comm::Extent extent = comm::extent_of(task);
  const size_t size = comm::size_of(spec.element);
  extent_ = {extent.input * size, extent.output * size};
  if (spec.kind == Collective::broadcast || spec.kind == Collective::reduce ||
      spec.kind == Collective::allreduce)
    in_place_ = 0;
  if (spec.kind == Collective::allgather) in_place_ = task.part().begin * size;
}

void Planned::start() {
  wait();
  enter(bytes_);
  operation_->set_priority(priority());
  operation_->start();
  group().job().progress();
}

void Planned::start(const void* input, void* output) {
  wait();
  operation_->rebind(apart(input, output), output);
  start();
}

// The input, or a copy of it where a rank of comm/ would write what it still has to read.
const void* Planned::apart(const void* input, const void* output) {
  const auto in = reinterpret_cast<uintptr_t>(input);
  const auto out = reinterpret_cast<uintptr_t>(output);
  const bool overlap = input != nullptr && output != nullptr && in < out + extent_.output &&
                       out < in + extent_.input;
  if (!overlap || (in_place_ && in == out + *in_place_)) return input;
  input_copy_.resize(extent_.input);
  std::memcpy(input_copy_.data(), input, extent_.input);
  return input_copy_.data();
}

}  // namespace tutti::mlsl
