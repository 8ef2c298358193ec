// Collectives that run in pieces.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/patience.h"
#include "tutti/comm/algorithm/played_case.h"
#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/run/collective.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/shaped_channel.h"

namespace tutti::comm {
namespace {

Task task_of(const Communicator& c, const CollectiveSpec& spec) {
  Task task;
  task.kind = spec.kind, task.rank = c.rank(), task.ranks = c.size(), task.root = spec.root,
  task.count = spec.count;
  task.parts = spec.parts;
  task.sends = spec.sends, task.receives = spec.receives;
  return task;
}

// Plans one collective on one rank, runs it three times on new values, counts wrong elements.
size_t wrong_elements(Communicator& c, CollectiveSpec spec) {
  const Task task = task_of(c, spec);
  const Extent extent = extent_of(task);
  std::vector<std::byte> input(extent.input * size_of(spec.element) + 64),
      output(extent.output * size_of(spec.element) + 64);
  spec.input = input.data();
  spec.output = output.data();
  const auto operation = c.plan(spec);
  size_t wrong = 0;
  for (uint64_t run = 0; run < 3; ++run) {
    const ReferenceResult answer(task, spec.element, spec.op, run);
    std::ranges::fill(output, std::byte{0x7F});
    answer.fill(input.data());
    operation->run();
    wrong += answer.count_wrong(output.data());
    for (size_t i = extent.output * size_of(spec.element); i < output.size(); ++i)
      wrong += output[i] == std::byte{0x7F} ? 0 : 1;
  }
  return wrong;
}

// The link is busy with later chunks while the first one's round is not complete: 2.5 s of work,
// without a silent second.
TEST(Collective, ATimeOutSeesAllChunksUnderWay) {
  run_ranks(2, [](Communicator& c) {
    c.set_shape(LinkShape::parse("800kbit,0us"));
    c.set_timeout(patience(1));
    std::vector<float> x(62500, 1.0f);
    const auto sum = c.plan({.kind = Collective::allreduce,
                             .count = x.size(),
                             .output = x.data(),
                             .algorithm = "pairwise",
                             .chunk = 1000});
    sum->run();
    EXPECT_EQ(x[62499], 2.0f);
    c.set_timeout(kHangSeconds);
    c.barrier();
  });
}

// 5 MiB: the number of pieces by default, and as requested.
void expect_pieces(Communicator& c, CollectiveSpec spec, size_t on_its_own) {
  spec.count = (size_t{5} << 18) + 3;
  spec.reproducible = true;
  if (has_parts(spec.kind)) spec.parts = uneven_parts(spec.count, c.size());
  const auto expect = [&](size_t chunks, const char* why) {
    std::vector<std::byte> input(spec.count * sizeof(float)), output(spec.count * sizeof(float));
    CollectiveSpec given = spec;
    given.input = input.data(), given.output = output.data();
    EXPECT_EQ(c.plan(given)->chunks(), chunks) << name_of(spec.kind) << " " << why;
    EXPECT_EQ(wrong_elements(c, spec), 0u) << name_of(spec.kind) << " " << why;
  };
  expect(on_its_own, "on its own");
  spec.chunk = spec.count;
  expect(1, "in one");
  spec.chunk = spec.count / 3;
  expect(4, "in pieces");
  spec.chunk = 0, spec.count = 1000, spec.parts.clear();
  if (has_parts(spec.kind)) spec.parts = uneven_parts(spec.count, c.size());
  expect(1, "short");
}

TEST(Collective, LongOnesBetweenNodesRunInPieces) {
  const auto body = [](Communicator& c) {
    for (const Collective kind :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
      expect_pieces(c, {.kind = kind}, c.one_node() ? 1 : 6);
    if (!c.one_node()) return;
    c.set_check();  // it needs parts without gaps
    CollectiveSpec spec{.kind = Collective::allgather, .count = 900, .chunk = 300};
    spec.parts = uneven_parts(spec.count, c.size());
    EXPECT_EQ(wrong_elements(c, spec), 0u);
  };
  run_ranks(3, body);
  run_ranks(3, body, {0, 0, 1});
  run_ranks(4, body, {0, 1, 0, 1});
  run_ranks(5, body, {0, 0, 0, 1, 1});
}

// An empty part, and fewer elements than pieces.
TEST(Collective, PiecesOfSmallParts) {
  const auto body = [](Communicator& c) {
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
      for (const size_t count : {0u, 5u, 40u, 333u}) {
        CollectiveSpec spec{.kind = kind, .count = count, .reproducible = true, .chunk = 7};
        spec.parts.assign(static_cast<size_t>(c.size()), {count, 0});
        spec.parts[0] = {0, count};
        EXPECT_EQ(wrong_elements(c, spec), 0u) << name_of(kind) << " " << count;
        spec.parts = uneven_parts(count, c.size());
        EXPECT_EQ(wrong_elements(c, spec), 0u) << name_of(kind) << " " << count;
      }
  };
  run_ranks(3, body);
  run_ranks(4, body, {0, 1, 0, 1});
}

// A chunk's sums may not lie where another chunk's input has yet to be read. Rank 1 goes as far as
// it can before rank 0 reads anything.
TEST(Collective, PiecesInPlace) {
  for (const bool rebindable : {false, true}) {
    std::atomic<bool> is_far{false};
    run_ranks(2, [&](Communicator& c) {
      constexpr size_t kFirst = 7, kCount = 308;
      std::vector<int32_t> data(kCount);
      for (size_t i = 0; i < kCount; ++i) data[i] = static_cast<int32_t>((c.rank() + 1) * (i + 1));
      CollectiveSpec spec{.kind = Collective::reduce_scatter,
                          .element = Element::i32,
                          .count = kCount,
                          .parts = {{0, kFirst}, {kFirst, kCount - kFirst}},
                          .input = data.data(),
                          .output = data.data(),
                          .rebindable = rebindable,
                          .algorithm = "pairwise",
                          .chunk = 44};
      const auto plan = c.plan(spec);
      EXPECT_EQ(plan->chunks(), 7u);
      if (rebindable) plan->rebind(data.data(), data.data());
      plan->start();
      c.barrier();
      if (c.rank() == 1)
        for (int i = 0; i < 10; ++i) plan->test();
      if (c.rank() == 1) is_far = true;
      while (!is_far) std::this_thread::yield();
      plan->wait();
      const Slice mine = spec.parts[static_cast<size_t>(c.rank())];
      for (size_t i = 0; i < mine.count; ++i)
        EXPECT_EQ(data[i], static_cast<int32_t>(3 * (mine.begin + i + 1))) << i;
    });
  }
}

}  // namespace
}  // namespace tutti::comm
