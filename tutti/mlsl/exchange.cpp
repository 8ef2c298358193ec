#include "tutti/mlsl/exchange.h"

#include <cstring>

#include "tutti/base/error.h"

namespace tutti::mlsl {
namespace {

size_t whole_lines(size_t bytes) { return (bytes + 127) / 128 * 128; }

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
  task.parts = spec.parts.empty() ? equal_parts(spec.count, static_cast<size_t>(group.size())) : spec.parts;
  if (spec.kind == comm::Collective::all_to_all) task.sends = task.receives = task.parts;
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

Planned::Planned(Group& group, const comm::CollectiveSpec& spec) : Exchange(group) { plan(spec); }

void Planned::plan(const comm::CollectiveSpec& spec) {
  bytes_ = spec.count * comm::size_of(spec.element);
  operation_ = group().plan(spec);
}

void Planned::start() {
  wait();
  enter(bytes_);
  operation_->set_priority(priority());
  operation_->start();
  group().job().progress();
}

Staged::Staged(Group& group, comm::CollectiveSpec spec) : Planned(group) {
  using comm::Collective;
  const comm::Task task = task_in(group, spec);
  const comm::Extent extent = comm::extent_of(task);
  const size_t element = comm::size_of(spec.element);
  input_bytes_ = extent.input * element;
  output_bytes_ = extent.output * element;
  const bool in_place = spec.kind == Collective::broadcast || spec.kind == Collective::allreduce || spec.kind == Collective::allgather;
  window_ = group.allocate(in_place ? output_bytes_ : whole_lines(input_bytes_) + output_bytes_);
  input_ = output_ = window_->data();
  if (spec.kind == Collective::allgather) input_ += task.part().begin * element;
  if (!in_place) output_ += whole_lines(input_bytes_);
  spec.input = input_;
  spec.output = output_;
  plan(spec);
}

void Staged::start(const void* input) {
  wait();
  if (input != nullptr && input_bytes_ > 0) std::memcpy(input_, input, input_bytes_);
  Planned::start();
}

void Staged::deliver(void* output) const {
  if (output != nullptr && output_bytes_ > 0) std::memcpy(output, output_, output_bytes_);
}

}  // namespace tutti::mlsl
