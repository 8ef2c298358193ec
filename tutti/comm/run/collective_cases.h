#pragma once
// Collectives for tests: requests for each kind, and a check of the result on each rank.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/run/collective.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {

// Runs ranks with `threads` progress threads each.
inline void run_ranks_with(int threads, int ranks, const std::function<void(Communicator&)>& body) {
  const std::vector<int> processors(static_cast<size_t>(threads), Progress::kNoCore);
  run_ranks(ranks, [&](Communicator& c) {
    c.set_progress(std::make_shared<Progress>(processors));
    body(c);
  });
}

inline Task task_of(const Communicator& c, const CollectiveSpec& spec) {
  Task task;
  task.kind = spec.kind, task.rank = c.rank(), task.ranks = c.size(), task.root = spec.root,
  task.count = spec.count;
  task.parts = spec.parts;
  task.sends = spec.sends, task.receives = spec.receives;
  return task;
}

// Plans one collective on one rank, runs it three times on new values, counts wrong elements.
inline size_t wrong_elements(Communicator& c, CollectiveSpec spec, bool in_place = false) {
  const Task task = task_of(c, spec);
  const Extent extent = extent_of(task);
  std::vector<std::byte> input(extent.input * size_of(spec.element) + 64),
      output(extent.output * size_of(spec.element) + 64);
  spec.input = in_place ? output.data() : input.data();
  spec.output = output.data();
  const auto operation = c.plan(spec);
  size_t wrong = 0;
  for (uint64_t run = 0; run < 3; ++run) {
    const ReferenceResult answer(task, spec.element, spec.op, run);
    std::ranges::fill(output, std::byte{0x7F});
    answer.fill(in_place ? output.data() : input.data());
    operation->start();
    operation->wait();
    wrong += answer.count_wrong(output.data());
    for (size_t i = extent.output * size_of(spec.element); i < output.size(); ++i)
      wrong += output[i] == std::byte{0x7F} ? 0 : 1;
  }
  return wrong;
}

inline std::vector<Slice> uneven_parts(size_t count, int ranks) {
  std::vector<Slice> parts;
  const auto n = static_cast<size_t>(ranks);
  for (size_t p = 0, begin = 0; p < n; ++p) {
    const size_t end = count * (p + 1) * (p + 2) / (n * (n + 1));
    parts.push_back({begin, end - begin});
    begin = end;
  }
  return parts;
}

inline bool dealt(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter;
}

inline CollectiveSpec collective_spec(Collective kind, const Algorithm& algorithm, Element element,
                                      ReduceOp op, size_t count, int ranks, int root) {
  CollectiveSpec spec{.kind = kind, .element = element, .op = op, .count = count, .root = root};
  spec.algorithm = algorithm.name;
  if (dealt(kind)) spec.parts = uneven_parts(count, ranks);
  if (kind == Collective::all_to_all) {
    spec.count = count / static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
    for (int q = 0; q < ranks; ++q)
      spec.sends.push_back({count / static_cast<size_t>(ranks) * static_cast<size_t>(q),
                            count / static_cast<size_t>(ranks)});
    spec.receives = spec.sends;
  }
  return spec;
}

inline bool does(const Algorithm& algorithm, const CollectiveSpec& spec, int ranks) {
  Task task;
  task.kind = spec.kind, task.ranks = ranks, task.count = spec.count;
  return refusal_of(algorithm, task).empty();
}

}  // namespace tutti::comm
