#include "tutti/comm/run/collective.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/comm/run/collective_cases.h"

namespace tutti::comm {
namespace {

void every_algorithm(Communicator& c, const std::vector<Element>& elements,
                     const std::vector<ReduceOp>& ops, const std::vector<size_t>& counts) {
  for (const Algorithm* algorithm : algorithms())
    for (int kind = 0; kind < kCollectives; ++kind)
      for (const Element element : elements)
        for (const ReduceOp op : ops)
          for (const size_t count : counts) {
            const auto k = Collective(kind);
            if (reduces(k) ? !has_arithmetic(element) : op != ops.front()) continue;
            const CollectiveSpec spec = collective_spec(k, *algorithm, element, op, count, c.size(),
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
  for (const int ranks : {1, 2, 3, 6})  // 6 have more than one row in a grid
    run_ranks(ranks, [&](Communicator& c) {
      every_algorithm(
          c, elements,
          {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::mean, ReduceOp::product},
          {1, 127});
    });
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
          CollectiveSpec spec = collective_spec(Collective::allreduce, *algorithm, Element::f32,
                                                ReduceOp::sum, 5003, c.size(), 0);
          if (!does(*algorithm, spec, c.size())) continue;
          EXPECT_EQ(wrong_elements(c, spec, true), 0u) << algorithm->name;
          spec.chunk = 1000;
          EXPECT_EQ(wrong_elements(c, spec, true), 0u) << algorithm->name << " in chunks";
          EXPECT_EQ(wrong_elements(c, spec), 0u) << algorithm->name << " in chunks";
        }
        EXPECT_EQ(wrong_elements(c,
                                 collective_spec(Collective::broadcast, binomial, Element::i32,
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
    // Both buffers are long enough for both uses, so that a run that still has the old buffers
    // finds memory, and leaves its traces there.
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
          CollectiveSpec spec = collective_spec(Collective(kind), *algorithm, Element::f32,
                                                ReduceOp::sum, 1003, c.size(), 3 % c.size());
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

// Every algorithm that claims it gives the same bits, for values whose sum depends on the order.
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

}  // namespace
}  // namespace tutti::comm
