#include "tutti/comm/run/collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"
#include "tutti/base/tree_sum.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/check/reference_result.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/comm/transport/shaped_channel.h"

namespace tutti::comm {
namespace {

// Ranks with `threads` progress threads each.
void run_ranks_with(int threads, int ranks, const std::function<void(Communicator&)>& body) {
  const std::vector<int> processors(static_cast<size_t>(threads), Progress::kNoCore);
  run_ranks(ranks, [&](Communicator& c) {
    c.set_progress(std::make_shared<Progress>(processors));
    body(c);
  });
}

Task task_of(const Communicator& c, const CollectiveSpec& spec) {
  Task task;
  task.kind = spec.kind, task.rank = c.rank(), task.ranks = c.size(), task.root = spec.root,
  task.count = spec.count;
  task.parts = spec.parts;
  task.sends = spec.sends, task.receives = spec.receives;
  return task;
}

// One collective on one rank: plans it, runs it three times on new values, counts wrong elements.
size_t wrong_elements(Communicator& c, CollectiveSpec spec, bool in_place = false) {
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

std::vector<Slice> uneven_parts(size_t count, int ranks) {
  std::vector<Slice> parts;
  const auto n = static_cast<size_t>(ranks);
  for (size_t p = 0, begin = 0; p < n; ++p) {
    const size_t end = count * (p + 1) * (p + 2) / (n * (n + 1));
    parts.push_back({begin, end - begin});
    begin = end;
  }
  return parts;
}

bool dealt(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter;
}

CollectiveSpec spec_of(Collective kind, const Algorithm& algorithm, Element element, ReduceOp op,
                       size_t count, int ranks, int root) {
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

bool does(const Algorithm& algorithm, const CollectiveSpec& spec, int ranks) {
  Task task;
  task.kind = spec.kind, task.ranks = ranks, task.count = spec.count;
  return refusal_of(algorithm, task).empty();
}

void every_algorithm(Communicator& c, const std::vector<Element>& elements,
                     const std::vector<ReduceOp>& ops, const std::vector<size_t>& counts) {
  for (const Algorithm* algorithm : algorithms())
    for (int kind = 0; kind < kCollectives; ++kind)
      for (const Element element : elements)
        for (const ReduceOp op : ops)
          for (const size_t count : counts) {
            const auto k = Collective(kind);
            if (reduces(k) ? !has_arithmetic(element) : op != ops.front()) continue;
            const CollectiveSpec spec = spec_of(k, *algorithm, element, op, count, c.size(),
                                                static_cast<int>(count) % c.size());
            if (!does(*algorithm, spec, c.size())) continue;
            EXPECT_EQ(wrong_elements(c, spec), 0u)
                << algorithm->name << " " << name_of(k) << " " << name_of(element) << " "
                << name_of(op) << " count " << count << " ranks " << c.size() << " rank "
                << c.rank();
          }
}

TEST(Collective, EveryAlgorithmAgainstPlainArithmetic) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    run_ranks(ranks, [](Communicator& c) {
      every_algorithm(c, {Element::f32}, {ReduceOp::sum}, {0, 1, 2, 3, 127, 5003});
    });
}

TEST(Collective, EveryAlgorithmByProgressThreads) {
  for (const int threads : {1, 2})
    for (const int ranks : {1, 2, 3, 4})
      run_ranks_with(threads, ranks, [](Communicator& c) {
        every_algorithm(c, {Element::f32}, {ReduceOp::sum}, {0, 1, 5003});
      });
}

TEST(Collective, EveryTypeAndReduction) {
  const std::vector<Element> elements{Element::f32,  Element::f64, Element::bf16,
                                      Element::f16,  Element::i8,  Element::i32,
                                      Element::byte, Element::i64, Element::u8};
  for (const int ranks : {1, 2, 3, 4, 6})  // 4 and 6 have more than one row in a grid
    run_ranks(ranks, [&](Communicator& c) {
      every_algorithm(
          c, elements,
          {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean, ReduceOp::product},
          {1, 127});
    });
}

// A rank that has no memory for its part is an error on all of them, not a time-out of the others.
// Of a reduction in a binomial tree the leaves need none.
TEST(Collective, ARankWithoutMemoryIsAnErrorOnAllRanks) {
  run_ranks(2, [](Communicator& c) {
    float nothing = 0;
    std::string message = "no error";
    try {
      c.plan({.kind = Collective::reduce,
              .count = size_t{1} << 50,
              .input = &nothing,
              .output = &nothing,
              .algorithm = "binomial"});
    } catch (const PlanError& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(c.rank() == 0 ? "no memory for" : "rank 0 on " + c.host()),
              std::string::npos)
        << message;
    c.barrier();
  });
}

// Whether sums are ordered decides what travels, also where the algorithm is the same.
TEST(Collective, ReproducibleOnOneRankAloneIsRefused) {
  run_ranks(6,
            [](Communicator& c) {
              std::vector<float> x(1000);
              try {
                c.plan({.kind = Collective::allreduce,
                        .count = x.size(),
                        .output = x.data(),
                        .algorithm = "two_level",
                        .reproducible = c.rank() == 0});
                ADD_FAILURE() << "rank " << c.rank();
              } catch (const PlanError& error) {
                EXPECT_NE(std::string(error.what()).find("reproducible"), std::string::npos)
                    << error.what();
              }
            },
            {0, 0, 0, 1, 1, 1});
}

TEST(Collective, ALargePrimeCount) {
  for (const int ranks : {2, 3})
    run_ranks(ranks, [](Communicator& c) {
      every_algorithm(c, {Element::bf16}, {ReduceOp::sum}, {1000003});
    });
}

TEST(Collective, InPlaceAndInChunks) {
  for (const int threads : {0, 1, 2})
    for (const int ranks : {1, 2, 3, 4})
      run_ranks_with(threads, ranks, [](Communicator& c) {
        for (const Algorithm* algorithm : algorithms()) {
          CollectiveSpec spec = spec_of(Collective::allreduce, *algorithm, Element::f32,
                                        ReduceOp::sum, 5003, c.size(), 0);
          if (!does(*algorithm, spec, c.size())) continue;
          EXPECT_EQ(wrong_elements(c, spec, true), 0u) << algorithm->name;
          spec.chunk = 1000;
          EXPECT_EQ(wrong_elements(c, spec, true), 0u) << algorithm->name << " in chunks";
          EXPECT_EQ(wrong_elements(c, spec), 0u) << algorithm->name << " in chunks";
        }
        EXPECT_EQ(wrong_elements(c,
                                 spec_of(Collective::broadcast, binomial, Element::i32,
                                         ReduceOp::sum, 100, c.size(), 0),
                                 true),
                  0u);
      });
}

// The same with buffers that move: on some ranks in some runs, and an allreduce in place in some.
size_t wrong_elements_with_moving_buffers(Communicator& c, CollectiveSpec spec) {
  const Task task = task_of(c, spec);
  const Extent extent = extent_of(task);
  spec.rebindable = true;
  const auto operation = c.plan(spec);
  size_t wrong = 0;
  for (uint64_t run = 0; run < 6; ++run) {
    const ReferenceResult answer(task, spec.element, spec.op, run);
    // As long as the other's, so that a run that still has the other's buffers finds them, and
    // leaves its traces there.
    std::array<std::vector<std::byte>, 2> inputs, outputs;
    for (auto* buffers : {&inputs, &outputs})
      for (auto& buffer : *buffers)
        buffer.assign(std::max(extent.input, extent.output) * size_of(spec.element) + 64,
                      std::byte{0x7F});
    const size_t which = (run / 2 * static_cast<size_t>(c.rank() + 1)) % 2;
    const bool in_place =
        spec.kind == Collective::allreduce && (run + static_cast<uint64_t>(c.rank())) % 3 == 0;
    std::byte* const output = outputs[which].data();
    std::byte* const input = in_place ? output : inputs[which].data();
    answer.fill(input);
    operation->rebind(in_place ? nullptr : input, output);
    operation->start();
    operation->wait();
    wrong += answer.count_wrong(output);
    for (const std::byte left : outputs[1 - which]) wrong += left == std::byte{0x7F} ? 0 : 1;
  }
  return wrong;
}

TEST(Collective, BuffersMayMove) {
  for (const auto& [threads, ranks] : {std::pair{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 6}, {1, 2}})
    run_ranks_with(threads, ranks, [](Communicator& c) {
      for (const Algorithm* algorithm : algorithms())
        for (int kind = 0; kind < kCollectives; ++kind) {
          CollectiveSpec spec = spec_of(Collective(kind), *algorithm, Element::f32, ReduceOp::sum,
                                        1003, c.size(), 3 % c.size());
          if (!does(*algorithm, spec, c.size())) continue;
          EXPECT_EQ(wrong_elements_with_moving_buffers(c, spec), 0u)
              << algorithm->name << " " << name_of(spec.kind) << " ranks " << c.size() << " rank "
              << c.rank();
          spec.chunk = 100;
          EXPECT_EQ(wrong_elements_with_moving_buffers(c, spec), 0u)
              << algorithm->name << " " << name_of(spec.kind) << " in chunks";
        }
    });
}

TEST(Collective, BuffersThatMoveAreGivenBeforeTheFirstStart) {
  run_ranks(2, [](Communicator& c) {
    float x = 1;
    const auto moving = c.plan({.kind = Collective::allreduce, .count = 1, .rebindable = true});
    EXPECT_THROW(moving->rebind(&x, nullptr), CommError);
    const auto fixed = c.plan({.kind = Collective::allreduce, .count = 1, .output = &x});
    EXPECT_THROW(fixed->rebind(nullptr, &x), InternalError);
    EXPECT_THROW(moving->start(), InternalError);
  });
}

// The same bits by every algorithm that claims it, for values whose sum depends on the order.
TEST(Collective, ReproducibleAlgorithmsGiveTheBitsOfTheTree) {
  constexpr size_t kCount = 777;
  const auto value = [](int rank, size_t i) {
    Rng rng(3, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
    return rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)));
  };
  for (int ranks = 1; ranks <= 9; ++ranks) {
    std::vector<std::vector<float>> inputs;
    std::vector<const float*> leaves;
    for (int p = 0; p < ranks; ++p) {
      inputs.emplace_back();
      for (size_t i = 0; i < kCount; ++i) inputs.back().push_back(value(p, i));
      leaves.push_back(inputs.back().data());
    }
    std::vector<float> expected(kCount);
    for (size_t i = 0; i < kCount; ++i)
      expected[i] =
          tree_sum(0, ranks, [&](int64_t p) { return leaves[static_cast<size_t>(p)][i]; });
    int found = 0;
    run_ranks(ranks, [&](Communicator& c) {
      for (const Algorithm* algorithm : algorithms()) {
        Task task;
        task.kind = Collective::allreduce, task.ranks = ranks, task.count = kCount;
        if (!refusal_of(*algorithm, task).empty() || !algorithm->reproducible(task)) continue;
        if (c.rank() == 0) ++found;
        std::vector<float> sum(kCount);
        CollectiveSpec spec{.kind = Collective::allreduce,
                            .count = kCount,
                            .input = inputs[static_cast<size_t>(c.rank())].data(),
                            .output = sum.data()};
        spec.algorithm = algorithm->name;
        spec.reproducible = true;
        const auto operation = c.plan(spec);
        operation->start();
        operation->wait();
        EXPECT_EQ(std::memcmp(sum.data(), expected.data(), kCount * sizeof(float)), 0)
            << algorithm->name << " ranks " << ranks;
      }
    });
    EXPECT_GE(found, 3) << ranks;
  }
}

void many_in_flight(Communicator& c) {
  constexpr size_t kOperations = 6, kCount = 1000;
  std::vector<std::vector<float>> data(kOperations, std::vector<float>(kCount));
  std::vector<std::unique_ptr<CollectiveOperation>> operations;
  for (size_t k = 0; k < kOperations; ++k)
    operations.push_back(c.plan({.kind = Collective::allreduce,
                                 .count = kCount,
                                 .output = data[k].data(),
                                 .chunk = k % 2 == 0 ? 100u : 0u,
                                 .priority = static_cast<int>(k)}));
  for (int run = 0; run < 20; ++run) {
    for (size_t k = 0; k < kOperations; ++k)
      std::ranges::fill(data[k], static_cast<float>(c.rank() + 1));
    for (size_t k = 0; k < kOperations; ++k)
      operations[(k * 5 + static_cast<size_t>(c.rank())) % kOperations]->start();
    for (size_t k = kOperations; k-- > 0;) operations[k]->wait();
    for (size_t k = 0; k < kOperations; ++k) EXPECT_EQ(data[k], std::vector<float>(kCount, 6.0f));
  }
}

TEST(Collective, ManyInFlightInAnyOrder) {
  for (const int threads : {0, 1, 2}) run_ranks_with(threads, 3, many_in_flight);
}

void sums_along_rows_and_columns(Communicator& c) {
  const auto row = c.split(c.rank() / 3, c.rank());
  const auto column = c.split(c.rank() % 3, -c.rank());  // in the reverse order
  EXPECT_EQ(row->size(), 3);
  EXPECT_EQ(row->rank(), c.rank() % 3);
  EXPECT_EQ(column->size(), 2);
  EXPECT_EQ(column->rank(), 1 - c.rank() / 3);
  float sum = static_cast<float>(c.rank());
  const auto along_row = row->plan({.kind = Collective::allreduce, .count = 1, .output = &sum});
  along_row->start();
  along_row->wait();
  EXPECT_EQ(sum, c.rank() < 3 ? 3.0f : 12.0f);
  const auto along_column =
      column->plan({.kind = Collective::allreduce, .count = 1, .output = &sum});
  along_column->start();
  along_column->wait();
  EXPECT_EQ(sum, 15.0f);
}

TEST(Collective, GroupsOfASplit) {
  for (const int threads : {0, 1, 2}) run_ranks_with(threads, 6, sums_along_rows_and_columns);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error.what();
  }
  return "no CommError";
}

TEST(Collective, WhatIsWrongIsSaidAtPlanTime) {
  run_ranks(2, [](Communicator& c) {
    float x[4] = {};
    const auto planned = [&](const CollectiveSpec& spec) {
      return message_of([&] { c.plan(spec); });
    };
    EXPECT_NE(
        planned({.kind = Collective::allreduce, .element = Element::byte, .count = 4, .output = x})
            .find("bytes can be moved"),
        std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allreduce, .count = 4}).find("no output"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allgather, .count = 4, .output = x}).find("no input"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::allgather, .count = 3, .input = x, .output = x})
                  .find("dealt out equally"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::broadcast, .count = 4, .root = 2, .output = x})
                  .find("root 2 of 2"),
              std::string::npos);
    EXPECT_NE(planned({.kind = Collective::broadcast, .count = 4, .output = x, .algorithm = "ring"})
                  .find("ring does not do broadcast"),
              std::string::npos);
    const std::string other =
        planned({.kind = Collective::allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x});
    EXPECT_NE(other.find("rank 1"), std::string::npos) << other;
  });
  run_ranks(3, [](Communicator& c) {
    float x[4] = {};
    EXPECT_NE(message_of([&] {
                c.plan({.kind = Collective::allreduce,
                        .count = 4,
                        .output = x,
                        .algorithm = "ring",
                        .reproducible = true});
              }).find("order of the tree"),
              std::string::npos);
  });
}

// Two plans that differ in nothing that a line tells but the parts.
TEST(Collective, PartsThatDifferAreNamed) {
  run_ranks(3, [](Communicator& c) {
    float x[8] = {}, y[8] = {};
    const size_t mine = c.rank() == 2 ? 3 : 2;
    const std::vector<Slice> parts{{0, 1}, {1, mine}, {1 + mine, 4 - mine}};
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather}) {
      const std::string why = message_of(
          [&] { c.plan({.kind = kind, .count = 5, .parts = parts, .input = x, .output = y}); });
      EXPECT_NE(why.find("gives rank 1 of it 3 elements (counts[1]), rank 0 on "),
                std::string::npos)
          << why;
      EXPECT_NE(why.find("gives it 2;"), std::string::npos) << why;
    }
    const std::string count = message_of(
        [&] { c.plan({.kind = Collective::allreduce, .count = 3 + mine, .output = x}); });
    EXPECT_EQ(count.find("my part"), std::string::npos) << count;
  });
}

TEST(Collective, BlocksThatOverlapInTheOutputAreRefusedOnAllRanks) {
  run_ranks(2, [](Communicator& c) {
    float x[4] = {}, y[4] = {};
    CollectiveSpec spec{.kind = Collective::all_to_all, .input = x, .output = y};
    spec.sends = {{0, 2}, {0, 2}};  // these may be the same elements
    spec.receives = {{0, 2}, {2, 2}};
    c.plan(spec);
    if (c.rank() == 1) spec.receives = {{1, 2}, {0, 2}};
    const std::string why = message_of([&] { c.plan(spec); });
    EXPECT_NE(why.find(c.rank() == 1 ? "on rank 1 the blocks from ranks 0 and 1 overlap"
                                     : "cannot do what it was asked for"),
              std::string::npos)
        << why;
  });
}

// The link is busy with later chunks while the first one's round is not complete: 2.5 s of work, of
// which no second is silent.
TEST(Collective, ATimeOutSeesAllChunksUnderWay) {
  run_ranks(2, [](Communicator& c) {
    c.set_shape(LinkShape::parse("800kbit,0us"));
    c.set_timeout(1);
    std::vector<float> x(62500, 1.0f);
    const auto sum = c.plan({.kind = Collective::allreduce,
                             .count = x.size(),
                             .output = x.data(),
                             .algorithm = "pairwise",
                             .chunk = 1000});
    sum->start();
    sum->wait();
    EXPECT_EQ(x[62499], 2.0f);
    c.set_timeout(60);
    c.barrier();
  });
}

TEST(Collective, WhatOneRankRefusesAllRefuseAndThenGoOn) {
  run_ranks(3, [](Communicator& c) {
    c.set_timeout(5);
    float x[4] = {1, 2, 3, 4};
    const auto planned = [&](const CollectiveSpec& spec) {
      return message_of([&] { c.plan(spec); });
    };
    const std::string why =
        planned({.kind = Collective::allreduce, .count = 4, .output = c.rank() == 1 ? nullptr : x});
    EXPECT_NE(why.find(c.rank() == 1 ? "no output on rank 1" : "rank 1 on"), std::string::npos)
        << why;
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = c.rank() == 0 ? 4u : 3u, .output = x}),
        PlanError);
    EXPECT_THROW(
        c.plan({.kind = Collective::allreduce, .count = 4, .output = x, .algorithm = "star"}),
        ConfigError);
    const auto sum = c.plan({.kind = Collective::allreduce, .count = 4, .output = x});
    sum->start();
    sum->wait();
    EXPECT_EQ(x[3], 12);
  });
}

TEST(Collective, ALateRankIsNamed) {
  for (const int threads : {0, 1, 2})
    run_ranks_with(threads, 3, [](Communicator& c) {
      c.set_timeout(0.3);
      float x = 0;
      const auto operation = c.plan({.name = "gradient",
                                     .kind = Collective::allreduce,
                                     .count = 1,
                                     .output = &x,
                                     .algorithm = "pairwise"});
      if (c.rank() == 2) return;
      operation->start();
      const std::string message = message_of([&] { operation->wait(); });
      EXPECT_NE(message.find("'gradient' by pairwise number 1"), std::string::npos) << message;
      EXPECT_NE(message.find("not arrived: rank 2 on"), std::string::npos) << message;
    });
}

// 5 MiB. How many pieces it takes on its own, and as asked.
void expect_pieces(Communicator& c, CollectiveSpec spec, size_t on_its_own) {
  spec.count = (size_t{5} << 18) + 3;
  spec.reproducible = true;
  if (dealt(spec.kind)) spec.parts = uneven_parts(spec.count, c.size());
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
  if (dealt(spec.kind)) spec.parts = uneven_parts(spec.count, c.size());
  expect(1, "short");
}

TEST(Collective, LongOnesBetweenNodesRunInPieces) {
  const auto body = [](Communicator& c) {
    for (const Collective kind :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
      expect_pieces(c, {.kind = kind}, c.one_node() ? 1 : 6);
    if (!c.one_node()) return;
    c.set_check();  // it looks at parts that touch
    CollectiveSpec spec{.kind = Collective::allgather, .count = 900, .chunk = 300};
    spec.parts = uneven_parts(spec.count, c.size());
    EXPECT_EQ(wrong_elements(c, spec), 0u);
  };
  run_ranks(3, body);
  run_ranks(3, body, {0, 0, 1});
  run_ranks(4, body, {0, 1, 0, 1});
  run_ranks(5, body, {0, 0, 0, 1, 1});
}

// A part of nothing, and fewer elements than pieces.
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

TEST(Collective, OverlapsThatAreNoneOfTheContractAreRefused) {
  run_ranks(2, [](Communicator& c) {
    std::vector<float> data(20);
    const auto refusal = [&](Collective kind, size_t output) -> std::string {
      try {
        c.plan({.kind = kind, .count = 8, .input = data.data(), .output = data.data() + output});
      } catch (const PlanError& error) {
        return error.what();
      }
      return "";
    };
    using enum Collective;
    const size_t own = c.rank() == 0 ? 0 : 4;
    for (const Collective kind : {allreduce, reduce, broadcast, reduce_scatter})
      EXPECT_EQ(refusal(kind, 0), "") << name_of(kind);
    EXPECT_EQ(refusal(reduce_scatter, own), "");
    for (const Collective kind : {allreduce, reduce_scatter, all_to_all})
      EXPECT_NE(refusal(kind, 3).find("overlap"), std::string::npos) << name_of(kind);
    EXPECT_NE(refusal(all_to_all, 0).find("they lie apart"), std::string::npos);
    EXPECT_EQ(refusal(all_to_all, 8), "");
    // Rank 1's part is not where the long vector begins: it is told so, and rank 0 that it is.
    EXPECT_NE(refusal(allgather, 0), "");
    c.plan({.kind = allgather, .count = 8, .input = data.data() + own, .output = data.data()});
  });
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
