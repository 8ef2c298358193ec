#include "tests/multirank/collectives.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/answer.h"

namespace tutti {
namespace {

using comm::Collective;

// Uneven parts where the collective deals them out; equal blocks for all_to_all.
comm::Task task_for(const comm::Communicator& c, Collective kind, size_t count) {
  comm::Task task;
  task.kind = kind;
  task.rank = c.rank();
  task.ranks = c.size();
  task.count = count;
  task.root = static_cast<int>(count % static_cast<size_t>(c.size()));
  const auto n = static_cast<size_t>(c.size());
  for (size_t p = 0; p < n; ++p) {
    const size_t begin = count * p * (p + 1) / (n * (n + 1));
    task.parts.push_back({begin, count * (p + 1) * (p + 2) / (n * (n + 1)) - begin});
  }
  if (kind == Collective::all_to_all)
    for (size_t p = 0; p < n; ++p) {
      task.sends.push_back({p * count, count});
      task.receives.push_back({p * count, count});
    }
  return task;
}

// Buffers are in private memory and in a window in turns: `shared_first` says which comes first.
void run_one(comm::Communicator& c, const comm::Task& task, const comm::Algorithm& algorithm, comm::Element element, bool shared_first) {
  const comm::Extent extent = comm::extent_of(task);
  const size_t in_bytes = extent.input * comm::size_of(element) + 8, out_bytes = extent.output * comm::size_of(element) + 8;
  std::vector<std::byte> own(in_bytes + out_bytes);
  const auto window = c.allocate(in_bytes / 64 * 64 + 64 + out_bytes);

  comm::CollectiveSpec spec{.kind = task.kind, .element = element, .count = task.count, .root = task.root, .rebindable = true};
  spec.algorithm = algorithm.name;
  if (task.kind != Collective::allreduce && task.kind != Collective::broadcast && task.kind != Collective::reduce) spec.parts = task.parts;
  spec.sends = task.sends, spec.receives = task.receives;
  if (task.kind == Collective::all_to_all || task.kind == Collective::barrier) spec.parts.clear();
  const auto operation = c.plan(spec);
  for (uint64_t run = 0; run < 4; ++run) {
    const bool shared = shared_first == (run % 3 == 0);  // twice the same in a row, and changes in both directions
    std::byte* const input = shared ? window->data() : own.data();
    std::byte* const output = input + (shared ? in_bytes / 64 * 64 + 64 : in_bytes);
    operation->rebind(input, output);
    const comm::Answer answer(task, element, comm::ReduceOp::sum, run);
    answer.fill(input);
    operation->start();
    operation->wait();
    if (const size_t wrong = answer.count_wrong(output); wrong > 0)
      throw InternalError(fmt::format("{} by {} of {} {}: {} wrong elements in run {}", comm::name_of(task.kind), algorithm.name, task.count, comm::name_of(element), wrong, run));
  }
}

int run_all(comm::Communicator& c) {
  int operations = 0;
  for (const comm::Algorithm* algorithm : comm::algorithms())
    for (int kind = 0; kind < comm::kCollectives; ++kind)
      for (const comm::Element element : {comm::Element::f32, comm::Element::bf16, comm::Element::i8})
        for (const size_t count : {0, 1, 3, 127, 40009}) {
          const comm::Task task = task_for(c, static_cast<Collective>(kind), count);
          if (!refusal_of(*algorithm, task).empty()) continue;
          run_one(c, task, *algorithm, element, count % 2 == 1);
          ++operations;
        }
  return operations;
}

}  // namespace

int check_planned_collectives(comm::Communicator& c) {
  int operations = run_all(c);
  const auto half = c.split(c.rank() % 2, c.rank());
  operations += run_all(*half);
  c.barrier();
  return operations;
}

}  // namespace tutti
