// Tests what an environment shares: its heap, its order of messages, its groups.
#include "tutti/mlsl/environment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tutti/mlsl/thread_environments.h"

namespace tutti::mlsl {
namespace {

using comm::Collective;

TEST(MlslHeap, PiecesAreAlignedApartAndUsedAgain) {
  run_environments(
      1, {{"MLSL_HEAP_SIZE_GB", "0.0001"}}, [](Environment& environment, int) {  // 107,374 bytes
        Heap heap(environment.job().world().allocate(64 << 10));
        std::vector<char*> pieces;
        for (int i = 0; i < 16; ++i) pieces.push_back(static_cast<char*>(heap.allocate(4000, 128)));
        for (size_t i = 0; i < pieces.size(); ++i) {
          EXPECT_EQ(reinterpret_cast<uintptr_t>(pieces[i]) % 128, 0u);
          EXPECT_TRUE(heap.visible(pieces[i]));
          for (size_t j = 0; j < i; ++j) EXPECT_GE(std::abs(pieces[i] - pieces[j]), 4000);
        }
        void* const outside = heap.allocate(4000, 4096);  // the heap is full
        EXPECT_FALSE(heap.visible(outside));
        heap.free(outside);
        for (char* piece : pieces) heap.free(piece);
        void* const whole = heap.allocate(60 << 10, 64);  // only if freed pieces have been merged
        EXPECT_TRUE(heap.visible(whole));
        heap.free(whole);
        heap.free(nullptr);
        EXPECT_THROW(heap.free(whole), ConfigError);
        EXPECT_THROW(heap.allocate(1, 3), ConfigError);
      });
}

// Among large operations the latest one goes first; small ones go before all of them.
TEST(MlslJob, PrioritiesFollowFromSizeAndOrder) {
  const auto priorities = [](const Variables& variables) {
    std::vector<int> all;
    run_environments(1, variables, [&](Environment& environment, int) {
      Job& job = environment.job();
      const auto operation = job.world().plan({.kind = Collective::barrier});
      for (const size_t bytes : {10'000, 20'000, 9'999, 10'000}) {
        job.start(*operation, bytes);
        operation->wait();
        all.push_back(operation->priority());
      }
    });
    return all;
  };
  EXPECT_EQ(priorities({}), (std::vector<int>{0, 0, 0, 0}));
  const std::vector<int> newest_first = priorities({{"MLSL_MSG_PRIORITY", "1"}});
  EXPECT_LT(newest_first[0], newest_first[1]);
  EXPECT_LT(newest_first[1], newest_first[3]);
  EXPECT_LT(newest_first[3], newest_first[2]);
  EXPECT_EQ(priorities({{"MLSL_MSG_PRIORITY", "1"}, {"MLSL_MSG_PRIORITY_MODE", "0"}}),
            (std::vector<int>{0, 0, 0, 0}));
}

// Ranks that wait in one group progress the operations of another. Otherwise these would wait for
// each other in a circle: an allreduce of this size has two rounds, and no rank starts between the
// two starts of another.
TEST(MlslDistribution, WaitsInOneGroupMoveTheOthers) {
  run_environments(4, {}, [](Environment& environment, int rank) {
    Distribution& grid = environment.create_distribution(2, 2);
    EXPECT_EQ(grid.process_index(api::GT_DATA), static_cast<size_t>(rank / 2));
    EXPECT_EQ(grid.process_index(api::GT_MODEL), static_cast<size_t>(rank % 2));
    constexpr size_t kCount = 100'000;
    for (int round = 0; round < 20; ++round) {
      Floats along(kCount, static_cast<float>(rank)), across(kCount, static_cast<float>(rank));
      std::this_thread::sleep_for(std::chrono::milliseconds(rank));
      api::CommReq* const first =
          grid.start({.kind = Collective::allreduce, .count = kCount, .group = api::GT_DATA},
                     along.data(), along.data());
      api::CommReq* const second =
          grid.start({.kind = Collective::allreduce, .count = kCount, .group = api::GT_MODEL},
                     across.data(), across.data());
      const bool swap = rank == 1 || rank == 2;
      environment.requests().wait(swap ? second : first);
      environment.requests().wait(swap ? first : second);
      ASSERT_EQ(along[kCount - 1], static_cast<float>(rank % 2 * 2 + 2));
      ASSERT_EQ(across[kCount - 1], static_cast<float>(rank / 2 * 4 + 1));
    }
  });
}

TEST(MlslDistribution, ColoursMakeGroups) {
  run_environments(4, {}, [](Environment& environment, int rank) {
    Distribution& odd =
        environment.create_distribution(layout::Colours{.data = rank == 3 ? 1 : 0, .model = 5});
    EXPECT_EQ(odd.process_count(api::GT_DATA), rank == 3 ? 1u : 3u);
    EXPECT_EQ(odd.process_count(api::GT_MODEL), 4u);
    float sum = 1;
    environment.requests().wait(
        odd.start({.kind = Collective::allreduce, .count = 1, .group = api::GT_DATA}, &sum, &sum));
    EXPECT_EQ(sum, rank == 3 ? 1 : 3);
    environment.remove_distribution(&odd);
    EXPECT_THROW(environment.remove_distribution(&odd), ConfigError);
  });
}

TEST(MlslEnvironment, ColourSplitsTheWorld) {
  comm::run_ranks(4, [](comm::Communicator& communicator) {
    Environment environment(given({{"MLSL_HEAP_SIZE_GB", "0"}}));
    EXPECT_THROW(environment.configure("colour=1"), ConfigError);
    EXPECT_THROW(environment.configure("color=1x"), ConfigError);
    environment.configure(communicator.rank() < 3 ? "color=7" : "color=0");
    environment.init(communicator);
    EXPECT_EQ(environment.process_count(), communicator.rank() < 3 ? 3u : 1u);
    EXPECT_EQ(environment.process_index(),
              communicator.rank() < 3 ? static_cast<size_t>(communicator.rank()) : 0u);
    EXPECT_THROW(environment.configure("color=1"), ConfigError);
    EXPECT_THROW(environment.init(communicator), ConfigError);
    environment.finalize();
    EXPECT_FALSE(environment.initialized());
    EXPECT_THROW(environment.create_distribution(1, 1), ConfigError);
    environment.init(communicator);  // a program outside MPI may start again: without the colour
    EXPECT_EQ(environment.process_count(), 4u);
    environment.finalize();
  });
}

TEST(MlslEnvironment, AnInitThatFailedMayBeRepeated) {
  comm::run_ranks(1, [](comm::Communicator& communicator) {
    Variables variables{{"MLSL_HEAP_SIZE_GB", "0.001"},
                        {"MLSL_NUM_SERVERS", "1"},
                        {"MLSL_SERVER_AFFINITY", "1000"}};  // a processor that no machine here has
    Environment environment([&](const char* name) {
      const auto at = variables.find(name);
      return at == variables.end() ? nullptr : at->second.c_str();
    });
    EXPECT_ANY_THROW(environment.init(communicator));
    EXPECT_FALSE(environment.initialized());
    EXPECT_THROW(environment.allocate(8, 64), ConfigError);
    variables.erase("MLSL_SERVER_AFFINITY");
    environment.init(communicator);
    environment.free(environment.allocate(8, 64));
    environment.finalize();
  });
}

TEST(MlslEnvironment, MistakesAreNamed) {
  run_environments(2, {}, [](Environment& environment, int) {
    EXPECT_THROW(environment.create_distribution(3, 1), ConfigError);
    EXPECT_THROW(environment.create_distribution(0, 2), ConfigError);
    Distribution& all = environment.create_distribution(2, 1);
    float x = 0;
    EXPECT_THROW(all.broadcast(&x, 1, api::DT_FLOAT, 2, api::GT_DATA), ConfigError);
    EXPECT_THROW(
        all.start({.kind = Collective::allreduce, .count = 4, .data = api::DT_BYTE}, &x, &x),
        CommError);
    api::QuantParams params{};
    EXPECT_THROW(environment.set_quantization(&params), ConfigError);
    char missing[] = "/nowhere/libquant.so", name[] = "f";
    params = {missing, name, name, name, 268, 256};
    EXPECT_THROW(environment.set_quantization(&params), ConfigError);
    EXPECT_EQ(environment.quantization(), nullptr);
  });
}

}  // namespace
}  // namespace tutti::mlsl
